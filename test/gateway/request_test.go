package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/record"
)

// patience is how long anything may take on a busy machine.
const patience = 3 * time.Minute

// user is one with kubectl, and with a token for the gateway that was made with
// it, as docs/events-in.md says.
type user struct {
	*testing.T
	clients *record.Clients
	token   string
}

func newUser(t *testing.T) *user {
	t.Helper()
	clients, err := record.NewClients(environment.Config)
	if err != nil {
		t.Fatal(err)
	}
	u := &user{T: t, clients: clients}
	u.kubectl("create", "serviceaccount", "ci")
	u.kubectl("create", "rolebinding", "ci", "--clusterrole", "updraft-edit", "--serviceaccount", "default:ci")
	u.token = strings.TrimSpace(u.kubectl("create", "token", "ci", "--audience", "updraft-gateway"))
	return u
}

func (u *user) kubectl(arguments ...string) string {
	u.Helper()
	command := exec.CommandContext(u.Context(), filepath.Join(bin, "kubectl"), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+environment.Kubeconfig)
	out, err := command.CombinedOutput()
	if err != nil {
		u.Fatalf("kubectl %v: %v\n%s", arguments, err, out)
	}
	return string(out)
}

// answer is what of a response counts: a request that was taken has no body.
type answer struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// send is what curl sends in docs/events-in.md.
func (u *user) send(operation, id, stack string) answer {
	u.Helper()
	r, err := http.NewRequestWithContext(u.Context(), http.MethodPost, environment.Functions["updraft-gateway"], http.NoBody)
	if err != nil {
		u.Fatal(err)
	}
	for key, value := range map[string]string{
		"Authorization": "Bearer " + u.token, "Ce-Specversion": "1.0", "Ce-Type": "dev.updraft.request." + operation,
		"Ce-Source": "/ci", "Ce-Id": id, "Ce-Subject": "default/" + stack,
	} {
		r.Header.Set(key, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		u.Fatal(err)
	}
	_ = response.Body.Close()
	return answer{response.StatusCode, response.Status, response.Header}
}

func (u *user) accepted(operation, id, stack string) answer {
	u.Helper()
	response := u.send(operation, id, stack)
	if response.StatusCode != http.StatusAccepted {
		u.Fatalf("%s: %s", operation, response.Status)
	}
	return response
}

func (u *user) eventually(what string, is func() error) {
	u.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = is(); err == nil {
			return
		}
	}
	u.Fatalf("waited for: %s: %v", what, err)
}

func (u *user) stack(name string) *pulumiv1.Stack {
	u.Helper()
	s, err := u.clients.Pulumi.PulumiV1().Stacks("default").Get(u.Context(), name, metav1.GetOptions{})
	if err != nil {
		u.Fatal(err)
	}
	return s
}

// rests waits until the Stack has taken its last request and is Ready.
func (u *user) rests(name string) *pulumiv1.Stack {
	u.Helper()
	var s *pulumiv1.Stack
	u.eventually("Stack "+name+" is Ready", func() error {
		s = u.stack(name)
		for _, c := range s.Status.Conditions {
			if c.Type == pulumiv1.ReadyCondition && c.Status == metav1.ConditionTrue && s.Status.CurrentUpdate == nil &&
				s.Status.ObservedReconcileRequest == s.Annotations[pulumiv1.AnnotationReconcileRequest] {
				return nil
			}
		}
		return fmt.Errorf("%+v", s.Status)
	})
	return s
}

func (u *user) updates() []autov1alpha1.Update {
	u.Helper()
	list, err := u.clients.Pulumi.AutoV1alpha1().Updates("default").List(u.Context(), metav1.ListOptions{})
	if err != nil {
		u.Fatal(err)
	}
	return list.Items
}

// settled waits for the Update that an answer names.
func (u *user) settled(response answer) *autov1alpha1.Update {
	u.Helper()
	location := response.Header.Get("Location")
	var update *autov1alpha1.Update
	u.eventually(location+" is Complete", func() (err error) {
		update, err = u.clients.Pulumi.AutoV1alpha1().Updates("default").Get(u.Context(), filepath.Base(location), metav1.GetOptions{})
		if err == nil && !update.Settled() {
			err = fmt.Errorf("%+v", update.Status)
		}
		return err
	})
	return update
}

func TestRequestsEndInRuns(t *testing.T) {
	u := newUser(t)
	u.kubectl("apply", "-f", filepath.Join("..", "..", "samples", "hello"))
	u.rests("hello")
	first := len(u.updates())

	t.Run("the same event five times, and at the same time, is one update", func(t *testing.T) {
		var wait sync.WaitGroup
		for range 5 {
			wait.Go(func() {
				if got := u.send("update", "1", "hello"); got.StatusCode != http.StatusAccepted {
					t.Error(got.Status)
				}
			})
		}
		wait.Wait()
		u.rests("hello")
		u.accepted("update", "1", "hello")
		s := u.rests("hello")
		if got := len(u.updates()); got != first+1 {
			t.Errorf("%d Updates, want %d", got, first+1)
		}
		update, err := u.clients.Pulumi.AutoV1alpha1().Updates("default").Get(t.Context(), s.Status.LastUpdate.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(*update.Spec.Message, "by system:serviceaccount:default:ci") {
			t.Errorf("the Update does not say who asked: %s", *update.Spec.Message)
		}
	})
	t.Run("another event, and the first once more, is one more", func(t *testing.T) {
		u.accepted("update", "2", "hello")
		u.rests("hello")
		u.accepted("update", "1", "hello")
		u.rests("hello")
		if got := len(u.updates()); got != first+2 {
			t.Errorf("%d Updates, want %d", got, first+2)
		}
	})
	t.Run("preview and refresh run as by hand", func(t *testing.T) {
		for _, operation := range []string{"preview", "refresh"} {
			update := u.settled(u.accepted(operation, operation, "hello"))
			if update.Status.Result == nil || update.Status.Result.State != autov1alpha1.ResultSucceeded || string(update.Spec.Type) != operation {
				t.Errorf("%s: %+v", operation, update.Status)
			}
		}
		u.rests("hello")
	})
	t.Run("without a right nothing changes", func(t *testing.T) {
		before := u.stack("hello").ResourceVersion
		u.kubectl("create", "serviceaccount", "guest")
		guest := *u
		guest.token = strings.TrimSpace(u.kubectl("create", "token", "guest", "--audience", "updraft-gateway"))
		if got := guest.send("update", "3", "hello"); got.StatusCode != http.StatusForbidden {
			t.Error(got.Status)
		}
		guest.token = strings.TrimSpace(u.kubectl("create", "token", "ci"))
		if got := guest.send("update", "3", "hello"); got.StatusCode != http.StatusUnauthorized {
			t.Error(got.Status)
		}
		if after := u.stack("hello").ResourceVersion; before != after {
			t.Errorf("it changed from %s to %s", before, after)
		}
	})
	t.Run("a cancel stops what runs", func(t *testing.T) {
		response := u.accepted("update", "4", "hello")
		if response.Header.Get("Updraft-Repeated") != "" {
			t.Fatal("it is a repeat")
		}
		u.eventually("there is something to cancel", func() error {
			switch got := u.send("cancel", "5", "hello"); got.StatusCode {
			case http.StatusAccepted:
				return nil
			case http.StatusUnprocessableEntity: // it has not begun
				return errors.New(got.Status)
			default:
				t.Fatal(got.Status)
				return nil
			}
		})
		u.eventually("it is cancelled", func() error {
			if last := u.stack("hello").Status.LastUpdate; last == nil || last.Reason != string(autov1alpha1.ReasonCanceled) {
				return fmt.Errorf("%+v", last)
			}
			return nil
		})
	})
	t.Run("a destroy runs as by hand", func(t *testing.T) {
		update := u.settled(u.accepted("destroy", "6", "hello"))
		if update.Status.Result == nil || update.Status.Result.State != autov1alpha1.ResultSucceeded {
			t.Errorf("%+v", update.Status)
		}
	})
	u.kubectl("delete", "stack", "hello", "--timeout=120s")
}
