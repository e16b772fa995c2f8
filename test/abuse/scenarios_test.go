//go:build abuse

package abuse

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
)

var scenarios = slices.Concat(changes, deletions, crashes, runs, stalls)

// changes are what a user does to a Stack that is there.
var changes = []scenario{
	{
		name: "first update",
		act:  ready(),
	},
	{
		name:    "new generation",
		prepare: ready(),
		act: func(w *world) {
			w.edit("app", size("2"))
			w.drive()
		},
	},
	{
		name: "failing update with retries",
		prepare: func(w *world) {
			w.outcome = fails(2)
			ready()(w)
		},
		act: func(w *world) {
			w.outcome = fails(2)
			w.drive()
			for w.ring() {
			}
		},
	},
	{
		name:    "status wiped idle",
		prepare: ready(),
		act: func(w *world) {
			w.wipe("app")
			w.drive()
		},
	},
	{
		name:    "status wiped in mid-run",
		prepare: midRun(),
		act: func(w *world) {
			w.wipe("app")
			w.drive()
			w.release()
		},
	},
	{
		name:    "applied through v1alpha1 in mid-run",
		prepare: midRun(),
		act: func(w *world) {
			w.editOld("app", "2")
			w.drive()
			w.release()
		},
	},
	{
		name:    "a hand-made Update beside a Stack's",
		prepare: midRun(),
		act: func(w *world) {
			w.update("by-hand", "app", "preview")
			w.edit("app", size("2"))
			w.drive()
			w.release()
		},
		essence: true, // either may be first
	},
	{
		name:    "Program changed in mid-run",
		prepare: midRun(),
		act: func(w *world) {
			w.program("web", "2")
			w.drive()
			w.release()
		},
	},
	{
		name: "Program changed between claim and launch",
		prepare: func(w *world) {
			w.down = "updraft-update"
			ready()(w)
		},
		act: func(w *world) {
			w.program("web", "2")
			w.down = ""
			w.drive()
		},
		essence: true, // it is seen before or after the launch
	},
	{
		name:    "a Workspace deleted by hand in mid-run",
		prepare: midRun(),
		act: func(w *world) {
			w.ok(w.pulumi.AutoV1alpha1().Workspaces(w.namespace).Delete(w.t.Context(), "app", metav1.DeleteOptions{}))
			w.drive()
			w.release()
		},
	},
	{
		name:    "Update deleted in mid-run",
		prepare: midRun(),
		act: func(w *world) {
			w.deleteUpdate(w.pods[0].update)
			w.drive()
			w.release()
		},
	},
}

// deletions end a Stack.
var deletions = []scenario{
	{
		name:    "deletion without destroyOnFinalize idle",
		prepare: ready(),
		act:     deletes(background),
	},
	{
		name:    "deletion without destroyOnFinalize in mid-run",
		prepare: midRun(),
		act:     deletes(background),
	},
	{
		name:    "deletion with destroyOnFinalize idle",
		prepare: ready(destroys),
		act:     deletes(background),
	},
	{
		name:    "deletion with destroyOnFinalize in mid-run",
		prepare: midRun(destroys),
		act:     deletes(background),
	},
	{
		name:    "deletion with destroyOnFinalize and foreground propagation idle",
		prepare: ready(destroys),
		act:     deletes(foreground),
	},
	{
		name:    "deletion with destroyOnFinalize and foreground propagation in mid-run",
		prepare: midRun(destroys),
		act:     deletes(foreground),
		essence: true, // what the garbage collector deletes first differs
	},
	{
		name:    "Stack deleted and made again at once",
		prepare: ready(),
		act:     madeAgain(),
	},
	{
		name:    "Stack with destroyOnFinalize deleted and made again at once",
		prepare: ready(destroys),
		act:     madeAgain(destroys),
	},
}

// crashes leave a claim half finished, with no event on its way.
var crashes = crashed()

func crashed() []scenario {
	var list []scenario
	for at, missing := range map[int]string{3: "Workspace", 5: "Update"} {
		for then, act := range map[string]func(w *world){
			"a sweep":                       func(w *world) { w.sweepUp() },
			"a new generation":              func(w *world) { w.edit("app", size("2")); w.drive() },
			"a deletion without destroying": deletes(background),
		} {
			list = append(list, scenario{name: "crash between claim and " + missing + ", then " + then, prepare: crashAt(at), act: act})
		}
		list = append(list, scenario{
			name: "crash between claim and " + missing + ", then a deletion with a destroy", prepare: crashAt(at, destroys), act: deletes(background),
		})
	}
	slices.SortFunc(list, func(a, b scenario) int { return strings.Compare(a.name, b.name) })
	return list
}

// crashAt is a first update that is cut off before its nth write, of which nobody hears again.
func crashAt(n int, edits ...func(*pulumiv1.Stack)) func(w *world) {
	return func(w *world) {
		w.program("web", "1")
		w.drive()
		w.stack("app", edits...)
		w.faults, w.counting, w.writes = &cut{series: "write", at: n, mode: before}, true, 0
		w.until = func() bool { return w.writes == n }
		w.drive()
		w.until, w.queue, w.faults, w.counting = nil, nil, clean{}, false
	}
}

// runs are what happens to a run and its reports.
var runs = []scenario{
	{
		name:    "a report after the Update was settled",
		prepare: midRun(),
		act: func(w *world) {
			w.hold = stepExit
			w.drive()
			p := w.pods[0]
			w.says(p, p.update, event.TypeRunFinished, *p.said, accepted)
			other := *p.said
			other.State, other.Outputs = "failed", nil
			w.says(p, p.update, event.TypeRunFinished, other, refused)
			w.says(p, p.update, event.TypeRunTaken, event.Taken{UID: string(p.updateUID)}, refused)
			w.drive()
			w.release()
		},
		exact: true,
	},
	{
		name:    "a second pod of the same Job",
		prepare: midRun(),
		act: func(w *world) {
			second := w.makePod(w.jobOf(w.pods[0].update))
			w.says(second, second.update, event.TypeRunFinished, succeeds("up", 0), refused)
			w.drive()
			w.release()
		},
		exact: true,
	},
	{
		name:    "a forged report from another pod",
		prepare: midRun(),
		act: func(w *world) {
			p := w.pods[0]
			forger := w.forger()
			denied := func(answer int) bool { return answer == 403 || refused(answer) }
			w.says(forger, p.update, event.TypeRunTaken, event.Taken{UID: string(p.updateUID)}, denied)
			w.says(forger, p.update, event.TypeRunRunning, event.Running{UID: string(p.updateUID)}, denied)
			w.says(forger, p.update, event.TypeRunFinished, succeeds("up", 0), denied)
			w.drive()
			w.release()
			w.says(forger, p.update, event.TypeRunFinished, succeeds("up", 0), denied)
		},
		exact: true,
	},
	{
		name:    "pod force-deleted without a report",
		prepare: midRun(),
		act: func(w *world) {
			w.kill(w.pods[0])
			w.hold = ""
			w.drive()
			for w.ring() {
			}
		},
	},
	{
		name:    "pod and node gone without a report",
		ownNode: true,
		prepare: midRun(),
		act: func(w *world) {
			zero := int64(0)
			w.ok(w.core.CoreV1().Nodes().Delete(w.t.Context(), w.node, metav1.DeleteOptions{GracePeriodSeconds: &zero}))
			w.node = node
			w.kill(w.pods[0])
			w.hold = ""
			w.drive()
			for w.ring() {
			}
		},
	},
	{
		name:    "TTL before the fold",
		prepare: unfolded,
		act: func(w *world) {
			w.pass(25 * time.Hour)
			w.sweepUp()
			w.release()
			w.sweepUp() // now its time is over
		},
	},
	{
		name:    "deleted before the fold",
		prepare: unfolded,
		act: func(w *world) {
			w.deleteUpdate(w.pods[0].update)
			w.drive()
			w.release()
		},
	},
}

// unfolded is an Update that was settled by its report, of which nobody but its pod knows yet.
func unfolded(w *world) {
	midRun()(w)
	settled := func() bool { return complete(w.saw(event.KindUpdate, w.pods[0].update)) }
	w.faults, w.counting, w.writes = &cut{series: "write", at: 3, mode: before}, true, 0 // Secret, Update, Stack
	w.hold, w.until = "", settled
	w.drive()
	w.until, w.queue, w.faults, w.counting, w.hold = nil, nil, clean{}, false, stepExit
	w.pods[0].step = stepExit
}

// stalls hold a function back before a write, let the world go on, and then let it go on too.
var stalls = []scenario{
	{
		name:    "an older look stalled while a newer generation runs",
		prepare: ready(),
		act: func(w *world) {
			w.edit("app", size("2"))
			w.drive()
			w.half()
			w.edit("app", size("3"))
			w.drive()
			w.resume()
			w.drive()
		},
		essence: true, stalls: true,
	},
	{
		name:    "an older look stalled while the Stack is deleted",
		prepare: ready(destroys),
		act: func(w *world) {
			w.edit("app", size("2"))
			w.drive()
			w.half()
			w.deleteStack("app", background)
			w.drive()
			w.resume()
			w.drive()
		},
		essence: true, stalls: true,
	},
	{
		name:    "an older look stalled while the Stack is deleted and made again",
		prepare: ready(),
		act: func(w *world) {
			w.edit("app", size("2"))
			w.drive()
			w.half()
			w.deleteStack("app", background)
			w.drive()
			again := w.again("app")
			w.resume()
			w.drive()
			if !again {
				w.again("app")
			}
		},
		essence: true, stalls: true,
	},
}
