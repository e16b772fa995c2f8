package run

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

// WaitAction is the next write about a run that was launched and that no pod has
// taken yet.
type WaitAction string

const (
	// WaitNothing is to be written.
	WaitNothing WaitAction = "Nothing"
	// WaitTell records why the run's pod cannot begin.
	WaitTell WaitAction = "Tell"
	// WaitOver records that it goes on.
	WaitOver WaitAction = "Over"
	// WaitUnknown is to be written yet: the Job has no pod, and nobody has said
	// why.
	WaitUnknown WaitAction = "Unknown"
)

// WaitVerdict is what a run that was launched waits for.
type WaitVerdict struct {
	Action WaitAction
	// Reason of the condition Progressing, and its message, with WaitTell.
	Reason  autov1alpha1.ConditionReason
	Message string
}

// onlyFound are reasons of a failure that are told by a run's pod or Job, and
// that a run has no say in.
var onlyFound = []autov1alpha1.ConditionReason{
	autov1alpha1.ReasonImagePullBackOff, autov1alpha1.ReasonUnschedulable,
	autov1alpha1.ReasonPodRefused, autov1alpha1.ReasonCreateContainerError,
	autov1alpha1.ReasonEvicted,
}

// OnlyFound says whether a reason of a failure is one that a run cannot give for
// itself.
func OnlyFound(reason autov1alpha1.ConditionReason) bool { return slices.Contains(onlyFound, reason) }

// ReasonFailedCreate is the reason of a Job's Event that says why it has no pod.
const ReasonFailedCreate = "FailedCreate"

// MayBeRefused says whether a Job looks as one does whose pod was refused: its
// controller has looked at it, and there is none, nor was there one. Why is told
// by its Events alone.
func MayBeRefused(job *batchv1.Job) bool {
	if job == nil || job.DeletionTimestamp != nil || over(job) {
		return false
	}
	s := job.Status
	uncounted := s.UncountedTerminatedPods != nil && len(s.UncountedTerminatedPods.Succeeded)+len(s.UncountedTerminatedPods.Failed) > 0
	return s.StartTime != nil && s.Active == 0 && s.Succeeded == 0 && s.Failed == 0 && (s.Terminating == nil || *s.Terminating == 0) && !uncounted
}

// over says whether nothing of a Job can begin any more.
func over(job *batchv1.Job) bool {
	return jobFailed(job) != nil || jobCondition(job, batchv1.JobComplete) != nil || jobCondition(job, batchv1.JobSuccessCriteriaMet) != nil
}

// AssessWait decides what to say of a run that was launched and not yet taken.
// While it ends nothing is said: what it waited for last is then why it failed.
func AssessWait(w SettleWorld) WaitVerdict {
	u, nothing := w.Update, WaitVerdict{Action: WaitNothing}
	switch {
	case u.Settled(), Taken(u), u.DeletionTimestamp != nil, w.Job == nil, w.Job.DeletionTimestamp != nil, over(w.Job):
		return nothing
	case w.Pod == nil && !MayBeRefused(w.Job):
		return nothing
	case w.Pod != nil && (w.Pod.DeletionTimestamp != nil || finished(w.Pod)):
		return nothing
	}
	toldReason, toldMessage := u.PodWaits()
	reason, message := podWaits(w)
	switch {
	case reason == "" && w.Pod == nil && toldReason == autov1alpha1.ReasonPodRefused:
		return nothing // its Event is no longer kept
	case reason == "" && w.Pod == nil:
		return WaitVerdict{Action: WaitUnknown}
	case reason == "" && toldReason != "":
		return WaitVerdict{Action: WaitOver}
	case reason == "", reason == toldReason && saysNoMore(message, toldMessage):
		return nothing
	default:
		return WaitVerdict{Action: WaitTell, Reason: reason, Message: message}
	}
}

// saysNoMore says whether a message is the one that was told, or that one without
// its cause: some kubelets name the cause only at each try.
func saysNoMore(message, told string) bool {
	what, _, _ := strings.Cut(message, ";")
	return message == told || strings.HasPrefix(told, what+": ")
}

// podWaits is why a run's pod cannot begin, "" if nothing is known to be in its
// way.
func podWaits(w SettleWorld) (reason autov1alpha1.ConditionReason, message string) {
	if w.Pod == nil {
		return refusal(w.Refusals)
	}
	for _, c := range w.Pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return autov1alpha1.ReasonUnschedulable, unschedulable(c.Message)
		}
	}
	for _, s := range containerStatuses(w.Pod) {
		waiting := s.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
			return autov1alpha1.ReasonImagePullBackOff, notPulled(w.Pod, &s)
		case "CreateContainerConfigError", "CreateContainerError", "PreCreateHookError", "PreStartHookError", "RunContainerError":
			return autov1alpha1.ReasonCreateContainerError, notCreated(&s)
		}
	}
	return "", ""
}

// that is a cause behind what is wrong, if there is one.
func that(what, cause string) string {
	if cause = strings.Trim(oneLine(cause), " .:;"); cause != "" {
		return what + ": " + cause
	}
	return what
}

var (
	backOff  = regexp.MustCompile(`^Back-off pulling image "[^"]*"(: )?`)
	pullName = regexp.MustCompile(`^(ErrImagePull|RegistryUnavailable|SignatureValidationFailed): `)
)

// notPulled is the same while the kubelet pulls and while it waits to pull again:
// then it says so before the error of the last time.
func notPulled(pod *corev1.Pod, s *corev1.ContainerStatus) string {
	cause := pullName.ReplaceAllString(backOff.ReplaceAllString(oneLine(s.State.Waiting.Message), ""), "")
	image := s.Image
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == s.Name {
			image = cmp.Or(c.Image, image)
		}
	}
	return that(fmt.Sprintf("Image %s of container %s cannot be pulled", image, s.Name), cause) +
		"; correct it or its pull secret, or wait for the registry"
}

var (
	inPod     = regexp.MustCompile(` \(pod: "[^"]*", container: [^)]*\)`)
	longIdent = regexp.MustCompile(`[0-9a-f]{64}`)
)

func notCreated(s *corev1.ContainerStatus) string {
	cause := longIdent.ReplaceAllString(inPod.ReplaceAllString(oneLine(s.State.Waiting.Message), ""), "...")
	return that(fmt.Sprintf("Container %s cannot be created", s.Name), cause) +
		"; create what is missing and it begins by itself"
}

var (
	ofNodes = regexp.MustCompile(`^\d+/\d+ nodes are available: `)
	counted = regexp.MustCompile(`(?:^|, )\d+ `)
)

// unschedulable leaves out how many nodes are lacking in what: that changes with
// every node that comes and goes.
func unschedulable(said string) string {
	said, _, _ = strings.Cut(oneLine(said), " preemption: ")
	if ofNodes.MatchString(said) {
		var causes []string
		for _, cause := range counted.Split(ofNodes.ReplaceAllString(said, ""), -1) {
			if cause = strings.Trim(cause, " .,"); cause != "" {
				causes = append(causes, strings.ReplaceAll(cause, "node(s) ", "nodes "))
			}
		}
		slices.Sort(causes)
		said = strings.Join(slices.Compact(causes), ", ")
	}
	return that("No node can take the run's pod", said) +
		"; lower what it requests, or add or free a node, and it begins by itself"
}

// refusal is what the newest of a Job's Events says of why it has no pod.
func refusal(events []corev1.Event) (reason autov1alpha1.ConditionReason, message string) {
	var newest *corev1.Event
	for i := range events {
		e := &events[i]
		if e.Reason != ReasonFailedCreate {
			continue
		}
		if newest == nil || newer(e, newest) {
			newest = e
		}
	}
	if newest == nil {
		return "", ""
	}
	return autov1alpha1.ReasonPodRefused, refused(newest.Message)
}

func newer(a, b *corev1.Event) bool {
	if at, bt := lastSeen(a), lastSeen(b); !at.Equal(bt) {
		return at.After(bt)
	}
	return a.Name > b.Name
}

func lastSeen(e *corev1.Event) time.Time {
	last := e.LastTimestamp.Time
	if e.Series != nil {
		last = later(last, e.Series.LastObservedTime.Time)
	}
	return later(last, e.EventTime.Time)
}

var (
	// creating is what the Job's controller and the API server say before the
	// cause, with a name that is another at each try.
	creating  = regexp.MustCompile(`^(\(combined from similar events\): )?(Error creating: )?(pods? "[^"]*" is forbidden: )?`)
	noAccount = regexp.MustCompile(`^error looking up service account [^/]*/(\S+): serviceaccount "[^"]*" not found`)
	quota     = regexp.MustCompile(`^(?:exceeded|failed) quota: ([^,:]+)[,:] `)
	used      = regexp.MustCompile(`, used: .*?, limited: `)
	podName   = regexp.MustCompile(`^[Pp]ods? "[^"]*" `)
)

func refused(said string) string {
	said = creating.ReplaceAllString(oneLine(said), "")
	switch {
	case noAccount.MatchString(said):
		name := noAccount.FindStringSubmatch(said)[1]
		return fmt.Sprintf("The run's pod is refused: ServiceAccount %s does not exist; create it and the run begins by itself, or correct serviceAccountName", name)
	case quota.MatchString(said):
		// What is used changes with every other pod.
		return that("The run's pod is refused", used.ReplaceAllString(said, ", limited: ")) +
			"; raise the quota or free some of it and the run begins by itself"
	case strings.HasPrefix(said, "violates PodSecurity"):
		return "The run's pod is refused: it " + strings.TrimRight(said, " .") + "; correct securityProfile or podTemplate, or the namespace's level"
	default:
		return that("The run's pod is refused", podName.ReplaceAllString(said, "")) +
			"; correct what refuses it and the run begins by itself"
	}
}
