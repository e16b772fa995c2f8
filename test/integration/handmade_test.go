package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/run"
)

// byHand makes an Update as a user would.
func (s *space) byHand(name, workspace, stack string, kind autov1alpha1.UpdateType) *autov1alpha1.Update {
	s.Helper()
	u, err := s.pulumi.AutoV1alpha1().Updates(s.namespace).Create(s.Context(), &autov1alpha1.Update{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       autov1alpha1.UpdateSpec{WorkspaceName: workspace, StackName: stack, Type: kind},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return u
}

// waitsFor says whether an Update waits for a reason.
func waitsFor(reason autov1alpha1.ConditionReason) func(*autov1alpha1.Update) bool {
	return func(u *autov1alpha1.Update) bool {
		c := meta.FindStatusCondition(u.Status.Conditions, autov1alpha1.UpdateProgressing)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == string(reason) && c.Message != ""
	}
}

func succeeded(u *autov1alpha1.Update) bool {
	return u.Settled() && u.Status.Result != nil && u.Status.Result.State == autov1alpha1.ResultSucceeded
}

// TestUpdatesOfOneWorkspaceRunOneAfterAnother relies on the observer for "never
// two at a time".
func TestUpdatesOfOneWorkspaceRunOneAfterAnother(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	g := newGate(t)
	g.open("open")
	s.program("reads", reads)
	s.create(s.stackOf("app", "reads", config("file", g.path)))
	s.awaitReady("app")
	s.awaitRest()

	g.close()
	s.byHand("first", "app", "app", autov1alpha1.PreviewType)
	g.reached()
	others := []string{"second", "third"}
	s.byHand("second", "app", "app", autov1alpha1.RefreshType)
	s.byHand("third", "app", "app", autov1alpha1.PreviewType)
	for _, name := range others {
		u := s.awaitUpdate(name, "waits", waitsFor(autov1alpha1.ReasonWorkspaceBusy))
		if c := meta.FindStatusCondition(u.Status.Conditions, autov1alpha1.UpdateProgressing); !strings.Contains(c.Message, "Update first") {
			t.Errorf("%s is told to wait for: %s", name, c.Message)
		}
	}
	// A Stack that changes waits for the Workspace too.
	s.change("app", config("other", "value"))
	g.open("passed")
	for _, name := range append(others, "first") {
		s.awaitUpdate(name, "has succeeded", succeeded)
	}
	s.awaitReady("app")
	s.awaitRest()
	for _, name := range others {
		if u := s.update(name); run.Taken(u) && u.Status.StartTime.Before(&s.update("first").Status.EndTime) {
			t.Errorf("%s began before the first had ended", name)
		}
	}
	if n := s.operations("state", "reads", "app"); n != 3 {
		t.Errorf("the state has %d operations, want up, refresh, up", n)
	}
}

func TestAnUpdateOfAMissingWorkspaceWaitsAndRunsOnceItIsThere(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.byHand("early", "own", "dev", autov1alpha1.UpType)
	s.awaitUpdate("early", "waits", waitsFor(autov1alpha1.ReasonWorkspaceNotFound))

	s.program("greets", greets)
	ws := &autov1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	s.parse(`
program: {name: greets}
env:
- {name: PULUMI_BACKEND_URL, value: "file://$(UPDRAFT_ROOT)/state?create_dir=true"}
- {name: PULUMI_CONFIG_PASSPHRASE, value: passphrase}
stacks: [{name: dev, create: true, config: [{key: name, value: hand}]}]
podTemplate:
  spec:
    containers: [{name: pulumi, volumeMounts: [{name: state, mountPath: /share/state}]}]
    volumes: [{name: state, persistentVolumeClaim: {claimName: state}}]
`, &ws.Spec)
	if _, err := s.pulumi.AutoV1alpha1().Workspaces(s.namespace).Create(t.Context(), ws, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	u := s.awaitUpdate("early", "has succeeded", succeeded)
	if got := string(u.Status.Result.Outputs["message"].Raw); got != `"Hello, hand!"` {
		t.Errorf("the output is %s", got)
	}
	s.awaitRest()

	// A destroy by hand, after which all can be deleted.
	s.byHand("late", "own", "dev", autov1alpha1.DestroyType)
	s.awaitUpdate("late", "has succeeded", succeeded)
	s.awaitRest()
	s.kubectl("delete", "updates,workspaces,programs", "--all", "--timeout=60s")
	s.awaitNothing()
}

func TestAnUpdateThatCannotBeRunIsSettledAsInvalid(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	for name, c := range map[string]struct {
		workspace, stack string
		kind             autov1alpha1.UpdateType
		want             string
	}{
		"type":      {"own", "dev", "import", `spec.type: unsupported update type "import"`},
		"untyped":   {"own", "dev", "", `spec.type: unsupported update type ""`},
		"workspace": {"", "dev", autov1alpha1.UpType, "spec.workspaceName: "},
		"stack":     {"own", "", autov1alpha1.UpType, "spec.stackName: "},
	} {
		s.byHand(name, c.workspace, c.stack, c.kind)
		u := s.awaitUpdate(name, "is settled", func(u *autov1alpha1.Update) bool { return u.Settled() })
		if u.FailedReason() != autov1alpha1.ReasonInvalid || !strings.HasPrefix(u.Status.Message, c.want) {
			t.Errorf("%s: %s: %s", name, u.FailedReason(), u.Status.Message)
		}
	}
	s.awaitRest()
	s.kubectl("delete", "updates", "--all", "--timeout=60s")
}

func TestAnUpdateThatWaitsCanBeDeleted(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.byHand("early", "own", "dev", autov1alpha1.UpType)
	s.awaitUpdate("early", "waits", waitsFor(autov1alpha1.ReasonWorkspaceNotFound))
	s.kubectl("delete", "update", "early", "--timeout=60s")
	u := s.awaitUpdate("early", "is settled", func(u *autov1alpha1.Update) bool { return u.Settled() })
	if u.FailedReason() != autov1alpha1.ReasonCanceled {
		t.Errorf("it is settled as %s", u.FailedReason())
	}
}

func TestAWorkspaceThatIsDeletedInMidRunGoesWhenTheRunHasEnded(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, lab.main, plain))
	h.kubectl("delete", "workspace", "app", "--wait=false")
	h.eventually("the Workspace is being deleted", func() error {
		ws := h.workspaces()
		if len(ws) != 1 || ws[0].DeletionTimestamp == nil || ws[0].Status.Run == nil {
			return fmt.Errorf("%+v", ws)
		}
		return nil
	})
	h.gate.open("ended")
	h.eventually("the Workspace is gone or new, and no longer locked", func() error {
		for _, ws := range h.workspaces() {
			if ws.DeletionTimestamp != nil || ws.Status.Run != nil {
				return errors.New("it is there")
			}
		}
		return nil
	})
	h.request("app", "again")
	h.awaitReady("app")
	h.awaitRest()
}
