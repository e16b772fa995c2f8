package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// backoffs are the waits after the first, second and third failure.
var backoffs = []time.Duration{10 * time.Second, 30 * time.Second, 90 * time.Second}

// awaitFailures waits until so many attempts have failed, and none is under way.
func (s *space) awaitFailures(name string, attempts int) *pulumiv1.Stack {
	s.Helper()
	return s.await(name, fmt.Sprintf("has failed %d times", attempts), func(stack *pulumiv1.Stack) bool {
		return stack.Status.CurrentUpdate == nil && failed(stack, attempts)
	})
}

// awaitAttempts waits until at least so many attempts have failed. Where the
// clock is moved, by another test too, the next may be under way already.
func (s *space) awaitAttempts(name string, attempts int) *pulumiv1.Stack {
	s.Helper()
	return s.await(name, fmt.Sprintf("has failed %d times", attempts), func(stack *pulumiv1.Stack) bool { return failed(stack, attempts) })
}

func failed(stack *pulumiv1.Stack, attempts int) bool {
	last := stack.Status.LastUpdate
	return observed(stack) && last != nil && last.State == pulumiv1.FailedStackStateMessage && last.Failures >= int64(attempts-1)
}

// exhaust moves the clock until a Stack that fails has failed as often as is
// tried.
func (s *space) exhaust(name string) *pulumiv1.Stack {
	s.Helper()
	for i, wait := range backoffs {
		s.awaitAttempts(name, i+1)
		s.clock.move(wait + time.Second)
		s.due(name)
	}
	return s.awaitFailures(name, len(backoffs)+1)
}

func TestAFailingProgramIsRetriedThenStallsAndRecoversOnceItIsCorrected(t *testing.T) {
	t.Parallel()
	s := newSpace(t, moving(t), plain)
	g := newGate(t)
	g.remove()
	s.program("reads", reads)
	s.create(s.stackOf("app", "reads", config("file", g.path)))

	first := s.awaitAttempts("app", 1)
	if !strings.Contains(first.Status.LastUpdate.Message, "no such file or directory") {
		t.Errorf("the first failure is told as %s", summary(first))
	}
	if first.Status.LastUpdate.Reason != string(autov1alpha1.ReasonUpdateFailed) || first.Status.LastUpdate.LastSuccessfulCommit != "" {
		t.Errorf("lastUpdate = %+v", first.Status.LastUpdate)
	}
	last := s.exhaust("app")
	if current(last) != string(pulumiv1.StalledUpdateFailed) || !strings.Contains(last.Status.LastUpdate.Message, "no such file or directory") {
		t.Errorf("the last failure is told as %s", summary(last))
	}
	s.awaitRest()
	s.clock.move(30 * time.Minute)
	s.due("app")
	if n := len(s.updates()); n != 4 {
		t.Errorf("there were %d attempts, want 4", n)
	}

	s.request("app", "once more")
	retried := s.await("app", "has run on request", func(stack *pulumiv1.Stack) bool {
		return failed(stack, 1) && stack.Status.LastUpdate.ReconcileRequest == "once more"
	})
	if retried.Status.LastUpdate.Failures != 0 {
		t.Errorf("a request does not begin anew: %s", summary(retried))
	}
	g.open("at last")
	s.program("reads", changed(reads))
	ready := s.awaitReady("app")
	if n := len(s.updates()); n < 6 || ready.Status.LastUpdate.Failures != 0 || ready.Status.LastUpdate.LastSuccessfulCommit != "2" {
		t.Errorf("after %d attempts: %s", n, summary(ready))
	}
}

func TestConfigurationThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("needs", `
configuration: {needed: {type: String}}
outputs: {message: "${needed}"}
`)
	s.create(s.stackOf("app", "needs"))
	first := s.awaitFailures("app", 1)
	if current(first) != string(pulumiv1.ReconcilingRetry) || !strings.Contains(first.Status.LastUpdate.Message, "needed") {
		t.Errorf("it is told as %s", summary(first))
	}
	s.change("app", config("needed", "given"))
	s.awaitReady("app")
}

func TestRetriesComeByThemselvesInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for more than two minutes")
	}
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	g := newGate(t)
	g.remove()
	s.program("reads", reads)
	s.create(s.stackOf("app", "reads", config("file", g.path)))
	limit := 5 * time.Minute
	for attempt := 1; attempt <= len(backoffs); attempt++ {
		s.awaitWithin(limit, "app", fmt.Sprintf("waits after failure %d", attempt), func(stack *pulumiv1.Stack) bool {
			return current(stack) == string(pulumiv1.ReconcilingRetry) && stack.Status.LastUpdate.Failures == int64(attempt-1)
		})
		s.eventually("an alarm is set", func() error {
			if names := s.names("PingSource"); len(names) != 1 {
				return fmt.Errorf("the alarms are %v", names)
			}
			return nil
		})
	}
	stalled := s.awaitWithin(limit, "app", "stalls", func(stack *pulumiv1.Stack) bool {
		return current(stack) == string(pulumiv1.StalledUpdateFailed)
	})
	began, ended := stalled.CreationTimestamp, stalled.Status.LastUpdate.LastResyncTime
	if took := ended.Sub(began.Time); took < 130*time.Second {
		t.Errorf("four attempts took %s, and the backoffs alone are 130 s", took)
	}
	s.awaitRest()
	if n := len(s.updates()); n != 4 {
		t.Errorf("there were %d attempts, want 4", n)
	}
	g.open("at last")
	s.request("app", "corrected")
	s.awaitReady("app")
	s.awaitRest()
}

func TestAFailedDestroyKeepsTheStackAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSpace(t, moving(t), plain)
	g := newGate(t)
	g.open("there")
	s.program("reads", reads)
	s.create(s.stackOf("app", "reads", destroyed, config("file", g.path), func(stack *pulumiv1.Stack) { stack.Spec.RunProgram = true }))
	s.awaitReady("app")
	if err := os.Rename(g.path, g.path+".away"); err != nil {
		t.Fatal(err)
	}
	s.delete("app", background)
	for i := 1; i <= 5; i++ {
		attempt := s.awaitAttempts("app", i)
		if last := attempt.Status.LastUpdate; last.Type != pulumiv1.DestroyUpdateType || !strings.Contains(last.Message, "no such file or directory") {
			t.Errorf("attempt %d: %s", i, summary(attempt))
		}
		if i < 4 && current(attempt) == string(pulumiv1.StalledUpdateFailed) && attempt.Status.LastUpdate.Failures < 3 {
			t.Errorf("it stalls after attempt %d: %s", i, summary(attempt))
		}
		if i == 4 {
			awaitReason(s, "app", pulumiv1.StalledUpdateFailed)
		}
		s.clock.move(5 * time.Minute)
		s.due("app")
	}
	if err := os.Rename(g.path+".away", g.path); err != nil {
		t.Fatal(err)
	}
	s.clock.move(time.Hour)
	s.due("app")
	s.awaitGone("app")
	if n := s.resources("state", "reads", "app"); n != 0 {
		t.Errorf("%d resources are left", n)
	}
	s.eventually("its Updates are gone", func() error { return s.none("Update") })
}

func TestLetGoReleasesAStackWhoseDestroyFails(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets", destroyed, func(stack *pulumiv1.Stack) { stack.Spec.RunProgram = true }))
	s.awaitReady("app")
	s.kubectl("delete", "program", "greets")
	s.delete("app", background)
	stalled := awaitReason(s, "app", pulumiv1.StalledSourceUnavailable)
	if !strings.Contains(message(stalled), "greets") || !strings.Contains(message(stalled), pulumiv1.AnnotationLetGo) {
		t.Errorf("the message does not say what to do: %s", message(stalled))
	}
	s.change("app", annotated(pulumiv1.AnnotationLetGo, "true"))
	s.awaitGone("app")
	s.awaitNothing()
	if n := s.resources("state", "greets", "app"); n == 0 {
		t.Error("what was let go is destroyed")
	}
}
