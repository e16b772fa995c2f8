package stack

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// life is a Stack whose verdicts are carried out, with a clock that a test moves.
type life struct {
	t     *testing.T
	world World
	now   time.Time
	gone  bool
}

// look writes until nothing is left to write.
func (l *life) look() Verdict {
	l.t.Helper()
	for range 6 {
		v := Assess(l.world, l.now)
		checkConditions(l.t, l.world.Stack, &v.Status)
		next, there := after(l.world, v)
		if l.world = next; !there {
			l.gone = true
			return v
		}
		if v.Action == Nothing {
			return v
		}
	}
	l.t.Fatal("the Stack needs a write for ever")
	return Verdict{}
}

// run ends the Update under way, a minute after it began, and folds it as the
// status function does.
func (l *life) run(settle func(*autov1alpha1.Update)) {
	l.t.Helper()
	if l.world.Update == nil {
		l.t.Fatal("no Update is under way")
	}
	l.now = l.now.Add(time.Minute)
	settle(l.world.Update)
	l.world.Update.Status.EndTime = at(l.now)
	status, folds := Fold(l.world.Stack, l.world.Update)
	if !folds {
		l.t.Fatal("the Update does not fold")
	}
	l.world.Stack.Status, l.world.Update = status, nil
	l.world.Stack.Status = Assess(l.world, l.now).Status
}

// attempts fails every Update, and gives how long each waited since the one
// before it ended. It ends when nothing is tried any more, or after a few.
func (l *life) attempts(most int, settle func(*autov1alpha1.Update)) []time.Duration {
	l.t.Helper()
	var waited []time.Duration
	ended := l.now
	for range most {
		l.look()
		waited = append(waited, l.now.Sub(ended))
		l.run(settle)
		ended = l.now
		v := l.look()
		if v.Alarm.IsZero() {
			break
		}
		l.now = v.Alarm.Add(-1)
		if early := l.look(); early.Action != Nothing || !early.Alarm.Equal(v.Alarm) {
			l.t.Errorf("Before its alarm the verdict is %v", outcomeOf(early))
		}
		l.now = v.Alarm
	}
	return waited
}

func waits(n ...int) []time.Duration {
	var list []time.Duration
	for _, s := range n {
		list = append(list, time.Duration(s)*time.Second)
	}
	return list
}

func TestAttemptsAndTheirWaits(t *testing.T) {
	fails := failed(autov1alpha1.ResultFailed, autov1alpha1.ReasonUpdateFailed, "error: no")
	conflicts := failed(autov1alpha1.ResultFailed, autov1alpha1.ReasonUpdateConflict, "The stack dev is locked")
	cancelled := failed(autov1alpha1.ResultCanceled, autov1alpha1.ReasonCanceled, "Stopped on request")
	again := func(s *pulumiv1.Stack) { s.Spec.RetryOnUpdateConflict = true }
	cases := map[string]struct {
		why    string
		world  World
		settle func(*autov1alpha1.Update)
		want   []time.Duration
	}{
		"A fresh generation gets four attempts": {
			world: inWorld(aStack()), settle: fails, want: waits(0, 10, 30, 90)},
		"A new revision after a success in the same generation gets three": {
			why: "the reference counts so", world: inWorld(aStack(ran()), atSource("8")), settle: fails, want: waits(0, 30, 90)},
		"A new revision after a stall gets one": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonUpdateFailed, 3, 0))), atSource("8")), settle: fails, want: waits(0)},
		"A new request after a stall gets four": {
			world:  inWorld(aStack(ran(failing(autov1alpha1.ReasonUpdateFailed, 3, 0)), annotated(pulumiv1.AnnotationReconcileRequest, "again"))),
			settle: fails, want: waits(0, 10, 30, 90)},
		"A cap of twenty seconds holds from the second wait": {
			world:  inWorld(aStack(func(s *pulumiv1.Stack) { s.Spec.RetryMaxBackoffDurationSeconds = 20 })),
			settle: fails, want: waits(0, 10, 20, 20)},
		"A preview gets as many": {
			world: inWorld(aStack(previews)), settle: fails, want: waits(0, 10, 30, 90)},
		"A conflict gets as many": {
			world: inWorld(aStack()), settle: conflicts, want: waits(0, 10, 30, 90)},
		"A conflict is tried for ever with retryOnUpdateConflict": {
			world: inWorld(aStack(again)), settle: conflicts, want: waits(0, 10, 30, 90, 270, 810, 2430)},
		"A cancelled Update gets one": {
			world: inWorld(aStack()), settle: cancelled, want: waits(0)},
		"A CLI that is too old gets one": {
			world: inWorld(aStack()), settle: failed(autov1alpha1.ResultFailed, autov1alpha1.ReasonPulumiVersionTooLow, "Too old"), want: waits(0)},
		"A destroy is tried for ever": {
			world: inWorld(aStack(destroys, known, deleted)), settle: fails, want: waits(0, 10, 30, 90, 270, 810, 2430)},
		"A destroy that is cancelled is tried for ever": {
			world: inWorld(aStack(destroys, known, deleted)), settle: cancelled, want: waits(0, 10, 30, 90, 270, 810, 2430)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := &life{t: t, world: c.world, now: noon}
			if diff := cmp.Diff(c.want, l.attempts(7, c.settle)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.why, diff)
			}
		})
	}
}

func TestALifeFromFirstToLast(t *testing.T) {
	l := &life{t: t, world: inWorld(aStack(noFinalizer, destroys)), now: noon}
	l.look()
	l.run(told)
	if got := outcomeOf(l.look()); got.State != ready {
		t.Fatalf("After its first run it is %v", got)
	}
	l.world.Stack.Generation++
	l.look()
	l.run(failed(autov1alpha1.ResultFailed, autov1alpha1.ReasonUpdateFailed, "error: no"))
	l.now = l.now.Add(10 * time.Second)
	l.look()
	deleted(l.world.Stack)
	if got := outcomeOf(l.look()); got.Claim == "" {
		t.Fatalf("Deleted while an Update is under way, it is %v", got)
	}
	l.run(told)
	l.look()
	if got := l.world.Update.Spec.Type; got != autov1alpha1.DestroyType {
		t.Fatalf("The last Update is of type %s", got)
	}
	l.run(told)
	if l.look(); !l.gone {
		t.Error("It is not released after its destroy")
	}
}
