package record

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// server answers GETs with the objects that it holds, by path, and notes all
// that it is asked for, in order.
type server struct {
	mu      sync.Mutex
	objects map[string]any
	asked   []string
	bodies  []string
	// refuse is what a write is answered with, if not with success.
	refuse *metav1.Status
	// down answers everything with an error.
	down bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	s.asked, s.bodies = append(s.asked, r.Method+" "+r.URL.Path), append(s.bodies, string(body))
	w.Header().Set("Content-Type", "application/json")
	switch object, ok := s.objects[r.URL.Path]; {
	case s.down:
		w.WriteHeader(http.StatusInternalServerError)
	case r.Method == http.MethodGet && ok:
		_ = json.NewEncoder(w).Encode(object)
	case r.Method == http.MethodGet:
		answer(w, notFound.Status())
	case s.refuse != nil:
		answer(w, *s.refuse)
	default:
		_, _ = w.Write(body)
	}
}

func answer(w http.ResponseWriter, status metav1.Status) {
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

func clientsOf(t *testing.T, s *server) *Clients {
	t.Helper()
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	clients, err := NewClients(&rest.Config{Host: listener.URL})
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

const (
	updates    = "/apis/auto.pulumi.com/v1alpha1/namespaces/team/updates/"
	workspaces = "/apis/auto.pulumi.com/v1alpha1/namespaces/team/workspaces/"
	programs   = "/apis/pulumi.com/v1/namespaces/team/programs/"
	stackPath  = "/apis/pulumi.com/v1/namespaces/team/stacks/"
	alarm      = "/apis/sources.knative.dev/v1/namespaces/team/pingsources/updraft-stack-app"
	jobs       = "/apis/batch/v1/namespaces/team/jobs/"
)

func aStack(changes ...func(*pulumiv1.Stack)) *pulumiv1.Stack {
	s := &pulumiv1.Stack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "uid-of-app"}}
	s.Spec.ProgramRef = &pulumiv1.ProgramReference{Name: "web"}
	for _, change := range changes {
		change(s)
	}
	return s
}

func claims(s *pulumiv1.Stack) {
	s.Status.CurrentUpdate = &pulumiv1.CurrentStackUpdate{Name: "app-1"}
}

func deleted(s *pulumiv1.Stack) {
	t := metav1.NewTime(noon)
	s.DeletionTimestamp = &t
}

func anUpdate(changes ...func(*autov1alpha1.Update)) *autov1alpha1.Update {
	u := &autov1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app-1", UID: "uid-of-update"}}
	for _, change := range changes {
		change(u)
	}
	return u
}

func settled(u *autov1alpha1.Update) { u.MarkSucceeded(metav1.NewTime(noon)) }

func taken(phase autov1alpha1.RunPhase) func(*autov1alpha1.Update) {
	return func(u *autov1alpha1.Update) {
		u.Status.Run = &autov1alpha1.RunStatus{PodUID: "uid-of-pod", Phase: phase}
	}
}

func lockedWorkspace() *autov1alpha1.Workspace {
	ws := &autov1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
	ws.Status.Run = &autov1alpha1.RunLock{Name: "app-1", UID: "uid-of-update"}
	return ws
}

func TestWorldReadsNoMoreThanADecisionRestsOn(t *testing.T) {
	program := &pulumiv1.Program{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 7}}
	cases := map[string]struct {
		stack   *pulumiv1.Stack
		objects map[string]any
		asked   []string
		source  stack.Source
		ended   bool
	}{
		"A Stack in step costs one read": {
			stack: aStack(), objects: map[string]any{programs + "web": program},
			asked: []string{programs + "web"}, source: stack.Source{Revision: "7"}},
		"A Stack without a source costs none": {
			stack: aStack(func(s *pulumiv1.Stack) { s.Spec.ProgramRef = nil })},
		"A Program without a name is not asked for": {
			stack: aStack(func(s *pulumiv1.Stack) { s.Spec.ProgramRef.Name = "" })},
		"A Program that is missing is a problem": {
			stack: aStack(), asked: []string{programs + "web"},
			source: stack.Source{Problem: "Program web does not exist in namespace team; create it, or correct programRef"}},
		"A claim needs its Update and the Workspace": {
			stack: aStack(claims), objects: map[string]any{programs + "web": program, updates + "app-1": anUpdate()},
			asked: []string{updates + "app-1", workspaces + "app", programs + "web"}, source: stack.Source{Revision: "7"}},
		"A claim's own lock needs no more": {
			stack: aStack(claims), objects: map[string]any{programs + "web": program, updates + "app-1": anUpdate(), workspaces + "app": lockedWorkspace()},
			asked: []string{updates + "app-1", workspaces + "app", programs + "web"}, source: stack.Source{Revision: "7"}},
		"A lock of another needs its holder": {
			stack: aStack(deleted), objects: map[string]any{programs + "web": program, workspaces + "app": lockedWorkspace(), updates + "app-1": anUpdate()},
			asked: []string{workspaces + "app", updates + "app-1", programs + "web"}, source: stack.Source{Revision: "7"}},
		"A lock whose holder is gone is nobody's": {
			stack: aStack(deleted), objects: map[string]any{programs + "web": program, workspaces + "app": lockedWorkspace()},
			asked: []string{workspaces + "app", updates + "app-1", programs + "web"}, source: stack.Source{Revision: "7"}, ended: true},
		"A destroy that does without its source does not ask for it": {
			stack: aStack(deleted, func(s *pulumiv1.Stack) {
				s.Spec.DestroyOnFinalize, s.Status.ProjectInfo = true, &pulumiv1.ProjectInfo{Name: "web"}
			}),
			asked: []string{workspaces + "app"}},
		"Prerequisites are read, those that are missing are not there": {
			stack: aStack(func(s *pulumiv1.Stack) {
				s.Spec.ProgramRef, s.Spec.Prerequisites = nil, []pulumiv1.PrerequisiteRef{{Name: "net"}, {Name: "db"}}
			}),
			objects: map[string]any{stackPath + "net": aStack()},
			asked:   []string{stackPath + "net", stackPath + "db"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &server{objects: c.objects}
			w, err := World(t.Context(), clientsOf(t, s).Pulumi, c.stack)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, path := range c.asked {
				want = append(want, "GET "+path)
			}
			if diff := cmp.Diff(want, s.asked); diff != "" {
				t.Errorf("asked: -want +got:\n%s", diff)
			}
			if w.Source != c.source || w.HolderEnded != c.ended || w.Stack != c.stack {
				t.Errorf("world = %+v", w)
			}
			_, update := c.objects[updates+"app-1"]
			_, workspace := c.objects[workspaces+"app"]
			_, other := c.objects[stackPath+"net"]
			if (w.Update != nil) != (update && c.stack.Status.CurrentUpdate != nil) || (w.Workspace != nil) != workspace || len(w.Prerequisites) == 1 != other {
				t.Errorf("world = %+v", w)
			}
		})
	}
}

func TestAWorldThatCannotBeReadIsAnError(t *testing.T) {
	for name, s := range map[string]*pulumiv1.Stack{
		"update": aStack(claims), "workspace": aStack(deleted), "program": aStack(),
		"prerequisite": aStack(func(s *pulumiv1.Stack) {
			s.Spec.ProgramRef, s.Spec.Prerequisites = nil, []pulumiv1.PrerequisiteRef{{Name: "net"}}
		}),
	} {
		_, err := World(t.Context(), clientsOf(t, &server{down: true}).Pulumi, s)
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "cannot get "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHolderEnded(t *testing.T) {
	cases := map[string]struct {
		holder *autov1alpha1.Update
		want   bool
	}{
		"It is gone":                         {nil, true},
		"It is another of its name":          {anUpdate(func(u *autov1alpha1.Update) { u.UID = "uid-of-another" }), true},
		"It is not settled":                  {anUpdate(), false},
		"It is not settled, though it ended": {anUpdate(taken(autov1alpha1.RunEnded)), false},
		"It is settled, and was never taken": {anUpdate(settled), true},
		"It is settled, and its run goes on": {anUpdate(settled, taken(autov1alpha1.RunRunning)), false},
		"It is settled, and nobody knows":    {anUpdate(settled, taken(autov1alpha1.RunUnknown)), false},
		"It is settled, and its run ended":   {anUpdate(settled, taken(autov1alpha1.RunEnded)), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &server{objects: map[string]any{}}
			if c.holder != nil {
				s.objects[updates+"app-1"] = c.holder
			}
			got, err := HolderEnded(t.Context(), clientsOf(t, s).Pulumi, lockedWorkspace())
			if err != nil || got != c.want {
				t.Errorf("HolderEnded = %v, %v", got, err)
			}
		})
	}
	if got, err := HolderEnded(t.Context(), nil, &autov1alpha1.Workspace{}); err != nil || !got {
		t.Errorf("Without a lock it is %v, %v", got, err)
	}
}

func TestTheWritesOfAnAlarm(t *testing.T) {
	owner := aStack()
	about := event.Ref{Kind: event.KindStack, Namespace: "team", Name: "app"}
	alarms := func(t *testing.T, s *server) *Alarms {
		return &Alarms{Client: clientsOf(t, s).Dynamic, BrokerNamespace: "updraft-system", BrokerName: "updraft"}
	}
	set := alarms(t, &server{}).pingSource(owner, "pulumi.com/v1", about, noon, noon)
	set.SetResourceVersion("41")
	set.SetUID("uid-of-alarm")
	there := map[string]any{alarm: set.Object}
	get, create, update, remove := "GET "+alarm, "POST "+strings.TrimSuffix(alarm, "/updraft-stack-app"), "PUT "+alarm, "DELETE "+alarm
	conflicted := conflict.Status()
	existed := made.Status()
	cases := map[string]struct {
		server *server
		do     func(*Alarms) error
		want   []string
		fails  bool
	}{
		"Where none is, one is made":            {&server{}, func(a *Alarms) error { return a.Set(t.Context(), owner, "pulumi.com/v1", about, noon, noon) }, []string{get, create}, false},
		"One that is set already is left alone": {&server{objects: there}, func(a *Alarms) error { return a.Set(t.Context(), owner, "pulumi.com/v1", about, noon, noon) }, []string{get}, false},
		"One of another time is set anew": {&server{objects: there}, func(a *Alarms) error {
			return a.Set(t.Context(), owner, "pulumi.com/v1", about, noon.Add(1), noon)
		}, []string{get, update}, false},
		"One that was made meanwhile is left": {&server{refuse: &existed}, func(a *Alarms) error { return a.Set(t.Context(), owner, "pulumi.com/v1", about, noon, noon) }, []string{get, create}, false},
		"One that was set meanwhile is a conflict": {&server{objects: there, refuse: &conflicted}, func(a *Alarms) error {
			return a.Set(t.Context(), owner, "pulumi.com/v1", about, noon.Add(1), noon)
		}, []string{get, update}, true},
		"One is cleared":                          {&server{objects: there}, func(a *Alarms) error { return a.Clear(t.Context(), about) }, []string{get, remove}, false},
		"Where none is, there is none to clear":   {&server{}, func(a *Alarms) error { return a.Clear(t.Context(), about) }, []string{get}, false},
		"Another one since is not cleared":        {&server{objects: there, refuse: &conflicted}, func(a *Alarms) error { return a.Clear(t.Context(), about) }, []string{get, remove}, false},
		"What cannot be read is an error, to set": {&server{down: true}, func(a *Alarms) error { return a.Set(t.Context(), owner, "pulumi.com/v1", about, noon, noon) }, []string{get}, true},
		"What cannot be read is one, to clear":    {&server{down: true}, func(a *Alarms) error { return a.Clear(t.Context(), about) }, []string{get}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.do(alarms(t, c.server))
			if (err != nil) != c.fails || err != nil && !c.server.down && !apierrors.IsConflict(err) {
				t.Errorf("error = %v", err)
			}
			if diff := cmp.Diff(c.want, c.server.asked); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for i, asked := range c.server.asked {
				body := c.server.bodies[i]
				if asked == update && !strings.Contains(body, `"resourceVersion":"41"`) {
					t.Errorf("An update carries what was read: %s", body)
				}
				if asked == remove && !strings.Contains(body, `"uid":"uid-of-alarm"`) {
					t.Errorf("A deletion is of the one that was read: %s", body)
				}
			}
		})
	}
}

func TestDeleteRun(t *testing.T) {
	job := func(owner types.UID, changes ...func(*batchv1.Job)) *batchv1.Job {
		yes := true
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "app-1", UID: "uid-of-job",
			OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: &yes}},
		}}
		for _, change := range changes {
			change(j)
		}
		return j
	}
	get, remove := "GET "+jobs+"app-1", "DELETE "+jobs+"app-1"
	cases := map[string]struct {
		job  any
		want []string
	}{
		"Its Job is deleted":            {job("uid-of-update"), []string{get, remove}},
		"Another's Job stays":           {job("uid-of-another"), []string{get}},
		"A Job that goes is left alone": {job("uid-of-update", func(j *batchv1.Job) { t := metav1.NewTime(noon); j.DeletionTimestamp = &t }), []string{get}},
		"A Job that is gone is gone":    {nil, []string{get}},
		"A Job that nobody owns stays":  {job("uid-of-update", func(j *batchv1.Job) { j.OwnerReferences = nil }), []string{get}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &server{objects: map[string]any{}}
			if c.job != nil {
				s.objects[jobs+"app-1"] = c.job
			}
			if err := DeleteRun(t.Context(), clientsOf(t, s).Batch, anUpdate()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.asked); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(s.asked) == 2 && (!strings.Contains(s.bodies[1], "uid-of-job") || !strings.Contains(s.bodies[1], "Background")) {
				t.Errorf("delete options = %s", s.bodies[1])
			}
		})
	}
	if err := DeleteRun(t.Context(), clientsOf(t, &server{down: true}).Batch, anUpdate()); err == nil {
		t.Error("What cannot be read is no error")
	}
}
