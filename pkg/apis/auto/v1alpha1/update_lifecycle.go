package v1alpha1

import (
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Settled says whether the Update is Complete, which is final.
func (u *Update) Settled() bool {
	return meta.IsStatusConditionTrue(u.Status.Conditions, UpdateComplete)
}

// FailedReason is the reason of the condition Failed if it is True.
func (u *Update) FailedReason() ConditionReason {
	c := meta.FindStatusCondition(u.Status.Conditions, UpdateFailed)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return ConditionReason(c.Reason)
}

// PodWaits is the reason and the message of the condition Progressing while the
// run was launched and its pod cannot begin; "" otherwise.
func (u *Update) PodWaits() (reason ConditionReason, message string) {
	c := meta.FindStatusCondition(u.Status.Conditions, UpdateProgressing)
	if c == nil || c.Status != metav1.ConditionFalse {
		return "", ""
	}
	switch reason := ConditionReason(c.Reason); reason {
	case ReasonImagePullBackOff, ReasonUnschedulable, ReasonPodRefused, ReasonCreateContainerError:
		return reason, c.Message
	default:
		return "", ""
	}
}

// MarkWaiting sets the conditions of an Update that cannot be launched yet, or
// whose pod cannot begin.
func (u *Update) MarkWaiting(now metav1.Time, reason ConditionReason, message string) {
	u.set(UpdateProgressing, metav1.ConditionFalse, reason, message, now)
	u.set(UpdateFailed, metav1.ConditionFalse, ReasonProgressing, "", now)
	u.set(UpdateComplete, metav1.ConditionFalse, ReasonProgressing, "", now)
}

// MarkProgressing sets the conditions of an Update that was launched.
func (u *Update) MarkProgressing(now metav1.Time, message string) {
	u.set(UpdateProgressing, metav1.ConditionTrue, ReasonProgressing, message, now)
	u.set(UpdateFailed, metav1.ConditionFalse, ReasonProgressing, "", now)
	u.set(UpdateComplete, metav1.ConditionFalse, ReasonProgressing, "", now)
}

// MarkSucceeded settles an Update that succeeded.
func (u *Update) MarkSucceeded(now metav1.Time) {
	u.set(UpdateProgressing, metav1.ConditionFalse, ReasonComplete, "", now)
	u.set(UpdateFailed, metav1.ConditionFalse, ReasonUpdateSucceeded, "", now)
	u.set(UpdateComplete, metav1.ConditionTrue, ReasonUpdated, "", now)
	u.Status.EndTime = now
}

// MarkFailed settles an Update that did not succeed.
func (u *Update) MarkFailed(now metav1.Time, reason ConditionReason, message string) {
	u.set(UpdateProgressing, metav1.ConditionFalse, ReasonFailed, "", now)
	u.set(UpdateFailed, metav1.ConditionTrue, reason, message, now)
	u.set(UpdateComplete, metav1.ConditionTrue, ReasonFailed, "", now)
	u.Status.EndTime = now
	u.Status.Message = message
}

// maxMessage is what the API server takes of a condition's message, in bytes.
const maxMessage = 32768

func (u *Update) set(kind string, status metav1.ConditionStatus, reason ConditionReason, message string, now metav1.Time) {
	u.Status.ObservedGeneration = u.Generation
	meta.SetStatusCondition(&u.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: string(reason), Message: cut(message),
		ObservedGeneration: u.Generation, LastTransitionTime: now,
	})
}

// cut shortens a message to what the API server takes, between letters.
func cut(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}
