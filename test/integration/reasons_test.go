package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

// The tests of this file provoke the reasons that no other test is about. That
// each reason of the runbook is provoked is checked when all tests have run.

func TestALockOfSomebodyElseStallsTheStackAndIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSpace(t, moving(t), plain)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets"))
	s.awaitReady("app")
	lock := filepath.Join(s.backend("state"), "locks", "organization", "greets", "app", "6f1c4a30-0000-4000-8000-000000000000.json")
	text := `{"pid": 4711, "username": "ada", "hostname": "elsewhere", "timestamp": "2026-01-01T00:00:00Z"}`
	for _, err := range []error{os.MkdirAll(filepath.Dir(lock), 0o700), os.WriteFile(lock, []byte(text), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.request("app", "while it is locked")
	s.exhaust("app")
	stalled := awaitReason(s, "app", pulumiv1.StalledUpdateConflict)
	if last := stalled.Status.LastUpdate; last.Reason != string(autov1alpha1.ReasonUpdateConflict) ||
		!strings.Contains(last.Message, "locked by ada@elsewhere") || !strings.Contains(last.Message, "pulumi cancel") {
		t.Errorf("it is told as %s", summary(stalled))
	}
	if err := os.Remove(lock); err != nil {
		t.Fatalf("somebody else's lock was taken away: %v", err)
	}
	s.request("app", "once it is free")
	s.awaitReady("app")
}

// TestAnAccessTokenThatIsRefusedIsTold has a fake of Pulumi Cloud, which cannot
// be had in a test: it refuses everybody.
func TestAnAccessTokenThatIsRefusedIsTold(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, `{"code": 401, "message": "Unauthorized: No credentials provided or are invalid."}`)
	}))
	t.Cleanup(cloud.Close)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets", spec(fmt.Sprintf("backend: %s\nenvRefs: {PULUMI_ACCESS_TOKEN: {type: Literal, literal: {value: pul-no}}}", cloud.URL))))
	failed := s.await("app", "has failed", func(stack *pulumiv1.Stack) bool { return stack.Status.LastUpdate != nil })
	if last := failed.Status.LastUpdate; last.Reason != string(autov1alpha1.ReasonInvalidAccessToken) {
		t.Errorf("it is told as %s", summary(failed))
	}
}

func TestAPreviewThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	g := newGate(t)
	g.remove()
	s.program("reads", reads)
	s.create(s.stackOf("app", "reads", config("file", g.path), func(stack *pulumiv1.Stack) { stack.Spec.Preview = true }))
	failed := awaitReason(s, "app", pulumiv1.ReconcilingPreviewFailed)
	if !strings.Contains(message(failed), "no such file or directory") {
		t.Errorf("it is told as %s", summary(failed))
	}
	g.openNext("at last")
	s.request("app", "now")
	s.awaitReady("app")
}

func TestAnUpdateOfAProgramThatIsMissingWaits(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	ws := &autov1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: autov1alpha1.WorkspaceSpec{Program: &autov1alpha1.ProgramSource{Name: "absent"}}}
	if _, err := s.pulumi.AutoV1alpha1().Workspaces(s.namespace).Create(t.Context(), ws, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.byHand("early", "own", "dev", autov1alpha1.UpType)
	s.awaitUpdate("early", "waits", waitsFor(autov1alpha1.ReasonWorkspaceNotReady))
	s.kubectl("delete", "update", "early", "--timeout=60s")
}

// TestAnUpdateThatWaitsWhileItsStackIsDeletedIsSuperseded holds the Workspace by
// an Update that somebody made by hand.
func TestAnUpdateThatWaitsWhileItsStackIsDeletedIsSuperseded(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	g := newGate(t)
	g.open("open")
	s.program("reads", reads)
	s.create(s.stackOf("app", "reads", destroyed, config("file", g.path)))
	s.awaitReady("app")
	s.awaitRest()
	g.close()
	s.byHand("holder", "app", "app", autov1alpha1.PreviewType)
	g.reached()
	s.request("app", "never run")
	claimed := s.await("app", "waits", func(stack *pulumiv1.Stack) bool { return stack.Status.CurrentUpdate != nil }).Status.CurrentUpdate.Name
	s.awaitUpdate(claimed, "waits", waitsFor(autov1alpha1.ReasonWorkspaceBusy))
	s.delete("app", background)
	g.open("go")
	superseded := s.awaitUpdate(claimed, "is settled", func(u *autov1alpha1.Update) bool { return u.Settled() })
	if superseded.FailedReason() != autov1alpha1.ReasonSuperseded || run.Taken(superseded) {
		t.Errorf("it is settled as %s: %s", superseded.FailedReason(), superseded.Status.Message)
	}
	s.awaitGone("app")
	if n := s.operations("state", "reads", "app"); n != 2 {
		t.Errorf("the state has %d operations, want up and destroy", n)
	}
}

func TestAFailureThatIsNotToldApartIsUnknown(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, lab.main, plain))
	uid := string(h.watch.update(h.namespace, h.update).UID)
	answered := h.report(event.TypeRunFinished, h.token(h.pod(), run.TokenAudience),
		event.Finished{UID: uid, State: string(autov1alpha1.ResultFailed), Reason: "Splendid", Message: "It went wrong"})
	if answered != http.StatusNoContent {
		t.Errorf("the report is answered %d", answered)
	}
	h.awaitSettled(autov1alpha1.ReasonUnknown)
	h.gate.open("passed")
	h.awaitReady("app")
}
