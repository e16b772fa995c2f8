package v1

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	noon  = metav1.NewTime(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	later = metav1.NewTime(noon.Add(time.Hour))
)

func condition(kind string, status metav1.ConditionStatus, reason, message string, since metav1.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 2, LastTransitionTime: since}
}

func TestTheConditionsOfAStack(t *testing.T) {
	ready := func(s *StackStatus, now metav1.Time) { s.MarkReady(2, now, "Up to date") }
	reconciling := func(s *StackStatus, now metav1.Time) {
		s.MarkReconciling(2, now, ReconcilingProcessing, "Something goes on")
	}
	retrying := func(s *StackStatus, now metav1.Time) {
		s.MarkReconciling(2, now, ReconcilingRetry, "1 update failure(s)")
	}
	stalled := func(s *StackStatus, now metav1.Time) {
		s.MarkStalled(2, now, StalledSpecInvalid, "Somebody must act")
	}
	isReady := func(since metav1.Time) metav1.Condition {
		return condition("Ready", "True", "ProcessingCompleted", "Up to date", since)
	}
	inProgress := func(since metav1.Time) metav1.Condition {
		return condition("Ready", "False", "NotReadyInProgress", "Reconciliation is in progress", since)
	}
	isStalled := func(since metav1.Time) metav1.Condition {
		return condition("Ready", "False", "NotReadyStalled", "Reconciliation is stalled", since)
	}
	cases := map[string]struct {
		first, then func(*StackStatus, metav1.Time)
		want        []metav1.Condition
	}{
		"Ready":       {nil, ready, []metav1.Condition{isReady(later)}},
		"Reconciling": {nil, reconciling, []metav1.Condition{inProgress(later), condition("Reconciling", "True", "StackProcessing", "Something goes on", later)}},
		"Stalled":     {nil, stalled, []metav1.Condition{isStalled(later), condition("Stalled", "True", "SpecInvalid", "Somebody must act", later)}},

		"Ready still: no time moves":       {ready, ready, []metav1.Condition{isReady(noon)}},
		"Reconciling still: no time moves": {reconciling, reconciling, []metav1.Condition{inProgress(noon), condition("Reconciling", "True", "StackProcessing", "Something goes on", noon)}},
		"Reconciling for another reason: the status has not changed, so no time moves": {
			reconciling, retrying, []metav1.Condition{inProgress(noon), condition("Reconciling", "True", "RetryingAfterFailure", "1 update failure(s)", noon)}},
		"From Reconciling to Ready the abnormal one goes":   {reconciling, ready, []metav1.Condition{isReady(later)}},
		"From Stalled to Ready the abnormal one goes":       {stalled, ready, []metav1.Condition{isReady(later)}},
		"From Stalled to Reconciling Ready is as not as it": {stalled, reconciling, []metav1.Condition{inProgress(noon), condition("Reconciling", "True", "StackProcessing", "Something goes on", later)}},
		"From Reconciling to Stalled too":                   {reconciling, stalled, []metav1.Condition{isStalled(noon), condition("Stalled", "True", "SpecInvalid", "Somebody must act", later)}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s StackStatus
			if c.first != nil {
				c.first(&s, noon)
			}
			c.then(&s, later)
			if diff := cmp.Diff(c.want, s.Conditions); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTheMessageOfACondition(t *testing.T) {
	cases := map[string]struct{ message, want string }{
		"A sentence stays":                {"Program web does not exist; create it", "Program web does not exist; create it"},
		"Lines become one":                {"one\n  two\r\n\tthree\n", "One two three"},
		"A full stop goes":                {"It broke.", "It broke"},
		"So do several":                   {"It goes on ...", "It goes on"},
		"So does what announces nothing":  {"It failed: ", "It failed"},
		"A capital begins it":             {"up failed", "Up failed"},
		"A letter of any language":        {"ärger", "Ärger"},
		"A number begins it as it is":     {"1 update failure(s)", "1 update failure(s)"},
		"Nothing stays nothing":           {" \n ", ""},
		"What is too long is cut":         {strings.Repeat("a", 40000), "A" + strings.Repeat("a", 32767)},
		"It is cut between letters":       {strings.Repeat("€", 20000), strings.Repeat("€", 10922)},
		"It is cut and has no full stop ": {"A" + strings.Repeat("a", 32766) + ". more", "A" + strings.Repeat("a", 32766)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s StackStatus
			s.MarkReady(1, noon, c.message)
			got := s.Conditions[0].Message
			if got != c.want {
				t.Errorf("message of %d bytes: %.60q", len(got), got)
			}
			s.MarkReady(1, noon, got)
			if again := s.Conditions[0].Message; again != got {
				t.Errorf("Marked again it is %.60q", again)
			}
		})
	}
}
