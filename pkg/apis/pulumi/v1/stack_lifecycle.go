package v1

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MarkReady sets the conditions of a Stack that is up to date.
func (s *StackStatus) MarkReady(generation int64, now metav1.Time, message string) {
	s.set(ReadyCondition, metav1.ConditionTrue, string(ReadyCompleted), message, generation, now)
	meta.RemoveStatusCondition(&s.Conditions, ReconcilingCondition)
	meta.RemoveStatusCondition(&s.Conditions, StalledCondition)
}

// MarkReconciling sets the conditions of a Stack on which something goes on.
func (s *StackStatus) MarkReconciling(generation int64, now metav1.Time, reason ReconcilingReason, message string) {
	s.set(ReadyCondition, metav1.ConditionFalse, string(NotReadyInProgress), "Reconciliation is in progress", generation, now)
	s.set(ReconcilingCondition, metav1.ConditionTrue, string(reason), message, generation, now)
	meta.RemoveStatusCondition(&s.Conditions, StalledCondition)
}

// MarkStalled sets the conditions of a Stack that needs a person.
func (s *StackStatus) MarkStalled(generation int64, now metav1.Time, reason StalledReason, message string) {
	s.set(ReadyCondition, metav1.ConditionFalse, string(NotReadyStalled), "Reconciliation is stalled", generation, now)
	meta.RemoveStatusCondition(&s.Conditions, ReconcilingCondition)
	s.set(StalledCondition, metav1.ConditionTrue, string(reason), message, generation, now)
}

// AsksToCancel are the Updates that the Stack's annotation asks to cancel.
func (s *Stack) AsksToCancel() []string {
	return strings.FieldsFunc(s.Annotations[AnnotationCancel], func(r rune) bool { return r == ',' || r == ' ' })
}

// maxMessage is what the API server takes of a condition's message, in bytes.
const maxMessage = 32768

func (s *StackStatus) set(kind string, status metav1.ConditionStatus, reason, message string, generation int64, now metav1.Time) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: sentence(message),
		ObservedGeneration: generation, LastTransitionTime: now,
	})
}

// sentence is a message as a condition shows it: one line that starts with a
// capital and has no full stop. It is cut between letters: half a letter would
// come back as another, and each look would write it again.
func sentence(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > maxMessage {
		cut := maxMessage
		for cut > 0 && !utf8.RuneStart(message[cut]) {
			cut--
		}
		message = message[:cut]
	}
	message = strings.TrimRight(message, " .:")
	first, size := utf8.DecodeRuneInString(message)
	if size == 0 {
		return message
	}
	return string(unicode.ToUpper(first)) + message[size:]
}
