package integration

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// How a Stack may be deleted.
const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

// expectOnlyNew checks that all there is was made for the Stack as it is now.
func (s *space) expectOnlyNew(stack *pulumiv1.Stack, old string) {
	s.Helper()
	u := s.update(stack.Status.LastUpdate.Name)
	if u.Name == old || u.Annotations[pulumiv1.AnnotationStackUID] != string(stack.UID) {
		s.Errorf("lastUpdate names %s, made for the Stack %s; this one is %s", u.Name, u.Annotations[pulumiv1.AnnotationStackUID], stack.UID)
	}
	s.eventually("what the old Stack left is gone", func() error {
		for _, kind := range []string{"Update", "Workspace"} {
			for _, object := range s.objects(s.Context(), kind) {
				if uid := object.GetAnnotations()[pulumiv1.AnnotationStackUID]; uid != string(stack.UID) {
					return fmt.Errorf("%s %s was made for the Stack %s", kind, object.GetName(), uid)
				}
			}
		}
		return nil
	})
}

func TestAStackThatIsDeletedAndAppliedAgainAtOnceRunsAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		how  metav1.DeletionPropagation
		want []func(*pulumiv1.Stack)
		runs int
	}{
		"Without a destroy":                     {background, nil, 2},
		"With a destroy, its children orphaned": {orphan, []func(*pulumiv1.Stack){destroyed}, 3},
		"With a destroy, its children first":    {foreground, []func(*pulumiv1.Stack){destroyed}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t, lab.main, plain)
			s.program("greets", greets)
			stack := s.stackOf("app", "greets", c.want...)
			s.create(stack)
			old := s.awaitReady("app")
			s.delete("app", c.how)
			s.create(stack)
			ready := s.awaitReady("app")
			if ready.UID == old.UID {
				t.Fatal("it is the old Stack")
			}
			if n := s.operations("state", "greets", "app"); n != c.runs {
				t.Errorf("the CLI ran %d times, want %d", n, c.runs)
			}
			s.expectOnlyNew(ready, old.Status.LastUpdate.Name)
			if len(c.want) > 0 {
				expectDestroyedBefore(s, old)
			}
			s.awaitRest()
		})
	}
}

func TestAStackThatIsDeletedInMidRunAndAppliedAgainRunsAgain(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]func(*pulumiv1.Stack){"Without a destroy": nil, "With a destroy": {destroyed}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t, lab.main, plain)
			g := newGate(t)
			s.program("reads", reads)
			stack := s.stackOf("app", "reads", append(want, config("file", g.path))...)
			old := s.create(stack)
			g.reached()
			held := s.get("app")
			s.delete("app", background)
			s.await("app", "waits for its run", func(stack *pulumiv1.Stack) bool {
				return stack.DeletionTimestamp != nil && observed(stack) && current(stack) == string(pulumiv1.ReconcilingProcessing)
			})
			g.open("old")
			s.create(stack)
			ready := s.awaitReady("app")
			if ready.UID == old.UID {
				t.Fatal("it is the old Stack")
			}
			s.expectOnlyNew(ready, held.Status.CurrentUpdate.Name)
			if n, want := s.operations("state", "reads", "app"), 2+len(want); n != want {
				t.Errorf("the CLI ran %d times, want %d", n, want)
			}
			s.awaitRest()
		})
	}
}

func TestAStackThatIsDeletedBeforeItRanGoes(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.create(s.stackOf("sourceless", "missing"))
	awaitReason(s, "sourceless", pulumiv1.StalledSourceUnavailable)
	s.delete("sourceless", background)
	s.awaitGone("sourceless")
	s.awaitNothing()
}
