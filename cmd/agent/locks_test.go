package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

const held = "name: app\nruntime: yaml\noutputs:\n  a: {\"fn::readFile\": ./hold}\n"

// holdUp begins an up that stands still in the middle, holding the lock.
func holdUp(t *testing.T, state string) (*pod, *process) {
	t.Helper()
	p := newPod(t, state, autov1alpha1.UpType, held)
	p.init()
	gate := p.hold()
	c := p.begin()
	gate.reached()
	await(t, "the beginning is reported", func() bool { return len(p.receiver.of(event.TypeRunRunning)) > 0 })
	if locks := p.locks(); len(locks) != 1 {
		t.Fatalf("the backend has the locks %v, want one", locks)
	}
	return p, c
}

func TestAStoppedUpIsCanceledAndLeavesNoLock(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p, c := holdUp(t, t.TempDir())
			c.signal(signal)
			got := c.wait()
			if got.code != 1 {
				t.Errorf("exit code = %d, want 1", got.code)
			}
			p.expectEnding(got, ending{"canceled", "Canceled", "Stopped on request"})
			if locks := p.locks(); len(locks) > 0 {
				t.Errorf("the locks %v are left", locks)
			}
			if isAlive(int(p.receiver.running().Pid)) {
				t.Error("the CLI is still there")
			}
		})
	}
}

// killUp kills an up in the middle, with all that belongs to it. The answer is
// what held the lock.
func killUp(t *testing.T, state string) autov1alpha1.LockHolder {
	t.Helper()
	p, c := holdUp(t, state)
	running := p.receiver.running()
	if !isAlive(int(running.Pid)) {
		t.Fatalf("the process %d that is reported is not there", running.Pid)
	}
	endTree(c.cmd.Process.Pid)
	if got := c.wait(); got.code != -1 {
		t.Fatalf("exit code = %d, want a kill", got.code)
	}
	await(t, "the CLI is gone", func() bool { return !isAlive(int(running.Pid)) })
	if locks := p.locks(); len(locks) != 1 {
		t.Fatalf("the backend has the locks %v, want one", locks)
	}
	return autov1alpha1.LockHolder{Host: running.Host, Pid: running.Pid}
}

func TestALockOfTheDeadIsTakenAway(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	dead := killUp(t, state)
	next := newPod(t, state, autov1alpha1.UpType, hello)
	next.spec.Ended = []autov1alpha1.LockHolder{{Host: "another", Pid: 1}, dead}
	got := next.run()
	if got.code != 0 || next.receiver.finished().Outputs == nil {
		t.Errorf("exit code = %d: %+v", got.code, got.termination)
	}
	if locks := next.locks(); len(locks) > 0 {
		t.Errorf("the locks %v are left", locks)
	}
	if !strings.Contains(got.log, "locked by earlier runs that have ended") || !strings.Contains(got.log, fmt.Sprint(dead.Pid)) {
		t.Errorf("the log does not say why the lock was taken away:\n%s", got.log)
	}
	if reports := next.receiver.of(event.TypeRunRunning); len(reports) != 2 {
		t.Errorf("%d beginnings are reported, want 2", len(reports))
	}
}

func TestALockOfSomebodyElseIsAConflict(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	dead := killUp(t, state)
	for name, c := range map[string]struct {
		operation run.Operation
		ended     []autov1alpha1.LockHolder
	}{
		"Nobody is known to have ended":         {run.Operation{Type: autov1alpha1.UpType}, nil},
		"Another process is known to have":      {run.Operation{Type: autov1alpha1.DestroyType}, []autov1alpha1.LockHolder{{Host: dead.Host, Pid: dead.Pid + 1}}},
		"A process of another host is known to": {run.Operation{Type: autov1alpha1.RefreshType}, []autov1alpha1.LockHolder{{Host: "another", Pid: dead.Pid}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, state, c.operation.Type, hello)
			p.spec.Operation, p.spec.Ended = c.operation, c.ended
			got := p.run()
			finished := p.receiver.finished()
			holder := fmt.Sprintf("@%s (pid %d) since ", dead.Host, dead.Pid)
			if got.code != 1 || finished.Reason != "UpdateConflict" || !strings.HasPrefix(finished.Message, "The stack dev is locked by ") ||
				!strings.Contains(finished.Message, holder) ||
				!strings.HasSuffix(finished.Message, ": wait for it to end, or run pulumi cancel once it is known to be gone") {
				t.Errorf("exit code = %d: %+v", got.code, finished)
			}
			if locks := p.locks(); len(locks) != 1 {
				t.Errorf("the backend has the locks %v, want the one of somebody else", locks)
			}
		})
	}

	// A preview needs no lock.
	p := newPod(t, state, autov1alpha1.PreviewType, hello)
	if got := p.run(); got.code != 0 {
		t.Errorf("a preview ended with exit code %d: %s", got.code, got.termination.Message)
	}
}

func TestSeveralStopsAreOneInterruptForTheCLI(t *testing.T) {
	t.Parallel()
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, hello)
	p.fakeCLI("3.276.0", `if [ "$2" = up ]; then
  trap 'echo interrupted >>"$HOME/signals"; touch "$HOME/done"' INT
  touch "$HOME/operating"; while ! [ -e "$HOME/done" ]; do sleep 0.01; done; sleep 0.3; exit 1
fi`)
	p.init()
	c := p.begin()
	await(t, "the CLI operates", func() bool { return exists(p.root + "/operating") })
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGTERM} {
		c.signal(s)
	}
	p.expectEnding(c.wait(), ending{"canceled", "Canceled", "Stopped on request"})
	if signals := p.read(p.root + "/signals"); signals != "interrupted\n" {
		t.Errorf("the CLI was interrupted %q, want once", signals)
	}
}

func TestAStopThatComesTooLateIsASuccess(t *testing.T) {
	t.Parallel()
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, hello)
	p.fakeCLI("3.276.0", `if [ "$2" = up ]; then
  trap 'touch "$HOME/done"' INT; touch "$HOME/operating"; while ! [ -e "$HOME/done" ]; do sleep 0.01; done
fi`)
	p.init()
	c := p.begin()
	await(t, "the CLI operates", func() bool { return exists(p.root + "/operating") })
	c.signal(syscall.SIGTERM)
	if got := c.wait(); got.code != 0 || p.receiver.finished().State != "succeeded" {
		t.Errorf("exit code = %d: %+v", got.code, p.receiver.finished())
	}
}
