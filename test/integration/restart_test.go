package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/test/programs"
)

// startAlone starts an environment for one test, whose programs are links in a
// folder of its own, but for the pulumi CLI, which is missing.
func startAlone(t *testing.T) *place {
	t.Helper()
	bin := filepath.Join(lab.folder, "alone-bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs.OfOthers {
		if program == "pulumi" {
			continue
		}
		if err := os.Symlink(filepath.Join(lab.bin, program), filepath.Join(bin, program)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := startPlace("alone", func(o *dev.Options) { o.Bin, o.SweepSchedule = bin, "*/5 * * * * *" })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *place) restart(t *testing.T) {
	t.Helper()
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if err := leftOverOf(p.options.Dir); err != nil {
		t.Error(err)
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
}

// TestTheEnvironmentIsChangedUnderAStack goes through what befalls an
// environment as a whole, and so cannot share one.
func TestTheEnvironmentIsChangedUnderAStack(t *testing.T) {
	t.Parallel()
	p := startAlone(t)
	s := newSpace(t, p, swept)
	cli := filepath.Join(p.options.Bin, "pulumi")
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets"))

	s.Run("A missing CLI ends in WorkspaceFailed", func(t *testing.T) {
		s := s.in(t)
		first := s.awaitFailures("app", 1)
		if last := first.Status.LastUpdate; last.Reason != string(autov1alpha1.ReasonWorkspaceFailed) || !strings.Contains(last.Message, "The pulumi CLI is not in the image: use an image that holds it") {
			t.Errorf("it is told as %s", summary(first))
		}
		last := s.exhaust("app")
		if current(last) != string(pulumiv1.StalledWorkspaceFailed) || !strings.Contains(message(last), "The pulumi CLI is not in the image") {
			t.Errorf("it is told as %s", summary(last))
		}
		s.awaitRest()
	})
	s.Run("A CLI that is too old for a number ends in PulumiVersionTooLow", func(t *testing.T) {
		s := s.in(t)
		if err := os.WriteFile(cli, []byte("#!/bin/sh\necho v3.150.0\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		s.change("app", func(stack *pulumiv1.Stack) { stack.Spec.Config = map[string]jsonValue{"number": jsonOf(3)} })
		stalled := awaitReason(s, "app", pulumiv1.StalledPulumiVersionTooLow)
		if !strings.Contains(message(stalled), "3.202.0 or newer") || !strings.Contains(message(stalled), "3.150.0") {
			t.Errorf("it is told as %s", summary(stalled))
		}
		s.awaitRest()
	})
	s.Run("With a CLI that is new enough it runs on request", func(t *testing.T) {
		s := s.in(t)
		if err := os.Remove(cli); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(lab.bin, "pulumi"), cli); err != nil {
			t.Fatal(err)
		}
		s.request("app", "with a CLI")
		s.awaitReady("app")
	})
	s.Run("A change that was made just before a restart is run after it", func(t *testing.T) {
		s := s.in(t)
		s.change("app", config("name", "moon"))
		p.restart(t)
		ready := s.awaitReady("app")
		if got := string(ready.Status.Outputs["message"].Raw); got != `"Hello, moon!"` {
			t.Errorf("the output is %s", got)
		}
	})
	s.Run("A run that was under way at a restart is aborted and comes again", func(t *testing.T) {
		s := s.in(t)
		s.kubectl("delete", "stack", "app", "--timeout=60s")
		h := hold(s)
		h.gate.openNext("after")
		p.restart(t)
		h.awaitSettled(autov1alpha1.ReasonAborted)
		s.awaitAttempts("app", 1)
		s.clock.move(backoffs[0])
		s.due("app")
		ready := s.awaitReady("app")
		if got := string(ready.Status.Outputs["message"].Raw); got != `"after"` {
			t.Errorf("the output is %s", got)
		}
		if locks := s.locks("state"); len(locks) != 0 {
			t.Errorf("the locks %v are left", locks)
		}
		s.awaitRest()
	})
}

// in is the space for a test within a test.
func (s *space) in(t *testing.T) *space {
	return &space{T: t, place: s.place, namespace: s.namespace}
}
