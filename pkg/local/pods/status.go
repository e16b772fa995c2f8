package pods

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of a pod or of a container's state. Those of a kubelet are spelled as
// it spells them.
const (
	reasonUnsupported  = "Unsupported"
	reasonNodeRestart  = "NodeRestart"
	reasonDeadline     = "DeadlineExceeded"
	reasonInitializing = "PodInitializing"
	reasonCreating     = "ContainerCreating"
	reasonConfigError  = "CreateContainerConfigError"
	reasonStartError   = "StartError"
	reasonCompleted    = "Completed"
	reasonError        = "Error"
	reasonUnknown      = "ContainerStatusUnknown"
)

// killedCode is the exit code of what was killed, or of what nobody knows.
const killedCode = 137

// newStatus is that of a pod of which nothing has run.
func newStatus(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	reason := reasonCreating
	if len(pod.Spec.InitContainers) > 0 {
		reason = reasonInitializing
	}
	return corev1.PodStatus{
		Phase:                 corev1.PodPending,
		StartTime:             &metav1.Time{Time: now},
		HostIP:                loopback,
		HostIPs:               []corev1.HostIP{{IP: loopback}},
		PodIP:                 loopback,
		PodIPs:                []corev1.PodIP{{IP: loopback}},
		Conditions:            slices.Clone(pod.Status.Conditions),
		InitContainerStatuses: allWaiting(pod.Spec.InitContainers, reason),
		ContainerStatuses:     allWaiting(pod.Spec.Containers, reason),
	}
}

func allWaiting(containers []corev1.Container, reason string) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, container := range containers {
		statuses = append(statuses, corev1.ContainerStatus{
			Name:    container.Name,
			Image:   container.Image,
			Started: new(false),
			State:   corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		})
	}
	return statuses
}

// statusOf finds a container's status.
func statusOf(status *corev1.PodStatus, name string) *corev1.ContainerStatus {
	for _, c := range all(status) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// all are the statuses of all containers, to be changed in place.
func all(status *corev1.PodStatus) []*corev1.ContainerStatus {
	var list []*corev1.ContainerStatus
	for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range statuses {
			list = append(list, &statuses[i])
		}
	}
	return list
}

func setRunning(c *corev1.ContainerStatus, id string, at time.Time, init bool) {
	c.ContainerID = id
	c.Started = new(true)
	c.Ready = !init
	c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}
}

// setTerminated ends a container. An init container that has done its work is
// what is called ready.
func setTerminated(c *corev1.ContainerStatus, end corev1.ContainerStateTerminated, init bool) {
	if running := c.State.Running; running != nil {
		end.StartedAt = running.StartedAt
	}
	end.ContainerID = c.ContainerID
	c.Started = new(false)
	c.Ready = init && end.ExitCode == 0
	c.State = corev1.ContainerState{Terminated: &end}
}

// setWaiting says why containers that have not been started are not.
func setWaiting(status *corev1.PodStatus, reason, message string, names []string) {
	for _, c := range all(status) {
		if c.State.Waiting != nil && slices.Contains(names, c.Name) {
			c.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
		}
	}
}

// setAllEnded is for a pod of which nothing runs any more, whatever its status
// says: as a kubelet, it gives an exit code to those containers that have none.
func setAllEnded(status *corev1.PodStatus, message string) {
	for i, c := range all(status) {
		if c.State.Terminated == nil {
			init := i < len(status.InitContainerStatuses)
			setTerminated(c, corev1.ContainerStateTerminated{ExitCode: killedCode, Reason: reasonUnknown, Message: message}, init)
		}
	}
}

// setFailed is the word of the node about a pod as a whole.
func setFailed(status *corev1.PodStatus, reason, message string) {
	status.Phase = corev1.PodFailed
	status.Reason = reason
	status.Message = message
}

// settle makes phase and conditions follow from the containers.
func settle(pod *corev1.Pod, status *corev1.PodStatus, now time.Time) {
	if status.Reason == "" {
		status.Phase = phaseOf(status)
	}
	status.ObservedGeneration = pod.Generation
	for _, condition := range conditionsOf(status) {
		setCondition(status, condition, now)
	}
}

// phaseOf is a kubelet's rule for restartPolicy Never.
func phaseOf(status *corev1.PodStatus) corev1.PodPhase {
	for _, c := range status.InitContainerStatuses {
		switch {
		case c.State.Terminated == nil:
			return corev1.PodPending
		case c.State.Terminated.ExitCode != 0:
			return corev1.PodFailed
		}
	}
	phase := corev1.PodSucceeded
	for _, c := range status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil:
			return corev1.PodPending
		case c.State.Running != nil:
			phase = corev1.PodRunning
		case phase == corev1.PodSucceeded && c.State.Terminated.ExitCode != 0:
			phase = corev1.PodFailed
		}
	}
	return phase
}

// conditionsOf are a kubelet's four, in its words.
func conditionsOf(status *corev1.PodStatus) []corev1.PodCondition {
	return []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		initialized(status),
		ready(status, corev1.ContainersReady),
		ready(status, corev1.PodReady),
	}
}

func initialized(status *corev1.PodStatus) corev1.PodCondition {
	condition := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	incomplete := unready(status.InitContainerStatuses)
	switch {
	case status.Phase == corev1.PodSucceeded:
		condition.Reason = "PodCompleted"
	case len(incomplete) > 0:
		condition.Status = corev1.ConditionFalse
		condition.Reason = "ContainersNotInitialized"
		condition.Message = fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(incomplete, " "))
	}
	return condition
}

func ready(status *corev1.PodStatus, kind corev1.PodConditionType) corev1.PodCondition {
	condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse}
	waiting := unready(status.ContainerStatuses)
	switch {
	case status.Phase == corev1.PodSucceeded:
		condition.Reason = "PodCompleted"
	case status.Phase == corev1.PodFailed:
		condition.Reason = "PodFailed"
	case len(waiting) > 0:
		condition.Reason = "ContainersNotReady"
		condition.Message = fmt.Sprintf("containers with unready status: [%s]", strings.Join(waiting, " "))
	default:
		condition.Status = corev1.ConditionTrue
	}
	return condition
}

func unready(statuses []corev1.ContainerStatus) []string {
	var names []string
	for _, c := range statuses {
		if !c.Ready {
			names = append(names, c.Name)
		}
	}
	return names
}

// setCondition keeps the time of a condition that stays as it is.
func setCondition(status *corev1.PodStatus, condition corev1.PodCondition, now time.Time) {
	condition.LastTransitionTime = metav1.NewTime(now)
	condition.ObservedGeneration = status.ObservedGeneration
	for i, old := range status.Conditions {
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		status.Conditions[i] = condition
		return
	}
	status.Conditions = append(status.Conditions, condition)
}

// finished says that a pod is over.
func finished(pod *corev1.Pod) bool {
	return phaseIsFinal(pod.Status.Phase)
}

func phaseIsFinal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}
