package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/updraft-dev/updraft/config"
	"github.com/updraft-dev/updraft/functions/gateway"
	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/client/clientset/versioned"
	"github.com/updraft-dev/updraft/pkg/local/controlplane/planetest"
	"github.com/updraft-dev/updraft/pkg/record"
)

const audience = "updraft-gateway"

// place is a real API server with the rights and policies of config/, and the
// gateway in front of it under its own ServiceAccount.
type place struct {
	*testing.T
	core   kubernetes.Interface
	pulumi versioned.Interface
	// strict takes tokens of its audience, lenient the API server's too.
	strict, lenient *httptest.Server
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, config.Files); err != nil {
		t.Fatal(err)
	}
	plane := planetest.Start(t, filepath.Join(dir, "100-crds"))
	for _, file := range []string{"100-namespace.yaml", "200-accounts.yaml", "200-rights.yaml", "210-admission.yaml", "220-aggregated-roles.yaml"} {
		if err := plane.Apply(t.Context(), filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	as := rest.CopyConfig(plane.Config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:updraft-system:" + gateway.Name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:updraft-system", "system:authenticated"},
	}
	own, err := kubernetes.NewForConfig(unlimited(as))
	if err != nil {
		t.Fatal(err)
	}
	clients, err := record.NewClients(as)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{T: t}
	if p.core, err = kubernetes.NewForConfig(unlimited(plane.Config)); err != nil {
		t.Fatal(err)
	}
	if p.pulumi, err = versioned.NewForConfig(unlimited(plane.Config)); err != nil {
		t.Fatal(err)
	}
	serve := func(clusterTokens bool) *httptest.Server {
		s := httptest.NewServer(&gateway.Function{
			Pulumi: clients.Pulumi, Tokens: own.AuthenticationV1(), Access: own.AuthorizationV1(),
			Audience: audience, ClusterTokens: clusterTokens, Log: slog.New(slog.DiscardHandler),
		})
		t.Cleanup(s.Close)
		return s
	}
	p.strict, p.lenient = serve(false), serve(true)
	return p
}

func unlimited(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.QPS = -1
	return c
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) namespace(name string) {
	p.Helper()
	_, err := p.core.CoreV1().Namespaces().Create(p.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	p.must(err)
}

// account makes a ServiceAccount that has a ClusterRole in a namespace, and a
// token of it.
func (p *place) account(namespace, name, role string, audiences ...string) string {
	p.Helper()
	_, err := p.core.CoreV1().ServiceAccounts(namespace).Create(p.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	p.must(err)
	if role != "" {
		_, err = p.core.RbacV1().RoleBindings(namespace).Create(p.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: namespace}},
		}, metav1.CreateOptions{})
		p.must(err)
	}
	return p.token(namespace, name, audiences...)
}

func (p *place) token(namespace, name string, audiences ...string) string {
	p.Helper()
	made, err := p.core.CoreV1().ServiceAccounts(namespace).CreateToken(p.Context(), name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences},
	}, metav1.CreateOptions{})
	p.must(err)
	return made.Status.Token
}

// stack makes a Stack, and the Workspace that its first update makes.
func (p *place) stack(namespace, name string, workspace bool) {
	p.Helper()
	s, err := p.pulumi.PulumiV1().Stacks(namespace).Create(p.Context(), &pulumiv1.Stack{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pulumiv1.StackSpec{Stack: "dev", ProgramRef: &pulumiv1.ProgramReference{Name: "app"}},
	}, metav1.CreateOptions{})
	p.must(err)
	if !workspace {
		return
	}
	_, err = p.pulumi.AutoV1alpha1().Workspaces(namespace).Create(p.Context(), &autov1alpha1.Workspace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{pulumiv1.AnnotationStackUID: string(s.UID)}},
	}, metav1.CreateOptions{})
	p.must(err)
}

func (p *place) read(namespace, name string) *pulumiv1.Stack {
	p.Helper()
	s, err := p.pulumi.PulumiV1().Stacks(namespace).Get(p.Context(), name, metav1.GetOptions{})
	p.must(err)
	return s
}

func (p *place) updates(namespace string) []autov1alpha1.Update {
	p.Helper()
	list, err := p.pulumi.AutoV1alpha1().Updates(namespace).List(p.Context(), metav1.ListOptions{})
	p.must(err)
	return list.Items
}

// version is one for all that a request could change in a namespace.
func (p *place) version(namespace string) string {
	p.Helper()
	list, err := p.pulumi.PulumiV1().Stacks(namespace).List(p.Context(), metav1.ListOptions{})
	p.must(err)
	var all []string
	for _, s := range list.Items {
		all = append(all, s.Name+"@"+s.ResourceVersion)
	}
	for _, u := range p.updates(namespace) {
		all = append(all, u.Name+"@"+u.ResourceVersion)
	}
	return strings.Join(all, " ")
}

func ask(operation, id, subject string) cloudevents.Event {
	e := cloudevents.New()
	e.SetType("dev.updraft.request." + operation)
	e.SetSource("/ci")
	e.SetID(id)
	e.SetSubject(subject)
	return e
}

// reply is what the gateway answered.
type reply struct {
	status int
	header http.Header
	body   string
	// problem of an answer that is one.
	problem struct {
		Type, Title, Detail string
		Status              int
		Results             []outcome
	}
}

type outcome struct {
	Source, ID, Location, Type, Detail string
	Status                             int
	Repeated                           bool
}

func (p *place) send(server *httptest.Server, token string, change func(*http.Request), contentType string, body io.Reader) reply {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, server.URL, body)
	p.must(err)
	r.Header.Set("Content-Type", contentType)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if change != nil {
		change(r)
	}
	response, err := http.DefaultClient.Do(r)
	p.must(err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	p.must(err)
	got := reply{status: response.StatusCode, header: response.Header, body: string(text)}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/problem+json") {
		p.must(json.Unmarshal(text, &got.problem))
		if got.problem.Status != got.status || got.problem.Detail == "" || !strings.HasPrefix(got.problem.Type, "urn:updraft:problem:") {
			p.Errorf("the problem is %s", text)
		}
	} else if got.status >= 400 {
		p.Errorf("%d without a problem: %s", got.status, text)
	}
	return got
}

func (p *place) post(server *httptest.Server, token string, e cloudevents.Event) reply {
	p.Helper()
	request, err := cehttp.NewHTTPRequestFromEvent(p.Context(), server.URL, e)
	p.must(err)
	var body io.Reader = http.NoBody
	if request.Body != nil {
		body = request.Body
	}
	return p.send(server, token, func(r *http.Request) {
		maps.Copy(r.Header, request.Header)
	}, "", body)
}

func (p *place) structured(token string, e cloudevents.Event) reply {
	p.Helper()
	text, err := json.Marshal(e)
	p.must(err)
	return p.send(p.strict, token, nil, "application/cloudevents+json; charset=utf-8", bytes.NewReader(text))
}

func (p *place) batch(token string, events ...cloudevents.Event) reply {
	p.Helper()
	text, err := json.Marshal(events)
	p.must(err)
	return p.send(p.strict, token, nil, "application/cloudevents-batch+json", bytes.NewReader(text))
}

func TestGateway(t *testing.T) {
	p := newPlace(t)
	p.namespace("team")
	p.namespace("other")
	editor := p.account("team", "bot", "updraft-edit", audience)
	for name, test := range map[string]func(*place, string){
		"an update is asked for once":            (*place).askedOnce,
		"many copies at the same time ask once":  (*place).atTheSameTime,
		"an Update is created once":              (*place).createdOnce,
		"who may not changes and learns nothing": (*place).mayNot,
		"a right is that of kubectl":             (*place).rights,
		"what is too much is refused early":      (*place).tooMuch,
		"what is no event is told what is wrong": (*place).noEvent,
		"a Stack that cannot take it says why":   (*place).cannot,
		"a batch is allowed as a whole":          (*place).batches,
		"a cancel names what runs":               (*place).cancels,
		"the first byte comes soon":              (*place).soon,
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			q := *p
			q.T = t
			test(&q, editor)
		})
	}
}

func (p *place) askedOnce(token string) {
	p.stack("team", "once", false)
	first := p.post(p.strict, token, ask("update", "1", "team/once"))
	if first.status != http.StatusAccepted || first.body != "" || first.header.Get("Location") != "/apis/pulumi.com/v1/namespaces/team/stacks/once" || first.header.Get("Updraft-Repeated") != "" {
		p.Fatalf("the answer is %+v", first)
	}
	s := p.read("team", "once")
	value := s.Annotations[pulumiv1.AnnotationReconcileRequest]
	if !strings.HasSuffix(value, " by system:serviceaccount:team:bot") || s.Annotations[pulumiv1.AnnotationRequestedBy] != "system:serviceaccount:team:bot" {
		p.Errorf("annotations = %v", s.Annotations)
	}
	before := p.version("team")
	for range 3 {
		if again := p.post(p.strict, token, ask("update", "1", "team/once")); again.status != http.StatusAccepted || again.header.Get("Updraft-Repeated") != "true" {
			p.Errorf("the answer to a repeat is %+v", again)
		}
	}
	if again := p.structured(token, ask("update", "1", "team/once")); again.status != http.StatusAccepted || again.header.Get("Updraft-Repeated") != "true" {
		p.Errorf("the answer to a repeat in structured mode is %+v", again)
	}
	if after := p.version("team"); before != after {
		p.Errorf("repeats changed %s to %s", before, after)
	}
	if got := p.structured(token, ask("update", "2", "team/once")); got.status != http.StatusAccepted {
		p.Errorf("another event: %+v", got)
	}
	second := p.read("team", "once").Annotations[pulumiv1.AnnotationReconcileRequest]
	if second == value {
		p.Error("another event asks for nothing")
	}
	p.post(p.strict, token, ask("update", "1", "team/once"))
	if got := p.read("team", "once").Annotations[pulumiv1.AnnotationReconcileRequest]; got != second {
		p.Error("the first event, after another, asks again")
	}
	if got := p.post(p.strict, token, ask("refresh", "1", "team/once")); got.status != http.StatusUnprocessableEntity {
		p.Errorf("the id of another request: %+v", got)
	}
}

func (p *place) atTheSameTime(token string) {
	p.stack("team", "burst", true)
	const copies = 8
	var wait sync.WaitGroup
	fresh := make(chan string, 4*copies)
	for i := range 4 * copies {
		wait.Go(func() {
			operation := []string{"update", "preview", "refresh", "destroy"}[i%4]
			got := p.post(p.strict, token, ask(operation, operation, "team/burst"))
			if got.status != http.StatusAccepted {
				p.Errorf("the answer is %+v", got)
			} else if got.header.Get("Updraft-Repeated") == "" {
				fresh <- operation
			}
		})
	}
	wait.Wait()
	close(fresh)
	count := map[string]int{}
	for operation := range fresh {
		count[operation]++
	}
	if len(count) != 4 || count["update"] != 1 {
		p.Errorf("taken as new: %v", count)
	}
	of := map[autov1alpha1.UpdateType]int{}
	for _, u := range p.updates("team") {
		if u.Spec.WorkspaceName == "burst" {
			of[u.Spec.Type]++
		}
	}
	if len(of) != 3 || of["preview"]+of["refresh"]+of["destroy"] != 3 {
		p.Errorf("Updates of each type: %v", of)
	}
	if got := strings.Fields(p.read("team", "burst").Annotations[pulumiv1.AnnotationRequests]); len(got) != 4 {
		p.Errorf("the Stack remembers %v", got)
	}
}

func (p *place) createdOnce(token string) {
	p.stack("team", "makes", true)
	e := ask("preview", "7", "team/makes")
	p.must(e.SetData(cloudevents.ApplicationJSON, map[string]string{"message": "Nightly\nlook"}))
	got := p.post(p.strict, token, e)
	name, ok := strings.CutPrefix(got.header.Get("Location"), "/apis/auto.pulumi.com/v1alpha1/namespaces/team/updates/")
	if got.status != http.StatusAccepted || !ok {
		p.Fatalf("the answer is %+v", got)
	}
	updates := p.pulumi.AutoV1alpha1().Updates("team")
	u, err := updates.Get(p.Context(), name, metav1.GetOptions{})
	p.must(err)
	if *u.Spec.Message != "Requested by system:serviceaccount:team:bot: Nightly look" || u.Annotations[pulumiv1.AnnotationRequestedBy] != "system:serviceaccount:team:bot" {
		p.Errorf("it does not say who asked: %+v", u)
	}
	// As after an end between the two writes: the Update is there, and the Stack
	// does not know of it.
	_, err = p.pulumi.PulumiV1().Stacks("team").Patch(p.Context(), "makes", types.MergePatchType, []byte(`{"metadata":{"annotations":{"updraft.dev/requests":null}}}`), metav1.PatchOptions{})
	p.must(err)
	version := u.ResourceVersion
	if again := p.post(p.strict, token, e); again.status != http.StatusAccepted || again.header.Get("Location") != got.header.Get("Location") {
		p.Errorf("the answer after an end between the writes is %+v", again)
	}
	u, err = updates.Get(p.Context(), name, metav1.GetOptions{})
	p.must(err)
	if u.ResourceVersion != version || !strings.HasSuffix(p.read("team", "makes").Annotations[pulumiv1.AnnotationRequests], ":preview") {
		p.Error("the Update was written again, or the Stack does not know of it")
	}
	// It is remembered when the Update is gone.
	p.must(updates.Delete(p.Context(), name, metav1.DeleteOptions{}))
	if again := p.post(p.strict, token, e); again.status != http.StatusAccepted || again.header.Get("Updraft-Repeated") != "true" || again.header.Get("Location") != got.header.Get("Location") {
		p.Errorf("the answer to a repeat is %+v", again)
	}
	if _, err := updates.Get(p.Context(), name, metav1.GetOptions{}); err == nil {
		p.Error("a repeat made the Update again")
	}
}

func (p *place) mayNot(editor string) {
	p.stack("team", "guarded", true)
	p.stack("other", "guarded", true)
	viewer := p.account("team", "viewer", "updraft-view", audience)
	nobody := p.account("other", "nobody", "", audience)
	before := p.version("team") + p.version("other")
	for name, c := range map[string]struct {
		server *httptest.Server
		token  string
		status int
	}{
		"no token":                    {p.strict, "", http.StatusUnauthorized},
		"no token that is one":        {p.strict, "x.y.z", http.StatusUnauthorized},
		"a forged token":              {p.strict, editor[:len(editor)-8] + "AAAAAAAA", http.StatusUnauthorized},
		"the API server's audience":   {p.strict, p.token("team", "bot"), http.StatusUnauthorized},
		"another audience":            {p.strict, p.token("team", "bot", "updraft"), http.StatusUnauthorized},
		"another audience, leniently": {p.lenient, p.token("team", "bot", "updraft"), http.StatusUnauthorized},
		"a token without rights":      {p.strict, nobody, http.StatusForbidden},
		"a token that may look":       {p.strict, viewer, http.StatusForbidden},
	} {
		for _, operation := range []string{"update", "preview", "refresh", "destroy", "cancel"} {
			there := p.post(c.server, c.token, ask(operation, name+operation, "team/guarded"))
			if there.status != c.status {
				p.Errorf("%s, %s: %+v", name, operation, there)
			}
			if c.status == http.StatusUnauthorized && there.header.Get("WWW-Authenticate") != `Bearer realm="updraft-gateway"` {
				p.Errorf("%s: headers = %v", name, there.header)
			}
			missing := p.post(c.server, c.token, ask(operation, name+operation, "team/missing"))
			if missing.status != there.status || strings.ReplaceAll(missing.body, "missing", "guarded") != there.body {
				p.Errorf("%s, %s: it tells what exists: %s and %s", name, operation, there.body, missing.body)
			}
		}
	}
	for _, subject := range []string{"other/guarded", "other/missing", "nowhere/guarded"} {
		if got := p.post(p.strict, editor, ask("update", "x", subject)); got.status != http.StatusForbidden {
			p.Errorf("%s: %+v", subject, got)
		}
	}
	if after := p.version("team") + p.version("other"); before != after {
		p.Errorf("it changed from %s to %s", before, after)
	}
	if got := p.post(p.strict, editor, ask("update", "x", "team/missing")); got.status != http.StatusNotFound {
		p.Errorf("who may is told: %+v", got)
	}
	if got := p.post(p.lenient, p.token("team", "bot"), ask("update", "lenient", "team/guarded")); got.status != http.StatusAccepted {
		p.Errorf("the API server's audience, leniently: %+v", got)
	}
}

// rights that name a Stack count for that Stack alone, and none to create.
func (p *place) rights(string) {
	p.stack("team", "mine", true)
	p.stack("team", "yours", true)
	_, err := p.core.RbacV1().ClusterRoles().Create(p.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "one-stack"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"pulumi.com"}, Resources: []string{"stacks"}, ResourceNames: []string{"mine"}, Verbs: []string{"patch"}},
			{APIGroups: []string{"auto.pulumi.com"}, Resources: []string{"updates"}, ResourceNames: []string{"mine"}, Verbs: []string{"create"}},
		},
	}, metav1.CreateOptions{})
	p.must(err)
	token := p.account("team", "narrow", "one-stack", audience)
	planetest.Eventually(p.T, "the right is known", func() error {
		if got := p.post(p.strict, token, ask("update", "1", "team/mine")); got.status != http.StatusAccepted {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	for subject, operation := range map[string]string{"team/yours": "update", "team/mine": "preview"} {
		if got := p.post(p.strict, token, ask(operation, "2", subject)); got.status != http.StatusForbidden {
			p.Errorf("%s of %s: %+v", operation, subject, got)
		}
	}
}

func (p *place) tooMuch(token string) {
	p.stack("team", "small", false)
	before := p.version("team")
	blob := strings.Repeat("x", 25<<20)
	large := `{"specversion":"1.0","id":"1","source":"/ci","type":"dev.updraft.request.update","subject":"team/small","data":{"message":"` + blob + `"}}`
	deep := func(begin, end string) string {
		return `{"specversion":"1.0","id":"1","source":"/ci","type":"dev.updraft.request.update","subject":"team/small","data":` + strings.Repeat(begin, 10000) + strings.Repeat(end, 10000) + `}`
	}
	binary := func(r *http.Request) {
		for key, value := range map[string]string{"Specversion": "1.0", "Id": "1", "Source": "/ci", "Type": "dev.updraft.request.update", "Subject": "team/small"} {
			r.Header.Set("Ce-"+key, value)
		}
	}
	const structured, batch = "application/cloudevents+json", "application/cloudevents-batch+json"
	for name, c := range map[string]struct {
		contentType string
		change      func(*http.Request)
		body        io.Reader
		status      int
	}{
		"a body of 25 MB":                {structured, nil, strings.NewReader(large), http.StatusRequestEntityTooLarge},
		"one whose length is not told":   {structured, nil, io.MultiReader(strings.NewReader(large)), http.StatusRequestEntityTooLarge},
		"one in binary mode":             {"application/json", binary, io.MultiReader(strings.NewReader(large)), http.StatusRequestEntityTooLarge},
		"one without a token":            {structured, func(r *http.Request) { r.Header.Del("Authorization") }, strings.NewReader(large), http.StatusRequestEntityTooLarge},
		"lists in lists":                 {structured, nil, strings.NewReader(deep("[", "]")), http.StatusBadRequest},
		"objects in objects":             {structured, nil, strings.NewReader(deep(`{"a":`, "}")), http.StatusBadRequest},
		"lists in lists, in binary mode": {"application/json", binary, strings.NewReader(strings.Repeat("[", 10000)), http.StatusBadRequest},
		"lists in lists, without a type": {"", binary, strings.NewReader(strings.Repeat("[", 10000)), http.StatusBadRequest},
		"lists in lists, in a batch":     {batch, nil, strings.NewReader(strings.Repeat("[", 10000)), http.StatusBadRequest},
		"too many events":                {batch, nil, strings.NewReader("[" + strings.Repeat("{},", 100) + "{}]"), http.StatusBadRequest},
		"compressed":                     {structured, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, strings.NewReader("x"), http.StatusUnsupportedMediaType},
	} {
		began := time.Now()
		got := p.send(p.strict, token, c.change, c.contentType, c.body)
		if got.status != c.status {
			p.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if took := time.Since(began); took > 2*time.Second {
			p.Errorf("%s: refused after %s", name, took)
		}
	}
	var many []cloudevents.Event
	for i := range 101 {
		many = append(many, ask("update", fmt.Sprint(i), "team/small"))
	}
	if got := p.batch(token, many...); got.status != http.StatusRequestEntityTooLarge {
		p.Errorf("too many events: %+v", got)
	}
	if after := p.version("team"); before != after {
		p.Errorf("it changed from %s to %s", before, after)
	}
}

func (p *place) noEvent(token string) {
	const structured = "application/cloudevents+json"
	for name, c := range map[string]struct {
		contentType, body string
		change            func(*http.Request)
		status            int
		says              string
	}{
		"a form":                {"application/x-www-form-urlencoded", "a=b", nil, http.StatusUnsupportedMediaType, "application/cloudevents+json"},
		"JSON that is no event": {"application/json", "{}", nil, http.StatusUnsupportedMediaType, "ce-id"},
		"no JSON":               {structured, "{", nil, http.StatusBadRequest, "cannot be read"},
		"an event without id":   {structured, `{"specversion":"1.0","source":"/ci","type":"dev.updraft.request.update","subject":"team/x"}`, nil, http.StatusBadRequest, "id"},
		"another specversion":   {structured, `{"specversion":"9","id":"1","source":"/ci","type":"t"}`, nil, http.StatusBadRequest, "9"},
		"null":                  {structured, `null`, nil, http.StatusBadRequest, ""},
		"a batch of null":       {"application/cloudevents-batch+json", `[null]`, nil, http.StatusBadRequest, ""},
		"a batch that is none":  {"application/cloudevents-batch+json", `{}`, nil, http.StatusBadRequest, "JSON list"},
		"another type":          {structured, `{"specversion":"1.0","id":"1","source":"/ci","type":"com.example.done","subject":"team/x"}`, nil, http.StatusUnprocessableEntity, "dev.updraft.request.update"},
		"no Stack":              {structured, `{"specversion":"1.0","id":"1","source":"/ci","type":"dev.updraft.request.update"}`, nil, http.StatusUnprocessableEntity, "names no Stack"},
		"GET":                   {structured, "", func(r *http.Request) { r.Method = http.MethodGet }, http.StatusMethodNotAllowed, "POST"},
		"another path":          {structured, "", func(r *http.Request) { r.URL.Path = "/v1/stacks" }, http.StatusNotFound, "/"},
	} {
		got := p.send(p.strict, token, c.change, c.contentType, strings.NewReader(c.body))
		if got.status != c.status || !strings.Contains(got.problem.Detail, c.says) {
			p.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

func (p *place) cannot(token string) {
	p.stack("team", "bare", false)
	for operation, c := range map[string]struct {
		status int
		says   string
	}{
		"preview": {http.StatusConflict, "has no Workspace"},
		"cancel":  {http.StatusUnprocessableEntity, "nothing to cancel"},
	} {
		if got := p.post(p.strict, token, ask(operation, operation, "team/bare")); got.status != c.status || !strings.Contains(got.problem.Detail, c.says) {
			p.Errorf("%s: %+v", operation, got)
		}
	}
	// It is not remembered, and so is taken once the Stack can.
	s := p.read("team", "bare")
	_, err := p.pulumi.AutoV1alpha1().Workspaces("team").Create(p.Context(), &autov1alpha1.Workspace{
		ObjectMeta: metav1.ObjectMeta{Name: "bare", Annotations: map[string]string{pulumiv1.AnnotationStackUID: string(s.UID)}},
	}, metav1.CreateOptions{})
	p.must(err)
	if got := p.post(p.strict, token, ask("preview", "preview", "team/bare")); got.status != http.StatusAccepted || got.header.Get("Updraft-Repeated") != "" {
		p.Errorf("sent again: %+v", got)
	}
}

func (p *place) batches(token string) {
	p.stack("team", "one", false)
	p.stack("team", "two", true)
	before := p.version("team")
	if got := p.batch(token, ask("update", "1", "team/one"), ask("update", "2", "other/guarded")); got.status != http.StatusForbidden {
		p.Errorf("one that is not allowed: %+v", got)
	}
	if got := p.batch(token, ask("update", "1", "team/one"), ask("upgrade", "2", "team/two")); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.problem.Detail, `"2"`) {
		p.Errorf("one that is not understood: %+v", got)
	}
	if after := p.version("team"); before != after {
		p.Errorf("it changed from %s to %s", before, after)
	}
	got := p.batch(token, ask("update", "1", "team/one"), ask("preview", "2", "team/two"), ask("update", "1", "team/one"))
	var results []outcome
	if got.status != http.StatusAccepted || got.header.Get("Content-Type") != "application/json" || json.Unmarshal([]byte(got.body), &results) != nil || len(results) != 3 ||
		results[0].Repeated || results[1].Location == "" || !results[2].Repeated || results[1].ID != "2" || results[1].Source != "/ci" {
		p.Errorf("the answer is %+v", got)
	}
	// What can be taken is, and what cannot is told beside it.
	got = p.batch(token, ask("preview", "3", "team/one"), ask("preview", "4", "team/two"))
	if each := got.problem.Results; got.status != http.StatusConflict || len(each) != 2 || each[0].Status != http.StatusConflict || each[0].Detail == "" || each[1].Status != http.StatusAccepted {
		p.Errorf("the answer is %+v", got)
	}
	if got := p.batch(token); got.status != http.StatusAccepted || strings.TrimSpace(got.body) != "[]" {
		p.Errorf("none: %+v", got)
	}
}

func (p *place) cancels(token string) {
	p.stack("team", "long", true)
	got := p.post(p.strict, token, ask("preview", "1", "team/long"))
	name := got.header.Get("Location")[strings.LastIndex(got.header.Get("Location"), "/")+1:]
	u, err := p.pulumi.AutoV1alpha1().Updates("team").Get(p.Context(), name, metav1.GetOptions{})
	p.must(err)
	ws, err := p.pulumi.AutoV1alpha1().Workspaces("team").Get(p.Context(), "long", metav1.GetOptions{})
	p.must(err)
	ws.Status.Run = &autov1alpha1.RunLock{Name: u.Name, UID: u.UID}
	_, err = p.pulumi.AutoV1alpha1().Workspaces("team").UpdateStatus(p.Context(), ws, metav1.UpdateOptions{})
	p.must(err)
	got = p.post(p.strict, token, ask("cancel", "2", "team/long"))
	if s := p.read("team", "long"); got.status != http.StatusAccepted || s.Annotations[pulumiv1.AnnotationCancel] != name || !strings.HasSuffix(got.header.Get("Location"), "/updates/"+name) {
		p.Errorf("the answer is %+v, the annotation %q", got, s.Annotations[pulumiv1.AnnotationCancel])
	}
}

// soon measures what docs/performance.md says of the gateway.
func (p *place) soon(token string) {
	p.stack("team", "quick", true)
	measure := func(what string, next func(int) cloudevents.Event) {
		const n = 20 // few enough for the client's limit, which is for bursts
		var all []time.Duration
		for i := range n {
			e := next(i)
			began := time.Now()
			got := p.post(p.strict, token, e)
			all = append(all, time.Since(began))
			if got.status != http.StatusAccepted {
				p.Fatalf("%s: %+v", what, got)
			}
		}
		slices.Sort(all)
		p.Logf("%s: median %.1f ms, 95th percentile %.1f ms of %d", what, all[n/2].Seconds()*1000, all[n*95/100].Seconds()*1000, n)
		if all[n/2] > 200*time.Millisecond {
			p.Errorf("%s: median %s", what, all[n/2])
		}
	}
	measure("update", func(i int) cloudevents.Event { return ask("update", fmt.Sprint("u", i), "team/quick") })
	measure("preview", func(i int) cloudevents.Event { return ask("preview", fmt.Sprint("p", i), "team/quick") })
	measure("repeat", func(int) cloudevents.Event { return ask("update", "u59", "team/quick") })
}
