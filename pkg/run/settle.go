package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
)

// SettleWorld is all that the decision about a run rests on, when it has not
// reported its end itself.
type SettleWorld struct {
	Update *autov1alpha1.Update
	// Job of the Update; nil if it is gone.
	Job *batchv1.Job
	// Pod that took the run, or, if none did, the pod of the Job; nil if it is
	// gone.
	Pod *corev1.Pod
	// Refusals are the Events of reason FailedCreate of a Job that MayBeRefused
	// and has no pod.
	Refusals []corev1.Event
	// NodeReadySince is since when the node of a pod that is gone has been
	// Ready; zero if it is not.
	NodeReadySince time.Time
	// NodeGone says that the node of a pod that is gone is gone too.
	NodeGone bool
}

// SettleAction is the next write towards the end of a run.
type SettleAction string

const (
	// SettleNothing is to be done: the run goes on, or is not launched yet.
	SettleNothing SettleAction = "Nothing"
	// SettleAbsent records that the pod which took the run is gone.
	SettleAbsent SettleAction = "Absent"
	// SettleEnd records the end of the run, and settles the Update unless it is.
	SettleEnd SettleAction = "End"
)

// SettleVerdict is what is known of a run's end.
type SettleVerdict struct {
	Action SettleAction
	// Outcome of a run that did not report one, with SettleEnd.
	Outcome event.Termination
	// Alarm is when to look again, with SettleAbsent.
	Alarm time.Time
}

// AssessEnd decides from a run's pod whether it has ended, and how.
func AssessEnd(w SettleWorld, now time.Time) SettleVerdict {
	u := w.Update
	switch {
	case u.Status.Run != nil && u.Status.Run.Phase == autov1alpha1.RunEnded:
		return SettleVerdict{Action: SettleNothing}
	case Taken(u):
		return takenEnd(w, now)
	case u.Settled():
		return SettleVerdict{Action: SettleNothing} // never run: nothing can begin
	default:
		return untakenEnd(w)
	}
}

func takenEnd(w SettleWorld, now time.Time) SettleVerdict {
	taken := w.Update.Status.Run
	if w.Pod == nil || w.Pod.UID != taken.PodUID {
		return absentEnd(w, taken, now)
	}
	end := terminated(w.Pod)
	if end == nil {
		return SettleVerdict{Action: SettleNothing}
	}
	return SettleVerdict{Action: SettleEnd, Outcome: outcome(w, end)}
}

// absentEnd waits until a pod that is gone is proven to have ended: its node is
// gone too, or has been Ready for longer than the pod's grace period since the
// pod was first found gone.
func absentEnd(w SettleWorld, taken *autov1alpha1.RunStatus, now time.Time) SettleVerdict {
	aborted := event.Termination{
		State: string(autov1alpha1.ResultFailed), Reason: string(autov1alpha1.ReasonAborted),
		Message: fmt.Sprintf("Pod %s is gone and left no report", taken.PodName),
	}
	if w.NodeGone || w.Update.Settled() {
		// Settled by its own report, which comes after the CLI has ended: nothing
		// of the run is left to go on.
		return SettleVerdict{Action: SettleEnd, Outcome: aborted}
	}
	if taken.AbsentSince == nil {
		return SettleVerdict{Action: SettleAbsent, Alarm: now.Add(grace)}
	}
	proven := later(taken.AbsentSince.Time, w.NodeReadySince).Add(grace)
	if w.NodeReadySince.IsZero() || now.Before(proven) {
		return SettleVerdict{Action: SettleAbsent, Alarm: later(proven, now)}
	}
	return SettleVerdict{Action: SettleEnd, Outcome: aborted}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// untakenEnd settles an Update whose pod ended, or whose Job failed, before any
// pod took the run.
func untakenEnd(w SettleWorld) SettleVerdict {
	why := jobFailed(w.Job)
	switch {
	case pastDeadline(w.Job):
		return notBegun(w)
	case w.Pod != nil && finished(w.Pod):
		if name, t := culprit(w.Pod); t != nil {
			if why := evicted(w.Pod); why != "" && !told(t) && t.Reason != oomKilled {
				return failed(autov1alpha1.ReasonEvicted, why)
			}
			return SettleVerdict{Action: SettleEnd, Outcome: AsTold(fromContainer(name, t, autov1alpha1.ReasonWorkspaceFailed), w.Update, w.Job, w.Pod)}
		}
		if why := evicted(w.Pod); why != "" {
			return failed(autov1alpha1.ReasonEvicted, why)
		}
		if said := podMessage(w.Pod); said != "" {
			return failed(autov1alpha1.ReasonWorkspaceFailed, said)
		}
	}
	switch {
	case why != nil:
		return failed(autov1alpha1.ReasonWorkspaceFailed, "The run's Job failed before it began: "+oneLine(why.Message))
	case w.Pod != nil && w.Pod.Status.Phase == corev1.PodSucceeded, jobCondition(w.Job, batchv1.JobComplete) != nil:
		return neverTaken(w.Update)
	default:
		return SettleVerdict{Action: SettleNothing}
	}
}

// notBegun settles an Update whose time was over before any pod took it: what it
// waited for last is why.
func notBegun(w SettleWorld) SettleVerdict {
	const late = "The run did not begin before its timeout"
	reason, message := autov1alpha1.ConditionReason(""), ""
	if w.Pod != nil && !finished(w.Pod) {
		reason, message = podWaits(w)
	}
	if reason == "" {
		reason, message = w.Update.PodWaits()
	}
	if reason == "" {
		return failed(autov1alpha1.ReasonDeadlineExceeded, late+waiting(w.Pod))
	}
	return failed(reason, late+": "+message)
}

func failed(reason autov1alpha1.ConditionReason, message string) SettleVerdict {
	return SettleVerdict{Action: SettleEnd, Outcome: event.Termination{
		State: string(autov1alpha1.ResultFailed), Reason: string(reason), Message: message,
	}}
}

// neverTaken settles an Update whose pod ended well and did nothing: the run was
// refused to it, or it is not our agent that ran.
func neverTaken(u *autov1alpha1.Update) SettleVerdict {
	if u.DeletionTimestamp == nil {
		return failed(autov1alpha1.ReasonWorkspaceFailed, "The run's pod ended and never took the run; leave the command of container pulumi as it is")
	}
	return SettleVerdict{Action: SettleEnd, Outcome: event.Termination{
		State: string(autov1alpha1.ResultCanceled), Reason: string(autov1alpha1.ReasonCanceled), Message: "Cancelled before it was run",
	}}
}

// culprit is the container whose failure ended a pod: the one that runs the CLI,
// or else the first that had to succeed before it. A sidecar is stopped with the
// others.
func culprit(pod *corev1.Pod) (name string, end *corev1.ContainerStateTerminated) {
	sidecars := map[string]bool{}
	for _, c := range pod.Spec.InitContainers {
		sidecars[c.Name] = c.RestartPolicy != nil
	}
	statuses := containerStatuses(pod)
	slices.SortStableFunc(statuses, func(a, b corev1.ContainerStatus) int {
		rank := func(s corev1.ContainerStatus) int {
			switch {
			case s.Name == Container:
				return 0
			case !sidecars[s.Name]:
				return 1
			default:
				return 2
			}
		}
		return rank(a) - rank(b)
	})
	for _, s := range statuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return s.Name, t
		}
	}
	return "", nil
}

// containerStatuses are all of a pod's, in the order in which they begin.
func containerStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// outcome of a run that took its Update and ended without a report.
func outcome(w SettleWorld, end *corev1.ContainerStateTerminated) event.Termination {
	t := fromContainer(Container, end, autov1alpha1.ReasonAborted)
	if t.Reason == string(autov1alpha1.ReasonAborted) {
		if pastDeadline(w.Job) {
			return tooLong
		}
		if why := evicted(w.Pod); why != "" {
			t.Reason, t.Message = string(autov1alpha1.ReasonEvicted), why
		} else if why := podMessage(w.Pod); why != "" {
			t.Message += " (" + why + ")"
		}
	}
	return AsTold(t, w.Update, w.Job, w.Pod)
}

// tooLong is the outcome of a run that was stopped at its Job's deadline.
var tooLong = event.Termination{
	State: string(autov1alpha1.ResultFailed), Reason: string(autov1alpha1.ReasonDeadlineExceeded),
	Message: "The run took longer than its timeout and was stopped; raise timeout through updateTemplate, or make it do less",
}

// evicted says why a pod was taken off its node, "" if it was not: the kubelet
// says so itself, and whoever deletes it leaves a condition before.
func evicted(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	const what = "The run's pod was evicted"
	switch pod.Status.Reason {
	case "Evicted", "Preempting", "Preempted":
		return that(what, cmp.Or(pod.Status.Message, pod.Status.Reason))
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return that(what, c.Reason+": "+c.Message)
		}
	}
	return ""
}

// AsTold corrects the word of a run that was told to stop. It knows that it was,
// but not by whom: only a request makes a run canceled, which is final. That is
// the deletion of its Update or of its Job, which is nil if it is gone.
func AsTold(t event.Termination, u *autov1alpha1.Update, job *batchv1.Job, pod *corev1.Pod) event.Termination {
	switch {
	case t.State != string(autov1alpha1.ResultCanceled):
		return t
	case pastDeadline(job):
		return tooLong
	case u.DeletionTimestamp != nil, job == nil, job.DeletionTimestamp != nil:
		return t
	case evicted(pod) != "":
		return event.Termination{
			State: string(autov1alpha1.ResultFailed), Reason: string(autov1alpha1.ReasonEvicted), Message: evicted(pod),
		}
	default:
		return event.Termination{
			State: string(autov1alpha1.ResultFailed), Reason: string(autov1alpha1.ReasonAborted),
			Message: "The run was stopped with its pod, as when a node is drained",
		}
	}
}

// oomKilled is the reason of a container's end that used more memory than its
// limit.
const oomKilled = "OOMKilled"

// told says whether an agent left its word as the termination message.
func told(end *corev1.ContainerStateTerminated) bool {
	var t event.Termination
	return json.Unmarshal([]byte(end.Message), &t) == nil && t.State != ""
}

// fromContainer takes the outcome from what an agent left as its termination
// message, or says how the container ended.
func fromContainer(name string, end *corev1.ContainerStateTerminated, otherwise autov1alpha1.ConditionReason) event.Termination {
	var t event.Termination
	if json.Unmarshal([]byte(end.Message), &t) == nil && t.State != "" {
		if OnlyFound(autov1alpha1.ConditionReason(t.Reason)) {
			t.Reason = string(autov1alpha1.ReasonUnknown)
		}
		return t
	}
	how := fmt.Sprintf("exit code %d", end.ExitCode)
	switch {
	case end.Signal != 0:
		how = fmt.Sprintf("signal %d", end.Signal)
	case end.ExitCode > 128:
		how = fmt.Sprintf("signal %d", end.ExitCode-128)
	}
	message := fmt.Sprintf("Container %s ended with %s before it could report", name, how)
	if end.Reason == oomKilled {
		otherwise = autov1alpha1.ReasonOutOfMemory
		message = fmt.Sprintf("Container %s ran out of memory; raise resources.limits.memory through workspaceTemplate", name)
	}
	if name != Container && end.Message != "" {
		message += ": " + oneLine(end.Message)
	}
	return event.Termination{State: string(autov1alpha1.ResultFailed), Reason: string(otherwise), Message: message}
}

// terminated is the end of the container that runs the CLI; nil while it may
// still run. A pod that failed without ever starting it has an end too.
func terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name == Container && s.State.Terminated != nil {
			return s.State.Terminated
		}
	}
	if finished(pod) {
		return &corev1.ContainerStateTerminated{ExitCode: 1, Reason: pod.Status.Reason}
	}
	return nil
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func podMessage(pod *corev1.Pod) string {
	switch {
	case pod.Status.Message != "" && pod.Status.Reason != "":
		return pod.Status.Reason + ": " + oneLine(pod.Status.Message)
	case pod.Status.Message != "":
		return oneLine(pod.Status.Message)
	default:
		return pod.Status.Reason
	}
}

// waiting says what a pod that has not begun waits for.
func waiting(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	for _, s := range containerStatuses(pod) {
		if w := s.State.Waiting; w != nil && w.Message != "" {
			return ": " + w.Reason + ": " + oneLine(w.Message)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return ": " + c.Reason + ": " + oneLine(c.Message)
		}
	}
	return ""
}

// jobFailed is why a Job has failed, or is about to: its condition Failed comes
// only once its pods have ended.
func jobFailed(job *batchv1.Job) *batchv1.JobCondition {
	if c := jobCondition(job, batchv1.JobFailed); c != nil {
		return c
	}
	return jobCondition(job, batchv1.JobFailureTarget)
}

func pastDeadline(job *batchv1.Job) bool {
	why := jobFailed(job)
	return why != nil && why.Reason == batchv1.JobReasonDeadlineExceeded
}

// jobCondition is the Job's condition of this type if it is True.
func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	if job == nil {
		return nil
	}
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// AbsentUntil is when a pod that is gone may be proven to have ended, if its
// node was Ready all the time.
func AbsentUntil(u *autov1alpha1.Update) time.Time {
	if u.Status.Run == nil || u.Status.Run.AbsentSince == nil {
		return time.Time{}
	}
	return u.Status.Run.AbsentSince.Add(grace)
}
