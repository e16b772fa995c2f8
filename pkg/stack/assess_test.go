package stack

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// outcome is a Verdict as a case states it.
type outcome struct {
	Action Action
	// State is the condition that is True, and its reason.
	State string
	// Message of that condition.
	Message string
	// Wanted is what the planned Update stands for.
	Wanted For
	// Alarm is when to look again, counted from noon.
	Alarm time.Duration
	// Poke is who is asked for a run.
	Poke []string
	// Claim is the claim that is left.
	Claim string
}

func outcomeOf(v Verdict) outcome {
	o := outcome{Action: v.Action, Poke: v.Poke}
	for _, c := range v.Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			o.State, o.Message = c.Type+"/"+c.Reason, c.Message
		}
	}
	if v.Plan != nil {
		o.Wanted = v.Plan.Wanted
	}
	if !v.Alarm.IsZero() {
		o.Alarm = v.Alarm.Sub(noon)
	}
	if v.Status.CurrentUpdate != nil {
		o.Claim = v.Status.CurrentUpdate.Name
	}
	return o
}

const (
	upToDate   = "The stack has been processed and is up to date"
	processing = "Reconciling/StackProcessing"
	ready      = "Ready/ProcessingCompleted"
	letGoHint  = "; annotation updraft.dev/let-go=true releases the Stack without a destroy"
)

// assessment is a case of Assess at noon.
type assessment struct {
	why   string
	world World
	want  outcome
}

// assess runs the cases, and after each checks what holds after all.
func assess(t *testing.T, cases map[string]assessment) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			read := c.world.Stack.DeepCopy()
			v := Assess(c.world, noon)
			if diff := cmp.Diff(c.want, outcomeOf(v)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.why, diff)
			}
			if diff := cmp.Diff(read, c.world.Stack); diff != "" {
				t.Errorf("Assess changed the Stack that was read: %s", diff)
			}
			checkConditions(t, c.world.Stack, &v.Status)
			checkRepeat(t, c.world, v, noon)
		})
	}
}

func TestAStackThatIsToRun(t *testing.T) {
	up := func(generation int64, request, revision string) For {
		return For{Generation: generation, Request: request, Revision: revision, Type: autov1alpha1.UpType}
	}
	first := outcome{Action: Claim, State: processing, Message: "Initial stack update", Wanted: up(2, "", revision)}
	assess(t, map[string]assessment{
		"A Stack without our finalizer gets it before anything else": {
			why:   "nothing may be made for it that its deletion would not wait for",
			world: inWorld(aStack(noFinalizer)),
			want:  outcome{Action: AddFinalizer, State: processing, Message: "The stack is being processed"},
		},
		"A Stack that never ran is claimed": {world: inWorld(aStack()), want: first},
		"A Stack without a source is claimed for no revision": {
			why: "a user's own init container may make the workspace",
			world: inWorld(aStack(func(s *pulumiv1.Stack) {
				s.Spec.ProgramRef, s.Spec.WorkspaceTemplate = nil, raw(`{"spec":{"podTemplate":{"spec":{"initContainers":[{"name":"extract","image":"mine"}]}}}}`)
			}), atSource("")),
			want: outcome{Action: Claim, State: processing, Message: "Initial stack update", Wanted: up(2, "", "")},
		},
		"A Stack in step needs nothing": {
			world: inWorld(aStack(ran())),
			want:  outcome{Action: Nothing, State: ready, Message: upToDate},
		},
		"A new generation is claimed": {
			world: inWorld(aStack(ran(), func(s *pulumiv1.Stack) { s.Generation = 3 })),
			want:  outcome{Action: Claim, State: processing, Message: "New stack generation: 3", Wanted: up(3, "", revision)},
		},
		"A new reconciliation request is claimed": {
			world: inWorld(aStack(ran(), annotated(pulumiv1.AnnotationReconcileRequest, "now"))),
			want:  outcome{Action: Claim, State: processing, Message: `Sync request: "now"`, Wanted: up(2, "now", revision)},
		},
		"A reconciliation request that was taken back is a new one": {
			world: inWorld(aStack(ran(func(l *pulumiv1.StackUpdateState) { l.ReconcileRequest = "now" }))),
			want:  outcome{Action: Claim, State: processing, Message: `Sync request: ""`, Wanted: up(2, "", revision)},
		},
		"A new revision of the Program is claimed": {
			world: inWorld(aStack(ran()), atSource("8")),
			want:  outcome{Action: Claim, State: processing, Message: `New commit detected: "8"`, Wanted: up(2, "", "8")},
		},
		"An older revision of the Program is claimed too": {
			why:   "a Program that was deleted and made again begins at 1",
			world: inWorld(aStack(ran()), atSource("1")),
			want:  outcome{Action: Claim, State: processing, Message: `New commit detected: "1"`, Wanted: up(2, "", "1")},
		},
		"A preview Stack is claimed for a preview": {
			world: inWorld(aStack(previews)),
			want: outcome{Action: Claim, State: processing, Message: "Initial stack update",
				Wanted: For{Generation: 2, Revision: revision, Type: autov1alpha1.PreviewType}},
		},
		"A preview that succeeded is in step": {
			world: inWorld(aStack(previews, ran(ofType(pulumiv1.PreviewUpdateType)))),
			want:  outcome{Action: Nothing, State: ready, Message: upToDate},
		},
		"A claim whose Update does not exist is finished, with the Stack as it is now": {
			why:   "a claim is only a name: it means not created yet",
			world: inWorld(aStack(ran(), claims(claimed), func(s *pulumiv1.Stack) { s.Generation = 3 })),
			want: outcome{Action: Finish, State: processing, Message: "New stack generation: 3",
				Wanted: up(3, "", revision), Claim: claimed},
		},
		"A claim that names another Stack's Update is claimed anew": {
			why:   "already exists is ours only by the UID annotation",
			world: inWorld(aStack(claims(claimed)), underWay(anUpdate("uid-of-another", autov1alpha1.UpType))),
			want: outcome{Action: Claim, State: processing, Message: "Initial stack update",
				Wanted: up(2, "", revision), Claim: claimed},
		},
		"A claim that names a hand-made Update is claimed anew": {
			world: inWorld(aStack(claims(claimed)), underWay(anUpdate("", autov1alpha1.UpType, func(u *autov1alpha1.Update) { u.Annotations = nil }))),
			want: outcome{Action: Claim, State: processing, Message: "Initial stack update",
				Wanted: up(2, "", revision), Claim: claimed},
		},
		"A claim that nothing needs any more is withdrawn": {
			why:   "the request was taken back before its Update was made",
			world: inWorld(aStack(ran(), claims(claimed))),
			want:  outcome{Action: Withdraw, State: ready, Message: upToDate},
		},
		"A claim after a failure that is not tried again is withdrawn": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonUpdateFailed, 3, time.Minute)), claims(claimed))),
			want: outcome{Action: Withdraw, State: "Stalled/UpdateFailed",
				Message: "Up failed, and so did 3 retries; not retrying until the spec or source changes, or a run is requested: error: no such bucket. and more"},
		},
	})
}

func TestAStackWhoseUpdateIsUnderWay(t *testing.T) {
	ours := func(changes ...func(*autov1alpha1.Update)) tweak {
		return underWay(anUpdate(stackUID, autov1alpha1.UpType, changes...))
	}
	assess(t, map[string]assessment{
		"The message says why the Update was wanted, and stays": {
			why:   "a message that changes without cause is an event and a write for nothing",
			world: inWorld(aStack(claims(claimed), shown("Initial stack update")), ours()),
			want:  outcome{Action: Nothing, State: processing, Message: "Initial stack update", Claim: claimed},
		},
		"A Stack that says nothing yet names the Update": {
			world: inWorld(aStack(claims(claimed)), ours()),
			want: outcome{Action: Nothing, State: processing,
				Message: "Update app-19cb6d0f8e0 (up) is being processed", Claim: claimed},
		},
		"A Stack that changed meanwhile waits for the end of the Update": {
			world: inWorld(aStack(claims(claimed), shown("Initial stack update"), func(s *pulumiv1.Stack) { s.Generation = 3 }), ours()),
			want: outcome{Action: Nothing, State: processing,
				Message: "Update app-19cb6d0f8e0 (up) is being processed", Claim: claimed},
		},
		"A new request meanwhile is observed, and waits": {
			world: inWorld(aStack(claims(claimed), shown("Initial stack update"), annotated(pulumiv1.AnnotationReconcileRequest, "now")), ours()),
			want:  outcome{Action: Nothing, State: processing, Message: "Initial stack update", Claim: claimed},
		},
		"A Stack that was stalled is not any more": {
			world: inWorld(aStack(claims(claimed), func(s *pulumiv1.Stack) {
				s.Status.MarkStalled(2, at(noon.Add(-time.Hour)), pulumiv1.StalledUpdateFailed, "Up failed 4 times")
			}), ours()),
			want: outcome{Action: Nothing, State: processing,
				Message: "Update app-19cb6d0f8e0 (up) is being processed", Claim: claimed},
		},
		"Conditions that contradict each other are put right": {
			why: "another controller, or a hand, may have left them",
			world: inWorld(aStack(claims(claimed), shown("Initial stack update"), func(s *pulumiv1.Stack) {
				s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: pulumiv1.StalledCondition, Status: metav1.ConditionTrue, Reason: "UpdateFailed", Message: "X"})
			}), ours()),
			want: outcome{Action: Nothing, State: processing, Message: "Initial stack update", Claim: claimed},
		},
		"A suspended Stack's Update goes on": {
			world: inWorld(aStack(claims(claimed), shown("Initial stack update"), annotated(pulumiv1.AnnotationSuspend, "true")), ours()),
			want:  outcome{Action: Nothing, State: processing, Message: "Initial stack update", Claim: claimed},
		},
		"A source that is gone does not matter meanwhile": {
			world: inWorld(aStack(claims(claimed), shown("Initial stack update")), ours(), noSource),
			want:  outcome{Action: Nothing, State: processing, Message: "Initial stack update", Claim: claimed},
		},
		"An Update whose pod cannot begin says why": {
			world: inWorld(aStack(claims(claimed), shown("Initial stack update")), ours(podWaits(autov1alpha1.ReasonImagePullBackOff, "Image x cannot be pulled"))),
			want: outcome{Action: Nothing, State: "Reconciling/ImagePullBackOff",
				Message: "Update app-19cb6d0f8e0 (up) cannot begin: Image x cannot be pulled", Claim: claimed},
		},
		"An Update that finds no node": {
			world: inWorld(aStack(claims(claimed)), ours(podWaits(autov1alpha1.ReasonUnschedulable, "No node"))),
			want:  outcome{Action: Nothing, State: "Reconciling/Unschedulable", Message: "Update app-19cb6d0f8e0 (up) cannot begin: No node", Claim: claimed},
		},
		"An Update whose pod is refused": {
			world: inWorld(aStack(claims(claimed)), ours(podWaits(autov1alpha1.ReasonPodRefused, "No quota"))),
			want:  outcome{Action: Nothing, State: "Reconciling/PodRefused", Message: "Update app-19cb6d0f8e0 (up) cannot begin: No quota", Claim: claimed},
		},
		"An Update whose container cannot be created": {
			world: inWorld(aStack(claims(claimed)), ours(podWaits(autov1alpha1.ReasonCreateContainerError, "No Secret"))),
			want:  outcome{Action: Nothing, State: "Reconciling/CreateContainerError", Message: "Update app-19cb6d0f8e0 (up) cannot begin: No Secret", Claim: claimed},
		},
		"A destroy that cannot begin says how to do without": {
			world: inWorld(aStack(claims(claimed), destroys, deleted), ours(podWaits(autov1alpha1.ReasonCreateContainerError, "No Secret"))),
			want: outcome{Action: Nothing, State: "Reconciling/CreateContainerError",
				Message: "Update app-19cb6d0f8e0 (up) cannot begin: No Secret; annotation updraft.dev/let-go=true releases the Stack without a destroy", Claim: claimed},
		},
		"An Update that waits for another is being processed": {
			world: inWorld(aStack(claims(claimed), shown("Initial stack update")), ours(podWaits(autov1alpha1.ReasonWorkspaceBusy, "Busy"))),
			want:  outcome{Action: Nothing, State: processing, Message: "Initial stack update", Claim: claimed},
		},
		"An Update that goes on is being processed again": {
			world: inWorld(aStack(claims(claimed), waitsFor(pulumiv1.ReconcilingImagePullBackOff, "Update app-19cb6d0f8e0 (up) cannot begin: X")),
				ours(func(u *autov1alpha1.Update) { u.MarkProgressing(at(noon), "Launched") })),
			want: outcome{Action: Nothing, State: processing, Message: "Update app-19cb6d0f8e0 (up) is being processed", Claim: claimed},
		},
		"A settled Update with our finalizer is waited for": {
			why:   "the status function is about to fold it",
			world: inWorld(aStack(claims(claimed), shown("Initial stack update")), ours(succeeded)),
			want:  outcome{Action: Nothing, State: processing, Message: "Initial stack update", Claim: claimed},
		},
		"A settled Update without our finalizer is folded": {
			why:   "the status function is done with it, so its fold was undone: by a restore, or by hand",
			world: inWorld(aStack(claims(claimed), shown("Initial stack update")), ours(succeeded, released)),
			want:  outcome{Action: Withdraw, State: ready, Message: upToDate},
		},
		"A settled Update without our finalizer that says nothing is claimed anew": {
			world: inWorld(aStack(claims(claimed)), ours(succeeded, released, func(u *autov1alpha1.Update) { u.Status.Result = nil })),
			want:  outcome{Action: Withdraw, State: processing, Message: "Initial stack update"},
		},
	})
}

func TestShows(t *testing.T) {
	pull := podWaits(autov1alpha1.ReasonImagePullBackOff, "Image x cannot be pulled.")
	goesOn := func(u *autov1alpha1.Update) { u.MarkProgressing(at(noon), "Launched") }
	for name, c := range map[string]struct {
		stack  *pulumiv1.Stack
		update *autov1alpha1.Update
		want   bool
	}{
		"It waits, and nothing is said":          {aStack(claims(claimed)), anUpdate(stackUID, autov1alpha1.UpType, pull), false},
		"It waits, and something else is said":   {aStack(claims(claimed), shown("Initial stack update")), anUpdate(stackUID, autov1alpha1.UpType, pull), false},
		"It waits for something else":            {aStack(claims(claimed), waitsFor(pulumiv1.ReconcilingPodRefused, "No quota")), anUpdate(stackUID, autov1alpha1.UpType, pull), false},
		"It waits for another image":             {aStack(claims(claimed), waitsFor(pulumiv1.ReconcilingImagePullBackOff, "Image y cannot be pulled")), anUpdate(stackUID, autov1alpha1.UpType, pull), false},
		"It goes on, and is said to wait":        {aStack(claims(claimed), waitsFor(pulumiv1.ReconcilingPodRefused, "No quota")), anUpdate(stackUID, autov1alpha1.UpType, goesOn), false},
		"It goes on":                             {aStack(claims(claimed), shown("Initial stack update")), anUpdate(stackUID, autov1alpha1.UpType, goesOn), true},
		"It goes on, and nothing is said":        {aStack(claims(claimed)), anUpdate(stackUID, autov1alpha1.UpType, goesOn), true},
		"The Stack claims nothing":               {aStack(), anUpdate(stackUID, autov1alpha1.UpType, pull), true},
		"The Stack claims another":               {aStack(claims("app-2")), anUpdate(stackUID, autov1alpha1.UpType, pull), true},
		"It was made for another Stack":          {aStack(claims(claimed)), anUpdate("uid-of-another", autov1alpha1.UpType, pull), true},
		"It is settled, and its fold is to come": {aStack(claims(claimed), waitsFor(pulumiv1.ReconcilingPodRefused, "No quota")), anUpdate(stackUID, autov1alpha1.UpType, succeeded), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Shows(c.stack, c.update); got != c.want {
				t.Errorf("Shows = %t", got)
			}
			if c.want {
				return
			}
			s := c.stack.DeepCopy()
			s.Status = Assess(inWorld(s, underWay(c.update)), noon).Status
			if !Shows(s, c.update) {
				t.Errorf("A look does not help: %v", s.Status.Conditions)
			}
		})
	}
}

func TestAStackThatFailed(t *testing.T) {
	retrying := func(failures int) string {
		did := map[int]string{1: "", 2: ", and so did 1 retry", 3: ", and so did 2 retries", 4: ", and so did 3 retries", 1001: ", and so did 1000 retries"}[failures]
		return "Up failed" + did + ": error: no such bucket. and more"
	}
	again := For{Generation: 2, Revision: revision, Type: autov1alpha1.UpType}
	exhausted := "Up failed, and so did 3 retries; not retrying until the spec or source changes, or a run is requested: error: no such bucket. and more"
	fail := func(reason autov1alpha1.ConditionReason, failures int64, ago time.Duration, edits ...edit) World {
		return inWorld(aStack(append([]edit{ran(failing(reason, failures, ago))}, edits...)...))
	}
	assess(t, map[string]assessment{
		"The first failure is tried again ten seconds later": {
			world: fail(autov1alpha1.ReasonUpdateFailed, 0, 0),
			want:  outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure", Message: retrying(1), Alarm: 10 * time.Second},
		},
		"Not a nanosecond earlier": {
			world: fail(autov1alpha1.ReasonUpdateFailed, 0, 10*time.Second-1),
			want:  outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure", Message: retrying(1), Alarm: 1},
		},
		"Nor later": {
			world: fail(autov1alpha1.ReasonUpdateFailed, 0, 10*time.Second),
			want:  outcome{Action: Claim, State: processing, Message: "Backoff time elapsed", Wanted: again},
		},
		"The second failure waits thirty seconds": {
			world: fail(autov1alpha1.ReasonUpdateFailed, 1, 0),
			want:  outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure", Message: retrying(2), Alarm: 30 * time.Second},
		},
		"The third failure waits ninety seconds": {
			world: fail(autov1alpha1.ReasonUpdateFailed, 2, 0),
			want:  outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure", Message: retrying(3), Alarm: 90 * time.Second},
		},
		"The fourth failure is the last": {
			world: fail(autov1alpha1.ReasonUpdateFailed, 3, time.Hour),
			want:  outcome{Action: Nothing, State: "Stalled/UpdateFailed", Message: exhausted},
		},
		"A cap shortens the wait": {
			world: fail(autov1alpha1.ReasonUpdateFailed, 2, 0, func(s *pulumiv1.Stack) { s.Spec.RetryMaxBackoffDurationSeconds = 40 }),
			want:  outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure", Message: retrying(3), Alarm: 40 * time.Second},
		},
		"The first wait is ten seconds whatever the cap": {
			why:   "the reference's is too",
			world: fail(autov1alpha1.ReasonUpdateFailed, 0, 0, func(s *pulumiv1.Stack) { s.Spec.RetryMaxBackoffDurationSeconds = 1 }),
			want:  outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure", Message: retrying(1), Alarm: 10 * time.Second},
		},
		"After a stall a new revision gets one attempt": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonUpdateFailed, 3, time.Minute))), atSource("8")),
			want: outcome{Action: Claim, State: processing, Message: `New commit detected: "8"`,
				Wanted: For{Generation: 2, Revision: "8", Type: autov1alpha1.UpType}},
		},
		"A new revision does not wait for the backoff": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonUpdateFailed, 1, 0))), atSource("8")),
			want: outcome{Action: Claim, State: processing, Message: `New commit detected: "8"`,
				Wanted: For{Generation: 2, Revision: "8", Type: autov1alpha1.UpType}},
		},
		"After a stall a request gets a run": {
			world: fail(autov1alpha1.ReasonUpdateFailed, 3, time.Minute, annotated(pulumiv1.AnnotationReconcileRequest, "again")),
			want: outcome{Action: Claim, State: processing, Message: `Sync request: "again"`,
				Wanted: For{Generation: 2, Request: "again", Revision: revision, Type: autov1alpha1.UpType}},
		},
		"A conflict is tried as often as any failure": {
			world: fail(autov1alpha1.ReasonUpdateConflict, 3, time.Hour),
			want: outcome{Action: Nothing, State: "Stalled/UpdateConflict",
				Message: exhausted},
		},
		"A conflict is tried for ever with retryOnUpdateConflict": {
			world: fail(autov1alpha1.ReasonUpdateConflict, 3, 0, func(s *pulumiv1.Stack) { s.Spec.RetryOnUpdateConflict = true }),
			want:  outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure", Message: retrying(4), Alarm: 270 * time.Second},
		},
		"The waits for a conflict end at a day": {
			world: fail(autov1alpha1.ReasonUpdateConflict, 1000, 0, func(s *pulumiv1.Stack) { s.Spec.RetryOnUpdateConflict = true }),
			want:  outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure", Message: retrying(1001), Alarm: 24 * time.Hour},
		},
		"Another failure is tried as often as any, with retryOnUpdateConflict too": {
			world: fail(autov1alpha1.ReasonUpdateFailed, 3, time.Hour, func(s *pulumiv1.Stack) { s.Spec.RetryOnUpdateConflict = true }),
			want:  outcome{Action: Nothing, State: "Stalled/UpdateFailed", Message: exhausted},
		},
		"A run that cannot be set up is tried again": {
			why:   "an install may fail for want of a network",
			world: fail(autov1alpha1.ReasonWorkspaceFailed, 0, 0),
			want:  outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure", Message: retrying(1), Alarm: 10 * time.Second},
		},
		"A run that can never be set up stalls as such": {
			world: fail(autov1alpha1.ReasonWorkspaceFailed, 3, 0),
			want:  outcome{Action: Nothing, State: "Stalled/WorkspaceFailed", Message: exhausted},
		},
		"It could not begin four times": {
			world: fail(autov1alpha1.ReasonImagePullBackOff, 3, 0),
			want:  outcome{Action: Nothing, State: "Stalled/WorkspaceFailed", Message: exhausted},
		},
		"It ran out of memory": {
			world: fail(autov1alpha1.ReasonOutOfMemory, 0, 0),
			want:  outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure", Message: retrying(1), Alarm: 10 * time.Second},
		},
		"It ran out of memory four times": {
			world: fail(autov1alpha1.ReasonOutOfMemory, 3, 0),
			want:  outcome{Action: Nothing, State: "Stalled/UpdateFailed", Message: exhausted},
		},
		"It was evicted": {
			world: fail(autov1alpha1.ReasonEvicted, 0, 0),
			want:  outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure", Message: retrying(1), Alarm: 10 * time.Second},
		},
		"A cancelled Update is not run again": {
			why:   "it was stopped on request, which is final for what it stood for",
			world: fail(autov1alpha1.ReasonCanceled, 0, time.Hour),
			want: outcome{Action: Nothing, State: "Stalled/UpdateCanceled",
				Message: "Up was cancelled; change the Stack or set a new pulumi.com/reconciliation-request to run it again"},
		},
		"A cancelled Update is run again at a new revision": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonCanceled, 0, time.Hour))), atSource("8")),
			want: outcome{Action: Claim, State: processing, Message: `New commit detected: "8"`,
				Wanted: For{Generation: 2, Revision: "8", Type: autov1alpha1.UpType}},
		},
		"A CLI that is too old is not tried again": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonPulumiVersionTooLow, 0, time.Hour),
				func(l *pulumiv1.StackUpdateState) {
					l.Message = "The CLI is 3.0.0; configuration that is no string needs 3.202.0\n"
				}))),
			want: outcome{Action: Nothing, State: "Stalled/PulumiVersionTooLow",
				Message: "The CLI is 3.0.0; configuration that is no string needs 3.202.0"},
		},
		"A CLI that is too old and says nothing is said to be": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonPulumiVersionTooLow, 0, time.Hour),
				func(l *pulumiv1.StackUpdateState) { l.Message = "" }))),
			want: outcome{Action: Nothing, State: "Stalled/PulumiVersionTooLow",
				Message: "The CLI of the image is too old for what the Stack asks; use an image with a newer one"},
		},
		"An Update that could not be run as it was is not tried again": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonInvalid, 0, time.Hour),
				func(l *pulumiv1.StackUpdateState) {
					l.Message = `spec.type: unsupported update type "upp"; use up, preview, refresh or destroy`
				}))),
			want: outcome{Action: Nothing, State: "Stalled/SpecInvalid",
				Message: `The Update was refused: spec.type: unsupported update type "upp"; use up, preview, refresh or destroy`},
		},
		"A failure without a word has a message all the same": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonUnknown, 0, 0), func(l *pulumiv1.StackUpdateState) { l.Message = "\n \n" }))),
			want: outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure",
				Message: "Up failed", Alarm: 10 * time.Second},
		},
		"All lines that say something are shown, as one": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonUnknown, 0, 0), func(l *pulumiv1.StackUpdateState) { l.Message = "\r\n  error: it broke:  \r\n- here" }))),
			want: outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure",
				Message: "Up failed: error: it broke: - here", Alarm: 10 * time.Second},
		},
		"A preview that failed says so": {
			world: inWorld(aStack(previews, ran(ofType(pulumiv1.PreviewUpdateType), failing(autov1alpha1.ReasonUpdateFailed, 1, 0)))),
			want: outcome{Action: Nothing, State: "Reconciling/PreviewFailed",
				Message: "Preview failed, and so did 1 retry: error: no such bucket. and more", Alarm: 30 * time.Second},
		},
		"A preview that failed for the fourth time stalls": {
			world: inWorld(aStack(previews, ran(ofType(pulumiv1.PreviewUpdateType), failing(autov1alpha1.ReasonUpdateFailed, 3, 0)))),
			want: outcome{Action: Nothing, State: "Stalled/UpdateFailed",
				Message: "Preview failed, and so did 3 retries; not retrying until the spec or source changes, or a run is requested: error: no such bucket. and more"},
		},
	})
}

func TestAStackThatIsHeldBack(t *testing.T) {
	suspended := annotated(pulumiv1.AnnotationSuspend, "true")
	message := "Suspended by annotation updraft.dev/suspend; remove it to go on (Initial stack update)"
	assess(t, map[string]assessment{
		"A suspended Stack says what is held back": {
			world: inWorld(aStack(suspended)),
			want:  outcome{Action: Nothing, State: "Reconciling/Suspended", Message: message},
		},
		"A suspended Stack's claim is withdrawn": {
			world: inWorld(aStack(suspended, claims(claimed))),
			want:  outcome{Action: Withdraw, State: "Reconciling/Suspended", Message: message},
		},
		"A suspended Stack in step is Ready": {
			world: inWorld(aStack(suspended, ran())),
			want:  outcome{Action: Nothing, State: ready, Message: upToDate},
		},
		"Only true suspends": {
			world: inWorld(aStack(annotated(pulumiv1.AnnotationSuspend, "false"))),
			want: outcome{Action: Claim, State: processing, Message: "Initial stack update",
				Wanted: For{Generation: 2, Revision: revision, Type: autov1alpha1.UpType}},
		},
		"A suspended Stack's destroy is held back too": {
			world: inWorld(aStack(suspended, destroys, ran(), known, deleted)),
			want: outcome{Action: Nothing, State: "Reconciling/Suspended",
				Message: "Suspended by annotation updraft.dev/suspend; remove it to go on (Stack marked for deletion)"},
		},
		"A source that does not exist stalls the Stack": {
			world: inWorld(aStack(), noSource),
			want: outcome{Action: Nothing, State: "Stalled/SourceUnavailable",
				Message: "Program web does not exist in namespace team; create it, or correct programRef"},
		},
		"A source that is gone stalls a Stack in step": {
			world: inWorld(aStack(ran()), noSource),
			want: outcome{Action: Nothing, State: "Stalled/SourceUnavailable",
				Message: "Program web does not exist in namespace team; create it, or correct programRef"},
		},
		"A claim for a source that is gone is withdrawn": {
			world: inWorld(aStack(claims(claimed)), noSource),
			want: outcome{Action: Withdraw, State: "Stalled/SourceUnavailable",
				Message: "Program web does not exist in namespace team; create it, or correct programRef"},
		},
	})
}

func TestAStackThatResyncs(t *testing.T) {
	resyncs := func(seconds int64) edit {
		return func(s *pulumiv1.Stack) {
			s.Spec.ContinueResyncOnCommitMatch, s.Spec.ResyncFrequencySeconds = true, seconds
		}
	}
	again := For{Generation: 2, Revision: revision, Type: autov1alpha1.UpType, Resync: true}
	assess(t, map[string]assessment{
		"A Stack in step has an alarm for its next resync": {
			world: inWorld(aStack(ran(ago(5*time.Minute)), resyncs(600))),
			want:  outcome{Action: Nothing, State: ready, Message: upToDate, Alarm: 5 * time.Minute},
		},
		"A resync is due once its period is over": {
			world: inWorld(aStack(ran(ago(10*time.Minute)), resyncs(600))),
			want:  outcome{Action: Claim, State: processing, Message: "Resync time elapsed", Wanted: again},
		},
		"No period is shorter than a minute": {
			world: inWorld(aStack(ran(ago(30*time.Second)), resyncs(5))),
			want:  outcome{Action: Nothing, State: ready, Message: upToDate, Alarm: 30 * time.Second},
		},
		"The default period is a minute": {
			world: inWorld(aStack(ran(ago(30*time.Second)), resyncs(0))),
			want:  outcome{Action: Nothing, State: ready, Message: upToDate, Alarm: 30 * time.Second},
		},
		"A period beyond what a duration holds is long, not short": {
			why:   "a user may write a large number for never",
			world: inWorld(aStack(ran(ago(time.Hour)), resyncs(1<<62))),
			want: outcome{Action: Nothing, State: ready, Message: upToDate,
				Alarm: time.Duration(1<<63-1).Truncate(time.Second) - time.Hour},
		},
		"The period alone does nothing": {
			why:   "it is also the poll of a git branch",
			world: inWorld(aStack(ran(ago(time.Hour)), func(s *pulumiv1.Stack) { s.Spec.ResyncFrequencySeconds = 60 })),
			want:  outcome{Action: Nothing, State: ready, Message: upToDate},
		},
		"A Stack that failed waits for its backoff, not for the resync": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonUpdateFailed, 3, time.Hour)), resyncs(60))),
			want: outcome{Action: Nothing, State: "Stalled/UpdateFailed",
				Message: "Up failed, and so did 3 retries; not retrying until the spec or source changes, or a run is requested: error: no such bucket. and more"},
		},
	})
}

func TestAWorkspaceThatIsReclaimed(t *testing.T) {
	inStep := outcome{Action: Nothing, State: ready, Message: upToDate}
	reclaim := outcome{Action: Reclaim, State: ready, Message: upToDate}
	assess(t, map[string]assessment{
		"After a success the Workspace goes": {world: inWorld(aStack(reclaiming, ran()), withWorkspace(stackUID)), want: reclaim},
		"A Workspace that is gone stays so":  {world: inWorld(aStack(reclaiming, ran())), want: inStep},
		"A Workspace in which something runs stays": {
			world: inWorld(aStack(reclaiming, ran()), lockedBy("another")), want: inStep},
		"A Workspace whose run has ended goes": {
			world: inWorld(aStack(reclaiming, ran()), lockedBy("another"), func(w *World) { w.HolderEnded = true }), want: reclaim},
		"A Workspace that goes already is left alone": {
			world: inWorld(aStack(reclaiming, ran()), withWorkspace(stackUID), func(w *World) {
				t := at(noon)
				w.Workspace.DeletionTimestamp = &t
			}), want: inStep},
		"Another's Workspace stays": {world: inWorld(aStack(reclaiming, ran()), withWorkspace("uid-of-another")), want: inStep},
		"Without the policy it stays": {
			world: inWorld(aStack(ran()), withWorkspace(stackUID)), want: inStep},
		"After a failure it stays": {
			world: inWorld(aStack(reclaiming, ran(failing(autov1alpha1.ReasonUpdateFailed, 0, 0))), withWorkspace(stackUID)),
			want: outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure",
				Message: "Up failed: error: no such bucket. and more", Alarm: 10 * time.Second}},
	})
}

func TestTheMessageOfAConditionIsCutBetweenLetters(t *testing.T) {
	for _, before := range []string{"", "a", "aa"} {
		s := aStack(ran(failing(autov1alpha1.ReasonUpdateFailed, 0, 0), func(l *pulumiv1.StackUpdateState) {
			l.Message = before + strings.Repeat("€", 20000)
		}))
		v := Assess(inWorld(s), noon)
		checkConditions(t, s, &v.Status)
		checkRepeat(t, inWorld(s), v, noon)
	}
}

func TestNeedsWorkspace(t *testing.T) {
	cases := map[string]struct {
		stack *pulumiv1.Stack
		want  bool
	}{
		"A Stack in step does without":          {aStack(ran()), false},
		"A Stack to be claimed does without":    {aStack(), false},
		"A claimed Stack needs it":              {aStack(claims(claimed)), true},
		"A Stack that is being deleted does":    {aStack(deleted), true},
		"A Stack whose Workspace is to go does": {aStack(reclaiming), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NeedsWorkspace(c.stack); got != c.want {
				t.Errorf("NeedsWorkspace = %v", got)
			}
		})
	}
}
