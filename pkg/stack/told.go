package stack

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// NewlyStalled says whether a status needs a person where the one before did not,
// or did for another reason or another generation: whoever waits for what becomes
// of a change hears of each.
func NewlyStalled(before, after *pulumiv1.StackStatus) bool {
	is := meta.FindStatusCondition(after.Conditions, pulumiv1.StalledCondition)
	if is == nil || is.Status != metav1.ConditionTrue {
		return false
	}
	was := meta.FindStatusCondition(before.Conditions, pulumiv1.StalledCondition)
	return was == nil || was.Status != metav1.ConditionTrue || was.Reason != is.Reason || was.ObservedGeneration != is.ObservedGeneration
}

// Drift is how many resources an Update found other than they were left, though
// nobody asked for a change: a refresh that found any, or a resync that had
// something to put right. It is 0 for any other Update, and for one that did not
// succeed: a failure is told as such. A preview tells of no drift, since what it
// finds may be what was asked for and never made.
//
// docs/decisions/0016 says why it is this.
func Drift(update *autov1alpha1.Update) int64 {
	result := update.Status.Result
	if result == nil || result.State != autov1alpha1.ResultSucceeded {
		return 0
	}
	switch update.Spec.Type {
	case autov1alpha1.RefreshType:
		return changed(result.Changes)
	case autov1alpha1.UpType:
		if stands, err := ParseFor(update); err == nil && stands.Resync {
			return changed(result.Changes)
		}
	case autov1alpha1.PreviewType, autov1alpha1.DestroyType: // they tell nothing of it
	}
	return 0
}

// changed counts the resources to which an operation did something. These it left
// as they were: the engine's names of operations that only read.
func changed(changes map[string]int64) (n int64) {
	for operation, count := range changes {
		switch operation {
		case "same", "refresh", "read", "read-replacement", "discard", "discard-replaced", "remove-pending-replace":
		default:
			n += count
		}
	}
	return n
}
