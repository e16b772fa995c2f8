package integration

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// held is a Stack whose first run stands at a gate.
type held struct {
	*space
	gate   *gate
	stack  *pulumiv1.Stack
	update string
}

// hold makes a Stack app and waits until its run stands at the gate, and says
// so.
func hold(s *space, changes ...func(*pulumiv1.Stack)) *held {
	s.Helper()
	h := &held{space: s, gate: newGate(s.T)}
	s.program("reads", reads)
	s.create(s.stackOf("app", "reads", append(changes, config("file", h.gate.path))...))
	h.gate.reached()
	h.stack = s.get("app")
	h.update = h.stack.Status.CurrentUpdate.Name
	s.awaitUpdate(h.update, "runs", func(u *autov1alpha1.Update) bool {
		return u.Status.Run != nil && u.Status.Run.Phase == autov1alpha1.RunRunning
	})
	if locks := s.locks("state"); len(locks) != 1 {
		s.Fatalf("the backend has the locks %v, want one", locks)
	}
	// The CLI writes the state beside the program that stands at the gate: who is
	// killed in that write leaves half a file, which no later run can read.
	s.eventually("the state is written", func() error {
		resources, err := s.stateOf("state", "reads", "app")
		if err == nil && resources == 0 {
			err = errors.New("it has no resources")
		}
		return err
	})
	return h
}

// awaitSettled waits until the held Update is settled for a reason.
func (h *held) awaitSettled(reasons ...autov1alpha1.ConditionReason) *autov1alpha1.Update {
	h.Helper()
	return h.awaitUpdate(h.update, fmt.Sprintf("is settled as %v", reasons), func(u *autov1alpha1.Update) bool {
		for _, reason := range reasons {
			if u.Settled() && u.FailedReason() == reason {
				return true
			}
		}
		return false
	})
}

// pod is the one that runs the held Update.
func (h *held) pod() string { return h.watch.update(h.namespace, h.update).Status.Run.PodName }

// killAgent kills the agent that runs in a pod, and nothing else.
func (h *held) killAgent() {
	h.Helper()
	folders := filepath.Join(h.options.Dir, "pods", h.namespace+"_"+h.pod()+"_")
	killed := 0
	for _, p := range processes() {
		if strings.HasPrefix(p.program, folders) && strings.HasSuffix(p.program, "/share/bin/agent") {
			if err := syscall.Kill(p.pid, syscall.SIGKILL); err == nil {
				killed++
			}
		}
	}
	if killed == 0 {
		h.Fatalf("no agent runs below %s", folders)
	}
}

func TestAnAgentThatIsKilledIsAbortedAndTheNextRunRecoversItsLock(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, lab.main, plain))
	h.killAgent()
	aborted := h.awaitSettled(autov1alpha1.ReasonAborted)
	if !strings.Contains(aborted.Status.Message, "Container pulumi ended with signal 9 before it could report") {
		t.Errorf("it is told as %q", aborted.Status.Message)
	}
	failed := h.awaitFailures("app", 1)
	if current(failed) != string(pulumiv1.ReconcilingRetry) || failed.Status.LastUpdate.Reason != string(autov1alpha1.ReasonAborted) {
		t.Errorf("it is told as %s", summary(failed))
	}
	if locks := h.locks("state"); len(locks) != 1 {
		t.Errorf("the backend has the locks %v, want the one that was left", locks)
	}
	h.gate.open("recovered")
	ready := h.awaitReady("app")
	if got := string(ready.Status.Outputs["message"].Raw); got != `"recovered"` {
		t.Errorf("the output is %s", got)
	}
	if locks := h.locks("state"); len(locks) != 0 {
		t.Errorf("the locks %v are left", locks)
	}
	h.awaitRest()
}

func TestAPodThatIsTakenAwayIsAbortedOnceItIsProvenToHaveEnded(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, moving(t), plain))
	now := int64(0)
	if err := h.kube.CoreV1().Pods(h.namespace).Delete(t.Context(), h.pod(), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	h.awaitUpdate(h.update, "is in doubt", func(u *autov1alpha1.Update) bool {
		return u.Status.Run.Phase == autov1alpha1.RunUnknown || u.Settled()
	})
	h.gate.open("recovered")
	h.eventually("it is aborted", func() error {
		h.clock.move(11 * time.Minute)
		h.dueUpdate(h.update)
		if u := h.watch.update(h.namespace, h.update); !u.Settled() || u.FailedReason() != autov1alpha1.ReasonAborted {
			return fmt.Errorf("%+v", u.Status)
		}
		return nil
	})
	h.eventually("the next run succeeds", func() error {
		h.clock.move(time.Minute)
		h.due("app")
		if stack := h.get("app"); !isReady(stack) {
			return errors.New(summary(stack))
		}
		return nil
	})
	if locks := h.locks("state"); len(locks) != 0 {
		t.Errorf("the locks %v are left", locks)
	}
	h.awaitRest()
}

// expectCanceled checks what a Stack says after its run was cancelled.
func (h *held) expectCanceled() {
	h.Helper()
	stalled := awaitReason(h.space, "app", pulumiv1.StalledUpdateCanceled)
	if last := stalled.Status.LastUpdate; last.Name != h.update || last.Reason != string(autov1alpha1.ReasonCanceled) || !strings.Contains(message(stalled), pulumiv1.AnnotationReconcileRequest) {
		h.Errorf("it is told as %s", summary(stalled))
	}
	h.awaitRest()
	if locks := h.locks("state"); len(locks) != 0 {
		h.Errorf("the locks %v are left", locks)
	}
}

func TestAnUpdateThatIsDeletedInMidRunIsCanceled(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, lab.main, plain))
	h.kubectl("delete", "update", h.update, "--timeout=60s")
	h.awaitSettled(autov1alpha1.ReasonCanceled)
	h.expectCanceled()
	h.gate.open("again")
	h.request("app", "again")
	h.awaitReady("app")
}

func TestTheAnnotationCancelStopsARun(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, lab.main, plain))
	h.change("app", annotated(pulumiv1.AnnotationCancel, h.update))
	h.awaitSettled(autov1alpha1.ReasonCanceled)
	h.expectCanceled()
}

func TestARunThatExceedsItsTimeoutIsStoppedAndSaysSo(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, lab.main, plain), spec("updateTemplate: {spec: {timeout: 17m}}"))
	jobs := h.kube.BatchV1().Jobs(h.namespace)
	job, err := jobs.Get(t.Context(), h.update, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := *job.Spec.ActiveDeadlineSeconds; got != 17*60 {
		t.Errorf("the Job's deadline is %d s", got)
	}
	// What is left of the 17 minutes is cut short.
	if _, err := jobs.Patch(t.Context(), h.update, types.MergePatchType, []byte(`{"spec": {"activeDeadlineSeconds": 1}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	u := h.awaitSettled(autov1alpha1.ReasonDeadlineExceeded)
	if !strings.Contains(u.Status.Message, "timeout") {
		t.Errorf("it is told as %q", u.Status.Message)
	}
	failed := h.awaitFailures("app", 1)
	if current(failed) != string(pulumiv1.ReconcilingRetry) || failed.Status.LastUpdate.Reason != string(autov1alpha1.ReasonDeadlineExceeded) ||
		!strings.Contains(message(failed), "timeout") {
		t.Errorf("it is told as %s", summary(failed))
	}
	if locks := h.locks("state"); len(locks) != 0 {
		t.Errorf("the locks %v are left", locks)
	}
	h.gate.open("in time")
	h.awaitReady("app")
	h.awaitRest()
}

func TestAPodThatSomebodyStopsIsAbortedAndRunsAgain(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, lab.main, plain))
	h.gate.openNext("again")
	h.kubectl("delete", "pod", h.pod(), "--timeout=60s")
	h.awaitSettled(autov1alpha1.ReasonAborted)
	ready := h.awaitReady("app")
	if ready.Status.LastUpdate.Name == h.update {
		t.Errorf("it did not run again: %s", summary(ready))
	}
	if locks := h.locks("state"); len(locks) != 0 {
		t.Errorf("the locks %v are left", locks)
	}
	h.awaitRest()
}

// How a Stack that is deleted in the background goes is seen where it is applied
// again.
func TestAStackThatIsDeletedInMidRunWithItsChildrenFirstWaitsForTheRun(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]func(*pulumiv1.Stack){"Without a destroy": nil, "With a destroy": {destroyed}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hold(newSpace(t, lab.main, plain), want...)
			h.delete("app", foreground)
			h.await("app", "waits for its run", func(stack *pulumiv1.Stack) bool {
				return stack.DeletionTimestamp != nil && observed(stack) && current(stack) == string(pulumiv1.ReconcilingProcessing)
			})
			h.gate.open("ended")
			h.awaitGone("app")
			h.kubectl("delete", "program", "reads")
			h.awaitNothing()
			if kept := h.resources("state", "reads", "app") > 0; kept != (want == nil) {
				t.Errorf("its resources are kept: %t", kept)
			}
			if want != nil {
				expectDestroyedBefore(h.space, h.stack)
			}
			if locks := h.locks("state"); len(locks) != 0 {
				t.Errorf("the locks %v are left", locks)
			}
		})
	}
}

func TestAChangeInMidRunLeadsToAnotherRunAfterIt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(h *held){
		"A Program": func(h *held) { h.program("reads", changed(reads)) },
		"A spec":    func(h *held) { h.change("app", config("other", "value")) },
		"A request": func(h *held) { h.request("app", "another") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hold(newSpace(t, lab.main, plain))
			change(h)
			h.gate.open("first")
			ready := h.await("app", "has run again", func(stack *pulumiv1.Stack) bool {
				return isReady(stack) && stack.Status.LastUpdate.Name != h.update
			})
			program, err := h.pulumi.PulumiV1().Programs(h.namespace).Get(t.Context(), "reads", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := ready.Status.LastUpdate.LastSuccessfulCommit, fmt.Sprint(program.Generation); got != want {
				t.Errorf("generation %s of the Program ran, want %s", got, want)
			}
			h.awaitRest()
			if n := h.operations("state", "reads", "app"); n != 2 {
				t.Errorf("the CLI ran %d times, want 2", n)
			}
			if first := h.watch.update(h.namespace, h.update); first.FailedReason() != "" {
				t.Errorf("the first run failed as %s", first.FailedReason())
			}
		})
	}
}
