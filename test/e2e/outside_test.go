//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// outsideManifest is test/e2e/outside as a pod that can be reached.
func outsideManifest() string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: outside}
spec:
  selector: {matchLabels: {app: outside}}
  template:
    metadata: {labels: {app: outside}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: outside
        image: ` + os.Getenv("OUTSIDE_IMAGE") + `
        ports: [{containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: 8080}}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Service
metadata: {name: outside}
spec:
  selector: {app: outside}
  ports: [{port: 80, targetPort: 8080}]
`
}

// outside brings test/e2e/outside up in the test's namespace.
func (s *space) outside() {
	s.Helper()
	s.apply(outsideManifest())
	s.kubectl("rollout", "status", "deployment/outside", "--timeout="+patience.String())
}

func outsideURL(namespace string) string { return "http://outside." + namespace + ".svc" }

// atOutside is a request to it through the API server.
func atOutside(r *rest.Request, namespace, path string) *rest.Request {
	return r.Namespace(namespace).Resource("services").Name("outside:80").SubResource("proxy").Suffix(path)
}

func (s *space) askOutside(path string, body []byte) []byte {
	s.Helper()
	out, err := atOutside(cluster.clients.Core.RESTClient().Post(), s.namespace, path).Body(body).DoRaw(s.Context())
	if err != nil {
		s.Fatalf("POST to outside/%s: %v: %s", path, err, out)
	}
	return out
}

// answer is what a request from outside came to.
type answer struct {
	Status int
	Header http.Header
	Body   string
	Took   time.Duration // until its header came
}

// send sends a request from outside.
func (s *space) send(url string, header map[string]string, body string) answer {
	s.Helper()
	asked, err := json.Marshal(map[string]any{"URL": url, "Header": header, "Body": body})
	if err != nil {
		s.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(s.askOutside("send", asked), &a); err != nil {
		s.Fatal(err)
	}
	return a
}

// TestOtherSystemsAreTold leaves to the witness that each event is as it should be.
func TestOtherSystemsAreTold(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(strings.Replace(failing, "Hello, ", toldNever[0], 1))
	s.apply(s.stackOf("app", `
config: {text: `+toldNever[1]+`}
envRefs: {PULUMI_CONFIG_PASSPHRASE: {type: Literal, literal: {value: `+toldNever[2]+`}}}
`))
	s.awaitReason(patience, "app", "RetryingAfterFailure", "missing.txt")
	s.kubectl("patch", "stack", "app", "--type", "json", "-p", `[{"op": "remove", "path": "/spec/config"}]`)
	s.program()
	s.awaitReady("app")
	// What became of a Stack is told once that is written, and of one that is gone only that.
	s.awaitTold("run.started", "run.finished", "stack.failed", "stack.succeeded")
	s.kubectl("delete", "stack", "app", "--wait=false")
	s.awaitGone("app")
	s.awaitTold("stack.deleted")
}

// awaitTold waits until the witness was told events of these types in the namespace.
func (s *space) awaitTold(types ...string) {
	s.Helper()
	s.within(patience, "it is told", func() error {
		events, _, err := cluster.witness.events(s.Context())
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, e := range events {
			if e.Extensions()["namespace"] == s.namespace {
				seen[strings.TrimPrefix(e.Type(), "dev.updraft.")] = true
			}
		}
		for _, want := range types {
			if !seen[want] {
				return fmt.Errorf("%s is not among %v", want, seen)
			}
		}
		return nil
	})
}

// TestTheGatewayTakesEventsFromOutside goes from zero: nothing of ours runs when
// the event comes.
func TestTheGatewayTakesEventsFromOutside(t *testing.T) {
	s := newSpace(t)
	s.outside()
	s.program()
	s.apply(s.stackOf("app", ""))
	first := s.awaitReady("app")
	s.kubectl("create", "serviceaccount", "ci")
	s.kubectl("create", "serviceaccount", "nobody")
	s.kubectl("create", "rolebinding", "ci", "--clusterrole=updraft-edit", "--serviceaccount="+s.namespace+":ci")
	token := func(account, audience string) string {
		return s.kubectl("create", "token", account, "--audience", audience)
	}
	send := func(token, id, subject string) answer {
		header := map[string]string{
			"Ce-Specversion": "1.0", "Ce-Type": "dev.updraft.request.update", "Ce-Source": "/e2e", "Ce-Id": id, "Ce-Subject": subject,
		}
		if token != "" {
			header["Authorization"] = "Bearer " + token
		}
		return s.send("http://updraft-gateway."+systemNamespace+".svc.cluster.local", header, "")
	}
	about := s.namespace + "/app"
	before := s.stack("app").ResourceVersion
	for name, c := range map[string]struct {
		token, subject string
		want           int
	}{
		"No token":                           {"", about, http.StatusUnauthorized},
		"A token for somebody else":          {token("ci", "another"), about, http.StatusUnauthorized},
		"A token without rights":             {token("nobody", "updraft-gateway"), about, http.StatusForbidden},
		"A token with rights, not there":     {token("ci", "updraft-gateway"), "kube-system/app", http.StatusForbidden},
		"A token with rights, no such Stack": {token("ci", "updraft-gateway"), s.namespace + "/other", http.StatusNotFound},
	} {
		if got := send(c.token, "refused", c.subject); got.Status != c.want || got.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: the answer is %+v, want %d", name, got, c.want)
		}
	}
	if after := s.stack("app").ResourceVersion; after != before {
		t.Error("what was refused has changed the Stack")
	}
	s.awaitZero()
	good := token("ci", "updraft-gateway")
	for i := range 5 {
		got := send(good, "build-1", about)
		if got.Status != http.StatusAccepted {
			t.Fatalf("event %d: the answer is %+v", i+1, got)
		}
		t.Logf("event %d was answered after %s", i+1, got.Took)
	}
	s.await(patience, "app", "has run once more", func(stack *pulumiv1.Stack) bool {
		return isReady(stack) && stack.Status.LastUpdate.Name != first.Status.LastUpdate.Name
	})
	s.awaitZero()
	updates, err := cluster.clients.Pulumi.AutoV1alpha1().Updates(s.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(updates.Items) != 2 {
		t.Errorf("there are %d Updates, want the first and one for five events (%v)", len(updates.Items), err)
	}
}
