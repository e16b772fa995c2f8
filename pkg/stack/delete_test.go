package stack

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

func TestADeletedStackWithoutDestroy(t *testing.T) {
	release := outcome{Action: Release, State: ready, Message: "The stack has been released"}
	wait := outcome{Action: Nothing, State: processing, Message: "Waiting for the run of Update another to end"}
	assess(t, map[string]assessment{
		"It is released at once":           {world: inWorld(aStack(ran(), deleted)), want: release},
		"One that never ran is released":   {world: inWorld(aStack(deleted)), want: release},
		"One that is invalid is released":  {world: inWorld(aStack(deleted, fluxed)), want: release},
		"One without source is released":   {world: inWorld(aStack(deleted), noSource), want: release},
		"One that is stalled is released":  {world: inWorld(aStack(ran(failing(autov1alpha1.ReasonCanceled, 0, 0)), deleted)), want: release},
		"One that is suspended is too":     {world: inWorld(aStack(deleted, annotated(pulumiv1.AnnotationSuspend, "true"))), want: release},
		"One that lacks prerequisites too": {world: inWorld(aStack(deleted), needs("net", 0, nil)), want: release},
		"A preview Stack never destroys": {
			world: inWorld(aStack(previews, destroys, ran(ofType(pulumiv1.PreviewUpdateType)), deleted)), want: release},
		"A Stack that is let go never destroys": {
			world: inWorld(aStack(destroys, ran(), deleted, annotated(pulumiv1.AnnotationLetGo, "true"))), want: release},
		"A Stack that is let go after a failed destroy is released": {
			world: inWorld(aStack(destroys, deleted, annotated(pulumiv1.AnnotationLetGo, "true"),
				ran(ofType(pulumiv1.DestroyUpdateType), failing(autov1alpha1.ReasonUpdateFailed, 5, 0)))), want: release},
		"A claim without Update is withdrawn": {
			why:   "deletion waits for nothing but a run in flight",
			world: inWorld(aStack(deleted, claims(claimed))),
			want:  outcome{Action: Withdraw, State: ready, Message: "The stack has been released"},
		},
		"A claim of another's Update is withdrawn": {
			world: inWorld(aStack(deleted, claims(claimed)), underWay(anUpdate("uid-of-another", autov1alpha1.UpType))),
			want:  outcome{Action: Withdraw, State: ready, Message: "The stack has been released"},
		},
		"A claim without Update is withdrawn while another run goes on": {
			world: inWorld(aStack(deleted, claims(claimed)), lockedBy("another")),
			want:  outcome{Action: Withdraw, State: processing, Message: "Waiting for the run of Update another to end"},
		},
		"An Update in flight is waited for": {
			world: inWorld(aStack(deleted, claims(claimed)), underWay(anUpdate(stackUID, autov1alpha1.UpType))),
			want: outcome{Action: Nothing, State: processing,
				Message: "Update app-19cb6d0f8e0 (up) is being processed", Claim: claimed},
		},
		"A destroy in flight is waited for when the Stack is let go": {
			world: inWorld(aStack(destroys, deleted, claims(claimed), annotated(pulumiv1.AnnotationLetGo, "true")),
				underWay(anUpdate(stackUID, autov1alpha1.DestroyType))),
			want: outcome{Action: Nothing, State: processing,
				Message: "Update app-19cb6d0f8e0 (destroy) is being processed", Claim: claimed},
		},
		"A run that holds the lock is waited for": {
			why: "a hand-made Update may run in the Workspace", world: inWorld(aStack(ran(), deleted), lockedBy("another")), want: wait},
		"A lock whose holder has ended is nobody's": {
			world: inWorld(aStack(ran(), deleted), lockedBy("another"), func(w *World) { w.HolderEnded = true }), want: release},
		"The lock of another's Workspace does not matter": {
			world: inWorld(aStack(ran(), deleted), withWorkspace("uid-of-another"), lockedBy("another")), want: release},
		"An Update that was folded into a status since lost is folded again": {
			world: inWorld(aStack(deleted, claims(claimed)), underWay(anUpdate(stackUID, autov1alpha1.UpType, succeeded, released))),
			want:  outcome{Action: Withdraw, State: ready, Message: "The stack has been released"},
		},
	})
}

func fluxed(s *pulumiv1.Stack) {
	s.Spec.ProgramRef, s.Spec.FluxSource = nil, &pulumiv1.FluxSource{}
}

func TestADeletedStackWithDestroy(t *testing.T) {
	destroy := func(revision string) For {
		return For{Generation: 3, Revision: revision, Type: autov1alpha1.DestroyType}
	}
	wanted := func(revision string) outcome {
		return outcome{Action: Claim, State: processing, Message: "Stack marked for deletion", Wanted: destroy(revision)}
	}
	destroyed := ran(ofType(pulumiv1.DestroyUpdateType), atRevision(""))
	undestroyed := func(reason autov1alpha1.ConditionReason, failures int64, ago time.Duration) edit {
		return ran(ofType(pulumiv1.DestroyUpdateType), atRevision(""), failing(reason, failures, ago))
	}
	gone := outcome{Action: Release, State: ready, Message: upToDate}
	assess(t, map[string]assessment{
		"A destroy is wanted, without the source of a project that is known": {
			world: inWorld(aStack(destroys, ran(), known, deleted)), want: wanted("")},
		"A destroy is wanted for a Stack that never ran": {
			why:   "an Update may have run whose result was lost",
			world: inWorld(aStack(destroys, deleted)), want: wanted(revision)},
		"A destroy that need not run the program does without a source that is gone": {
			world: inWorld(aStack(destroys, ran(), known, deleted), noSource), want: wanted("")},
		"A destroy of a project that is known needs no source that is served": {
			why:   "the operator before this one knew sources that this one does not",
			world: inWorld(aStack(destroys, ran(), known, deleted, fluxed)), want: wanted("")},
		"A destroy that runs the program needs its source": {
			world: inWorld(aStack(destroys, runsProgram, ran(), known, deleted)), want: wanted(revision)},
		"A destroy that runs the program waits for a source that is gone": {
			world: inWorld(aStack(destroys, runsProgram, ran(), known, deleted), noSource),
			want: outcome{Action: Nothing, State: "Stalled/SourceUnavailable",
				Message: "Program web does not exist in namespace team; create it, or correct programRef" + letGoHint},
		},
		"A destroy of a project that is not known needs the source": {
			world: inWorld(aStack(destroys, ran(), deleted), noSource),
			want: outcome{Action: Nothing, State: "Stalled/SourceUnavailable",
				Message: "Program web does not exist in namespace team; create it, or correct programRef" + letGoHint},
		},
		"A spec that cannot be served says how to let go": {
			world: inWorld(aStack(destroys, ran(), deleted, fluxed)),
			want: outcome{Action: Nothing, State: "Stalled/SpecInvalid",
				Message: "Invalid spec: fluxSource: Flux sources are not served by this version of Updraft; use programRef" + letGoHint},
		},
		"Prerequisites do not matter": {
			why:   "they may be gone before",
			world: inWorld(aStack(destroys, ran(), known, deleted), needs("net", 0, nil)), want: wanted("")},
		"A claim of its destroy is finished": {
			world: inWorld(aStack(destroys, ran(), known, deleted, claims(claimed))),
			want: outcome{Action: Finish, State: processing, Message: "Stack marked for deletion",
				Wanted: destroy(""), Claim: claimed},
		},
		"The Update in flight is waited for": {
			world: inWorld(aStack(destroys, known, deleted, claims(claimed)), underWay(anUpdate(stackUID, autov1alpha1.UpType))),
			want: outcome{Action: Nothing, State: processing,
				Message: "Update app-19cb6d0f8e0 (up) is being processed", Claim: claimed},
		},
		"An up that failed as often as it is tried does not matter": {
			world: inWorld(aStack(destroys, known, ran(failing(autov1alpha1.ReasonUpdateFailed, 9, 0)), deleted)), want: wanted("")},
		"An up that was cancelled does not matter": {
			world: inWorld(aStack(destroys, known, ran(failing(autov1alpha1.ReasonCanceled, 0, 0)), deleted)), want: wanted("")},
		"A destroy that failed is tried again after a backoff": {
			world: inWorld(aStack(destroys, known, deleted, undestroyed(autov1alpha1.ReasonUpdateFailed, 0, 0))),
			want: outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure",
				Message: "Destroy failed: error: no such bucket. and more", Alarm: 10 * time.Second},
		},
		"A destroy that failed is tried again": {
			world: inWorld(aStack(destroys, known, deleted, undestroyed(autov1alpha1.ReasonUpdateFailed, 0, 10*time.Second))),
			want:  outcome{Action: Claim, State: processing, Message: "Backoff time elapsed", Wanted: destroy("")},
		},
		"A destroy that failed for the fourth time says how to let go, and waits": {
			why:   "the reference stops here and looks each second for ever",
			world: inWorld(aStack(destroys, known, deleted, undestroyed(autov1alpha1.ReasonUpdateFailed, 3, 0))),
			want: outcome{Action: Nothing, State: "Stalled/UpdateFailed", Alarm: 270 * time.Second,
				Message: "Destroy failed, and so did 3 retries; still retrying; annotation updraft.dev/let-go=true releases the Stack without a destroy: error: no such bucket. and more"},
		},
		"A destroy that failed often is tried again": {
			world: inWorld(aStack(destroys, known, deleted, undestroyed(autov1alpha1.ReasonUpdateFailed, 3, 270*time.Second))),
			want:  outcome{Action: Claim, State: processing, Message: "Backoff time elapsed", Wanted: destroy("")},
		},
		"A destroy that was cancelled is tried again after a backoff": {
			why:   "the Stack is to go; who wants to keep it has the annotation",
			world: inWorld(aStack(destroys, known, deleted, undestroyed(autov1alpha1.ReasonCanceled, 0, 0))),
			want: outcome{Action: Nothing, State: "Reconciling/RetryingAfterFailure",
				Message: "Destroy failed: error: no such bucket. and more", Alarm: 10 * time.Second},
		},
		"A destroy that the CLI is too old for says how to let go": {
			world: inWorld(aStack(destroys, known, deleted, undestroyed(autov1alpha1.ReasonPulumiVersionTooLow, 0, 0))),
			want: outcome{Action: Nothing, State: "Stalled/PulumiVersionTooLow", Alarm: 10 * time.Second,
				Message: "Error: no such bucket. and more" + letGoHint},
		},
		"A destroy that could not be run as it was says how to let go": {
			world: inWorld(aStack(destroys, known, deleted, undestroyed(autov1alpha1.ReasonInvalid, 0, 0))),
			want: outcome{Action: Nothing, State: "Stalled/SpecInvalid", Alarm: 10 * time.Second,
				Message: "The Update was refused: error: no such bucket. and more" + letGoHint},
		},
		"A destroy that succeeded releases the Stack": {
			world: inWorld(aStack(destroys, known, deleted, destroyed)), want: gone},
		"A destroy that succeeded releases the Stack whose Workspace is there": {
			world: inWorld(aStack(destroys, known, deleted, destroyed), withWorkspace(stackUID)), want: gone},
		"A destroy that succeeded releases only once the lock is empty": {
			world: inWorld(aStack(destroys, known, deleted, destroyed), lockedBy(claimed)),
			want: outcome{Action: Nothing, State: processing,
				Message: "Waiting for the run of Update app-19cb6d0f8e0 to end"},
		},
		"A lock whose holder has ended is nobody's": {
			world: inWorld(aStack(destroys, known, deleted, destroyed), lockedBy(claimed), func(w *World) { w.HolderEnded = true }),
			want:  gone,
		},
		"A destroy that succeeded needs no source any more": {
			why:   "Program and Stack are deleted together",
			world: inWorld(aStack(destroys, runsProgram, deleted, ran(ofType(pulumiv1.DestroyUpdateType))), noSource), want: gone},
		"A destroy that succeeded at another revision is one": {
			world: inWorld(aStack(destroys, runsProgram, deleted, ran(ofType(pulumiv1.DestroyUpdateType))), atSource("8")), want: gone},
		"A destroy that succeeded needs no spec that is served": {
			world: inWorld(aStack(destroys, deleted, ran(ofType(pulumiv1.DestroyUpdateType)), fluxed)), want: gone},
		"A destroy that succeeded lets go of a suspended Stack": {
			world: inWorld(aStack(destroys, known, deleted, destroyed, annotated(pulumiv1.AnnotationSuspend, "true"))), want: gone},
		"A claim after a destroy that succeeded is withdrawn": {
			world: inWorld(aStack(destroys, known, deleted, destroyed, claims(claimed))),
			want:  outcome{Action: Withdraw, State: ready, Message: upToDate},
		},
		"A destroy from before the deletion is none": {
			why:   "an updateTemplate may make any Update a destroy, and the Stack ran after it",
			world: inWorld(aStack(destroys, known, ran(ofType(pulumiv1.DestroyUpdateType)), deleted)),
			want: outcome{Action: Claim, State: processing, Message: "New stack generation: 3",
				Wanted: destroy("")},
		},
		"A change of the Stack after its destroy destroys once more": {
			world: inWorld(aStack(destroys, known, deleted, destroyed, func(s *pulumiv1.Stack) { s.Generation = 4 })),
			want: outcome{Action: Claim, State: processing, Message: "New stack generation: 4",
				Wanted: For{Generation: 4, Type: autov1alpha1.DestroyType}},
		},
		"A lost fold of a destroy that succeeded is made up for": {
			world: inWorld(aStack(destroys, known, deleted, claims(claimed)),
				underWay(anUpdate(stackUID, autov1alpha1.DestroyType, succeeded, released, stands(For{Generation: 3, Type: autov1alpha1.DestroyType})))),
			want: outcome{Action: Withdraw, State: ready, Message: upToDate},
		},
	})
}

func TestAStackThatIsGoneButForOthersFinalizersIsLeftAlone(t *testing.T) {
	s := aStack(deleted, destroys, noFinalizer, shown("The stack has been released"), func(s *pulumiv1.Stack) {
		s.Finalizers = []string{"others.example.com/finalizer"}
	})
	want := Verdict{Action: Nothing, Status: *s.Status.DeepCopy()}
	if diff := cmp.Diff(want, Assess(inWorld(s), noon)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
