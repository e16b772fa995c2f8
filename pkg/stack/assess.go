package stack

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// Action is the next write that a Stack needs.
type Action string

const (
	// Nothing is to be written but the status, if it differs.
	Nothing Action = "Nothing"
	// AddFinalizer puts the finalizer onto the Stack.
	AddFinalizer Action = "AddFinalizer"
	// Claim writes a new claim into the status, or adopts an open Update.
	Claim Action = "Claim"
	// Finish makes the Workspace and the Update that the claim names.
	Finish Action = "Finish"
	// Withdraw takes the claim out of the status.
	Withdraw Action = "Withdraw"
	// Reclaim deletes the Workspace.
	Reclaim Action = "Reclaim"
	// Release takes the finalizer off the Stack.
	Release Action = "Release"
)

// Verdict is what a Stack needs.
type Verdict struct {
	// Action is the next write.
	Action Action
	// Status is the Stack's status with conditions and observations as they
	// should be; the claim is as it was read, but withdrawn if Action says so.
	Status pulumiv1.StackStatus
	// Alarm is when to look again though nothing changes; zero if never.
	Alarm time.Time
	// Plan is what is to be made, with Claim and Finish.
	Plan *Plan
	// Poke lists prerequisites to ask for a run, because they are out of date.
	Poke []string
}

// NeedsWorkspace says whether a decision about the Stack rests on its
// Workspace.
func NeedsWorkspace(stack *pulumiv1.Stack) bool {
	return deleting(stack) || stack.Status.CurrentUpdate != nil || reclaims(stack)
}

// Assess decides what a Stack needs next.
func Assess(w World, now time.Time) Verdict {
	v := Verdict{Action: Nothing, Status: *w.Stack.Status.DeepCopy()}
	if deleting(w.Stack) && !hasFinalizer(w.Stack) {
		return v // it is gone, but for others' finalizers
	}
	v.Status.ObservedGeneration = w.Stack.Generation
	v.Status.ObservedReconcileRequest = request(w.Stack)
	if !deleting(w.Stack) && !hasFinalizer(w.Stack) {
		v.Action = AddFinalizer
		v.reconciling(w, now, pulumiv1.ReconcilingProcessing, "The stack is being processed")
		return v
	}
	if w.Stack.Status.CurrentUpdate != nil && w.Update != nil && MadeFor(w.Update, w.Stack.UID) {
		if w.Update.Settled() && !hasFinalizer(w.Update) {
			return foldAgain(w, now)
		}
		return v.underWay(w, now)
	}
	if deleting(w.Stack) && !wantsDestroy(w.Stack) {
		return v.release(w, now)
	}
	return v.want(w, now)
}

// underWay is the verdict while the claimed Update exists: its end will wake
// the Stack.
func (v Verdict) underWay(w World, now time.Time) Verdict {
	if reason, why := w.Update.PodWaits(); reason != "" {
		message := because(fmt.Sprintf("Update %s (%s) cannot begin", w.Update.Name, w.Update.Spec.Type), why)
		v.reconciling(w, now, waitReasons[reason], orLetGo(w, message))
		return v
	}
	message := fmt.Sprintf("Update %s (%s) is being processed", w.Update.Name, w.Update.Spec.Type)
	c := meta.FindStatusCondition(v.Status.Conditions, pulumiv1.ReconcilingCondition)
	if c != nil && c.Reason == string(pulumiv1.ReconcilingProcessing) && c.ObservedGeneration == w.Stack.Generation && c.Message != "" {
		message = c.Message // it says why the Update was wanted; do not flap
	}
	v.reconciling(w, now, pulumiv1.ReconcilingProcessing, message)
	return v
}

// waitReasons are a Stack's reasons by those of its Update, whose pod cannot
// begin.
var waitReasons = map[autov1alpha1.ConditionReason]pulumiv1.ReconcilingReason{
	autov1alpha1.ReasonImagePullBackOff:     pulumiv1.ReconcilingImagePullBackOff,
	autov1alpha1.ReasonUnschedulable:        pulumiv1.ReconcilingUnschedulable,
	autov1alpha1.ReasonPodRefused:           pulumiv1.ReconcilingPodRefused,
	autov1alpha1.ReasonCreateContainerError: pulumiv1.ReconcilingCreateContainerError,
}

// Shows says whether a Stack's conditions tell what its claimed Update waits for,
// or that it waits for nothing; true if the Stack claims another.
func Shows(stack *pulumiv1.Stack, update *autov1alpha1.Update) bool {
	claim := stack.Status.CurrentUpdate
	if claim == nil || claim.Name != update.Name || !MadeFor(update, stack.UID) || update.Settled() {
		return true
	}
	shown := meta.FindStatusCondition(stack.Status.Conditions, pulumiv1.ReconcilingCondition)
	reason, why := update.PodWaits()
	if reason == "" {
		return shown == nil || !showsWait(shown.Reason)
	}
	return shown != nil && shown.Reason == string(waitReasons[reason]) && strings.HasSuffix(shown.Message, said(why))
}

func showsWait(reason string) bool {
	for _, r := range waitReasons {
		if string(r) == reason {
			return true
		}
	}
	return false
}

// foldAgain is the verdict for a claimed Update that is settled and let go of:
// it was folded once, and a restore or a hand has undone that. Nobody else looks
// at such an Update any more.
func foldAgain(w World, now time.Time) Verdict {
	s := w.Stack.DeepCopy()
	s.Status, _ = Fold(w.Stack, w.Update)
	s.Status.CurrentUpdate = nil
	w.Stack, w.Update = s, nil
	v := Assess(w, now)
	v.Action, v.Plan, v.Poke = Withdraw, nil, nil
	return v
}

// release is the verdict for a deleted Stack that needs no destroy: no claim is
// kept, and a run in flight is waited for.
func (v Verdict) release(w World, now time.Time) Verdict {
	v = v.withdraw(w)
	if locked(w) {
		v.waitForRun(w, now)
		return v
	}
	if v.Action == Nothing {
		v.Action = Release
	}
	v.ready(w, now, "The stack has been released")
	return v
}

func (v *Verdict) waitForRun(w World, now time.Time) {
	v.reconciling(w, now, pulumiv1.ReconcilingProcessing, fmt.Sprintf("Waiting for the run of Update %s to end", w.Workspace.Status.Run.Name))
}

// want is the verdict where no Update is under way: whether one is needed, and
// whether it can be.
func (v Verdict) want(w World, now time.Time) Verdict {
	if Destroyed(w.Stack) {
		return v.inStep(w, now) // neither spec nor source count any more
	}
	if problem := Validate(w.Stack); problem != "" {
		return v.stall(w, now, pulumiv1.StalledSpecInvalid, "Invalid spec: "+problem)
	}
	if w.Source.Problem != "" && !Sourceless(w.Stack) {
		return v.stall(w, now, pulumiv1.StalledSourceUnavailable, w.Source.Problem)
	}
	revision, counts := w.Source.Revision, w.Source.counts()
	if Sourceless(w.Stack) {
		revision, counts = "", ""
	}
	is := synced(w.Stack, counts, now)
	v.Alarm = is.next
	if is.why == "" {
		return v.inStep(w, now)
	}
	if w.Stack.Annotations[pulumiv1.AnnotationSuspend] == "true" {
		v = v.withdraw(w)
		v.reconciling(w, now, pulumiv1.ReconcilingSuspended,
			fmt.Sprintf("Suspended by annotation %s; remove it to go on (%s)", pulumiv1.AnnotationSuspend, is.why))
		return v
	}
	if unmet, poke := prerequisites(w, now); unmet != "" && !deleting(w.Stack) {
		v = v.withdraw(w)
		v.Poke = poke
		v.reconciling(w, now, pulumiv1.ReconcilingPrerequisite, unmet)
		return v
	}
	wanted := For{Generation: w.Stack.Generation, Request: request(w.Stack), Revision: revision, Type: wantedType(w.Stack)}
	wanted.Resync = is.resync && revision != "" // of a revision that nobody saw, nobody knows that it is the same
	plan, err := NewPlan(w.Stack, wanted, is.why)
	if err != nil {
		return v.stall(w, now, pulumiv1.StalledSpecInvalid, "Invalid spec: "+err.Error())
	}
	if !hasSource(plan.Workspace) {
		return v.stall(w, now, pulumiv1.StalledSpecInvalid, "Invalid spec: no source: set programRef, or projectRepo and branch, "+
			"or let an init container or a volume of the workspaceTemplate make "+projectFolder)
	}
	v.Plan = plan
	v.Action = Claim
	if w.Stack.Status.CurrentUpdate != nil && w.Update == nil {
		v.Action = Finish
	}
	v.Alarm = time.Time{}
	v.reconciling(w, now, pulumiv1.ReconcilingProcessing, is.why)
	return v
}

// inStep is the verdict where what ran last is what is wanted, or all that is
// tried: nothing needs a claim any more.
func (v Verdict) inStep(w World, now time.Time) Verdict {
	v = v.withdraw(w)
	last := w.Stack.Status.LastUpdate
	switch {
	case last.State != pulumiv1.SucceededStackStateMessage:
		return v.failed(w, now, last)
	case deleting(w.Stack) && locked(w):
		v.waitForRun(w, now)
		return v
	case v.Action != Nothing: // one write at a time
	case deleting(w.Stack):
		v.Action = Release
	case reclaims(w.Stack) && w.Workspace != nil && !locked(w) && w.Workspace.DeletionTimestamp == nil && MadeFor(w.Workspace, w.Stack.UID):
		v.Action = Reclaim
	}
	v.ready(w, now, inStepMessage(w))
	return v
}

func inStepMessage(w World) string {
	if w.Source.Unread != "" && !deleting(w.Stack) {
		return "The stack is up to date with what was last seen of its source, which cannot be read: " + said(w.Source.Unread)
	}
	return "The stack has been processed and is up to date"
}

// failed is the verdict on a Stack whose last Update failed.
func (v Verdict) failed(w World, now time.Time, last *pulumiv1.StackUpdateState) Verdict {
	reason := autov1alpha1.ConditionReason(last.Reason)
	switch {
	case reason == autov1alpha1.ReasonCanceled && !deleting(w.Stack):
		return v.stall(w, now, pulumiv1.StalledUpdateCanceled, fmt.Sprintf("%s was cancelled; change the Stack or set a new %s to run it again", last.Type, pulumiv1.AnnotationReconcileRequest))
	case reason == autov1alpha1.ReasonPulumiVersionTooLow:
		return v.stall(w, now, pulumiv1.StalledPulumiVersionTooLow, cmp.Or(said(last.Message), "The CLI of the image is too old for what the Stack asks; use an image with a newer one"))
	case reason == autov1alpha1.ReasonInvalid:
		return v.stall(w, now, pulumiv1.StalledSpecInvalid, because("The Update was refused", last.Message))
	case exhausted(w.Stack, last):
		v.stalled(w, now, exhaustedReason(reason), exhaustedMessage(w.Stack, last))
	case w.Stack.Spec.Preview:
		v.reconciling(w, now, pulumiv1.ReconcilingPreviewFailed, because(attempts(last), last.Message))
	default:
		v.reconciling(w, now, pulumiv1.ReconcilingRetry, because(attempts(last), last.Message))
	}
	return v
}

func exhaustedReason(reason autov1alpha1.ConditionReason) pulumiv1.StalledReason {
	switch reason {
	case autov1alpha1.ReasonWorkspaceFailed, autov1alpha1.ReasonImagePullBackOff, autov1alpha1.ReasonUnschedulable,
		autov1alpha1.ReasonPodRefused, autov1alpha1.ReasonCreateContainerError:
		return pulumiv1.StalledWorkspaceFailed
	case autov1alpha1.ReasonUpdateConflict:
		return pulumiv1.StalledUpdateConflict
	default:
		return pulumiv1.StalledUpdateFailed
	}
}

func exhaustedMessage(stack *pulumiv1.Stack, last *pulumiv1.StackUpdateState) string {
	next := "not retrying until the spec or source changes, or a run is requested"
	if deleting(stack) {
		next = fmt.Sprintf("still retrying; annotation %s=true releases the Stack without a destroy", pulumiv1.AnnotationLetGo)
	}
	return because(attempts(last)+"; "+next, last.Message)
}

// attempts says how often the last Update has failed, in the numbers of
// status.lastUpdate.failures, which does not count the first.
func attempts(last *pulumiv1.StackUpdateState) string {
	switch last.Failures {
	case 0:
		return fmt.Sprintf("%s failed", last.Type)
	case 1:
		return fmt.Sprintf("%s failed, and so did 1 retry", last.Type)
	default:
		return fmt.Sprintf("%s failed, and so did %d retries", last.Type, last.Failures)
	}
}

func wantedType(stack *pulumiv1.Stack) autov1alpha1.UpdateType {
	switch {
	case deleting(stack):
		return autov1alpha1.DestroyType
	case stack.Spec.Preview:
		return autov1alpha1.PreviewType
	default:
		return autov1alpha1.UpType
	}
}

func (v Verdict) stall(w World, now time.Time, reason pulumiv1.StalledReason, message string) Verdict {
	v = v.withdraw(w)
	v.stalled(w, now, reason, orLetGo(w, message))
	return v
}

// orLetGo adds to what keeps a Stack that is being deleted how to release it.
func orLetGo(w World, message string) string {
	if !deleting(w.Stack) {
		return message
	}
	return fmt.Sprintf("%s; annotation %s=true releases the Stack without a destroy", message, pulumiv1.AnnotationLetGo)
}

// withdraw drops a claim that cannot be finished as things are. Its Update does
// not exist, or is another's.
func (v Verdict) withdraw(w World) Verdict {
	if w.Stack.Status.CurrentUpdate != nil {
		v.Action = Withdraw
		v.Status.CurrentUpdate = nil
	}
	return v
}

func (v *Verdict) ready(w World, now time.Time, message string) {
	v.Status.MarkReady(w.Stack.Generation, metav1.NewTime(now), message)
}

func (v *Verdict) reconciling(w World, now time.Time, reason pulumiv1.ReconcilingReason, message string) {
	v.Status.MarkReconciling(w.Stack.Generation, metav1.NewTime(now), reason, message)
}

func (v *Verdict) stalled(w World, now time.Time, reason pulumiv1.StalledReason, message string) {
	v.Status.MarkStalled(w.Stack.Generation, metav1.NewTime(now), reason, message)
}

// locked says whether a run goes on, or may, in the Stack's Workspace.
func locked(w World) bool {
	return w.Workspace != nil && MadeFor(w.Workspace, w.Stack.UID) && w.Workspace.Status.Run != nil && !w.HolderEnded
}

func reclaims(stack *pulumiv1.Stack) bool {
	return stack.Spec.WorkspaceReclaimPolicy == pulumiv1.WorkspaceReclaimDelete
}

// because adds to a condition's message what a run said, as far as it said
// anything.
func because(what, text string) string {
	if text = said(text); text != "" {
		return what + ": " + text
	}
	return what
}

// maxSaid is how much of what a run said is in a condition's message, in bytes. The
// whole is in status.lastUpdate.message.
const maxSaid = 1024

func said(text string) string { return Paragraph(text, maxSaid) }

// Paragraph is a text as one line, as the message of a condition or of an Event is,
// and no longer than so many bytes. The lines of the text are told apart by what they
// end with, or by a semicolon.
func Paragraph(text string, most int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		words := strings.Join(strings.Fields(line), " ")
		switch {
		case words == "":
			continue
		case b.Len() == 0:
		case strings.ContainsRune(".:;,!?", rune(b.String()[b.Len()-1])):
			b.WriteString(" ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(words)
	}
	line := strings.TrimRight(b.String(), " .:")
	if len(line) <= most {
		return line
	}
	cut := most
	for !utf8.RuneStart(line[cut]) {
		cut--
	}
	return line[:cut] + "…"
}
