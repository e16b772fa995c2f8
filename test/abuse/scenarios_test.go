package abuse

import (
	"net/http"
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
		ends: "ProcessingCompleted at generation 1: up succeeded; 1 run",
		act:  ready(),
	},
	{
		name:    "new generation",
		ends:    "ProcessingCompleted at generation 2: up succeeded; 2 runs",
		prepare: ready(),
		act: func(w *world) {
			w.edit("app", size("2"))
			w.drive()
		},
	},
	{
		name: "failing update with retries",
		ends: "ProcessingCompleted at generation 1: up succeeded; 3 runs",
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
		ends:    "ProcessingCompleted at generation 1: up succeeded; 2 runs",
		prepare: ready(),
		act: func(w *world) {
			w.wipe("app")
			w.drive()
		},
	},
	{
		name:    "status wiped in mid-run",
		ends:    "ProcessingCompleted at generation 1: up succeeded; 1 run",
		prepare: midRun(),
		act: func(w *world) {
			w.wipe("app")
			w.drive()
			w.release()
		},
	},
	{
		name:    "applied through v1alpha1 in mid-run",
		ends:    "ProcessingCompleted at generation 2: up succeeded; 2 runs",
		prepare: midRun(),
		act: func(w *world) {
			w.editOld("app", "2")
			w.drive()
			w.release()
		},
	},
	{
		name:    "a hand-made Update beside a Stack's",
		ends:    "ProcessingCompleted at generation 2: up succeeded; 3 runs",
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
		ends:    "ProcessingCompleted at generation 1: up succeeded; 2 runs",
		prepare: midRun(),
		act: func(w *world) {
			w.program("web", "2")
			w.drive()
			w.release()
		},
	},
	{
		name: "Program changed between claim and launch",
		ends: "ProcessingCompleted at generation 1: up succeeded; 1 run",
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
		ends:    "ProcessingCompleted at generation 1: up succeeded; 1 run",
		prepare: midRun(),
		act: func(w *world) {
			w.ok(w.pulumi.AutoV1alpha1().Workspaces(w.namespace).Delete(w.t.Context(), "app", metav1.DeleteOptions{}))
			w.drive()
			w.release()
		},
	},
	{
		name:    "a Job deleted by hand in mid-run",
		ends:    "UpdateCanceled at generation 1: up failed; 1 run",
		prepare: midRun(),
		act: func(w *world) {
			w.deleteJob(w.pods[0].update)
			w.drive()
			w.release()
		},
	},
	{
		name:    "Update deleted in mid-run",
		ends:    "UpdateCanceled at generation 1: up failed; 1 run",
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
		ends:    "gone; 1 run",
		prepare: ready(),
		act:     deletes(background),
	},
	{
		name:    "deletion without destroyOnFinalize in mid-run",
		ends:    "gone; 1 run",
		prepare: midRun(),
		act:     deletes(background),
	},
	{
		name:    "deletion with destroyOnFinalize idle",
		ends:    "gone; 2 runs",
		prepare: ready(destroys),
		act:     deletes(background),
	},
	{
		name:    "deletion with destroyOnFinalize in mid-run",
		ends:    "gone; 2 runs",
		prepare: midRun(destroys),
		act:     deletes(background),
	},
	{
		name:    "deletion with destroyOnFinalize and foreground propagation idle",
		ends:    "gone; 2 runs",
		prepare: ready(destroys),
		act:     deletes(foreground),
	},
	{
		name:    "deletion with destroyOnFinalize and foreground propagation in mid-run",
		ends:    "gone; 2 runs",
		prepare: midRun(destroys),
		act:     deletes(foreground),
		essence: true, // what the garbage collector deletes first differs
	},
	{
		name:    "Stack deleted and made again at once",
		ends:    "ProcessingCompleted at generation 1: up succeeded; 2 runs",
		prepare: ready(),
		act:     madeAgain(),
	},
	{
		name:    "Stack with destroyOnFinalize deleted and made again at once",
		ends:    "ProcessingCompleted at generation 1: up succeeded; 3 runs",
		prepare: ready(destroys),
		act:     madeAgain(destroys),
	},
}

// crashes leave a claim half finished, with no event on its way.
var crashes = crashed()

func crashed() []scenario {
	list := []scenario{nameTaken}
	for at, missing := range map[int]string{3: "Workspace", 5: "Update"} {
		name := "crash between claim and " + missing + ", then "
		list = append(list, scenario{
			name:    name + "a sweep",
			ends:    "ProcessingCompleted at generation 1: up succeeded; 1 run",
			prepare: crashAt(at),
			act:     func(w *world) { w.sweepUp() },
		}, scenario{
			name:    name + "a new generation",
			ends:    "ProcessingCompleted at generation 2: up succeeded; 1 run",
			prepare: crashAt(at),
			act:     func(w *world) { w.edit("app", size("2")); w.drive() },
		}, scenario{
			name:    name + "a deletion without destroying",
			ends:    "gone; 0 runs",
			prepare: crashAt(at),
			act:     deletes(background),
		}, scenario{
			name:    name + "a deletion with a destroy",
			ends:    "gone; 1 run",
			prepare: crashAt(at, destroys),
			act:     deletes(background),
		})
	}
	slices.SortFunc(list, func(a, b scenario) int { return strings.Compare(a.name, b.name) })
	return list
}

// nameTaken is a claim whose name an Update bears that a user made by hand.
var nameTaken = scenario{
	name:    "crash between claim and Update, whose name a hand-made one bears",
	ends:    "ProcessingCompleted at generation 1: up succeeded; 2 runs",
	prepare: crashAt(5),
	act: func(w *world) {
		w.update(nested(w.saw(event.KindStack, "app"), "status", "currentUpdate", "name"), "app", "preview")
		w.drive()
		w.sweepUp()
	},
	essence: true, // either may be first
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
		ends:    "ProcessingCompleted at generation 1: up succeeded; 1 run",
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
		ends:    "ProcessingCompleted at generation 1: up succeeded; 1 run",
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
		ends:    "ProcessingCompleted at generation 1: up succeeded; 1 run",
		prepare: midRun(),
		act: func(w *world) {
			p := w.pods[0]
			forger := w.forger()
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
		name: "a forged report before the run is taken",
		ends: "ProcessingCompleted at generation 1: up succeeded; 1 run",
		prepare: func(w *world) {
			w.hold = stepTaken
			ready()(w)
		},
		act: func(w *world) {
			p := w.pods[0]
			forger := w.forger()
			w.says(forger, p.update, event.TypeRunTaken, event.Taken{UID: string(p.updateUID)}, denied)
			w.says(forger, p.update, event.TypeRunFinished, succeeds("up", 0), denied)
			w.drive()
			w.release()
		},
		exact: true,
	},
	{
		name:    "pod force-deleted without a report",
		ends:    "ProcessingCompleted at generation 1: up succeeded; 2 runs",
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
		ends:    "ProcessingCompleted at generation 1: up succeeded; 2 runs",
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
		ends:    "ProcessingCompleted at generation 1: up succeeded; 1 run",
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
		ends:    "ProcessingCompleted at generation 1: up succeeded; 1 run",
		prepare: unfolded,
		act: func(w *world) {
			w.deleteUpdate(w.pods[0].update)
			w.drive()
			w.release()
		},
	},
}

// denied says whether an answer denies a pod the word.
func denied(answer int) bool { return answer == http.StatusForbidden || refused(answer) }

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
		ends:    "ProcessingCompleted at generation 3: up succeeded; 3 runs",
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
		ends:    "gone; 3 runs",
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
		ends:    "ProcessingCompleted at generation 1: up succeeded; 3 runs",
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
