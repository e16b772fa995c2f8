// Package invariants says what must be so of a Stack and of an Update whatever has happened, before it is at rest too. Tests ask after
// each write.
package invariants

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// reasonsOf are the reasons that a Stack's condition may have when it is True.
var reasonsOf = map[string][]string{
	pulumiv1.ReadyCondition: {string(pulumiv1.ReadyCompleted)},
	pulumiv1.ReconcilingCondition: {
		string(pulumiv1.ReconcilingProcessing), string(pulumiv1.ReconcilingRetry), string(pulumiv1.ReconcilingPreviewFailed),
		string(pulumiv1.ReconcilingPrerequisite), string(pulumiv1.ReconcilingSuspended),
		string(pulumiv1.ReconcilingImagePullBackOff), string(pulumiv1.ReconcilingUnschedulable),
		string(pulumiv1.ReconcilingPodRefused), string(pulumiv1.ReconcilingCreateContainerError),
	},
	pulumiv1.StalledCondition: {
		string(pulumiv1.StalledSpecInvalid), string(pulumiv1.StalledSourceUnavailable), string(pulumiv1.StalledPulumiVersionTooLow),
		string(pulumiv1.StalledWorkspaceFailed), string(pulumiv1.StalledUpdateFailed), string(pulumiv1.StalledUpdateConflict),
		string(pulumiv1.StalledUpdateCanceled), string(pulumiv1.StalledNamespaceTerminating),
	},
}

// ofAClaim are the reasons that a Stack may have while it claims an Update.
var ofAClaim = []string{
	string(pulumiv1.ReconcilingProcessing), string(pulumiv1.ReconcilingImagePullBackOff), string(pulumiv1.ReconcilingUnschedulable),
	string(pulumiv1.ReconcilingPodRefused), string(pulumiv1.ReconcilingCreateContainerError), string(pulumiv1.StalledNamespaceTerminating),
}

// Stack says what of a Stack must not be so, at any time.
func Stack(s *pulumiv1.Stack) []string {
	if len(s.Status.Conditions) == 0 {
		return nil // nobody has looked yet
	}
	problems := conditionProblems(s)
	problem := func(format string, arguments ...any) {
		problems = append(problems, fmt.Sprintf(format, arguments...))
	}
	if s.Status.ObservedGeneration > s.Generation {
		problem("observedGeneration %d is ahead of generation %d", s.Status.ObservedGeneration, s.Generation)
	}
	if state := Reason(s); s.Status.CurrentUpdate != nil && !slices.Contains(ofAClaim, state) {
		problem("an Update is claimed, and the condition says %s", state)
	}
	if meta.IsStatusConditionTrue(s.Status.Conditions, pulumiv1.ReadyCondition) {
		problems = append(problems, readyProblems(s)...)
	}
	return problems
}

// conditionProblems are those of the rules of kstatus.
func conditionProblems(s *pulumiv1.Stack) []string {
	var problems, positive []string
	problem := func(format string, arguments ...any) {
		problems = append(problems, fmt.Sprintf(format, arguments...))
	}
	for _, c := range s.Status.Conditions {
		reasons, known := reasonsOf[c.Type]
		switch {
		case !known:
			problem("the condition %s is not known", c.Type)
		case c.Status == metav1.ConditionTrue:
			positive = append(positive, c.Type)
			if !slices.Contains(reasons, c.Reason) {
				problem("condition %s has the reason %s, which is not in the list", c.Type, c.Reason)
			}
		case c.Type != pulumiv1.ReadyCondition:
			problem("condition %s is %s; it should be absent", c.Type, c.Status)
		}
		if c.Message == "" || strings.Contains(c.Message, "\n") {
			problem("condition %s has the message %q; it should be one line", c.Type, c.Message)
		}
		if c.ObservedGeneration != s.Status.ObservedGeneration {
			problem("condition %s observed generation %d, the status %d", c.Type, c.ObservedGeneration, s.Status.ObservedGeneration)
		}
	}
	if len(positive) != 1 {
		problem("exactly one of Ready, Reconciling and Stalled should be True, and %v are", positive)
	}
	if meta.FindStatusCondition(s.Status.Conditions, pulumiv1.ReadyCondition) == nil {
		problem("the condition Ready is missing")
	}
	return problems
}

// readyProblems says why a Stack may not be Ready.
func readyProblems(s *pulumiv1.Stack) []string {
	last := s.Status.LastUpdate
	switch {
	case s.DeletionTimestamp != nil && (!s.Spec.DestroyOnFinalize || s.Spec.Preview || s.Annotations[pulumiv1.AnnotationLetGo] == "true"):
		return nil // as in the reference: it is about to go, and nothing is to run for that
	case s.Status.CurrentUpdate != nil:
		return []string{"it is Ready, and an Update is claimed"}
	case last == nil:
		return []string{"it is Ready, and nothing ran"}
	case last.State != pulumiv1.SucceededStackStateMessage || last.Generation != s.Status.ObservedGeneration || last.ReconcileRequest != s.Status.ObservedReconcileRequest:
		return []string{fmt.Sprintf("it is Ready at generation %d and request %q, and what ran is %+v", s.Status.ObservedGeneration, s.Status.ObservedReconcileRequest, *last)}
	default:
		return nil
	}
}

// Reason is that of the one condition of a Stack that is True.
func Reason(s *pulumiv1.Stack) string {
	for _, kind := range []string{pulumiv1.ReadyCondition, pulumiv1.ReconcilingCondition, pulumiv1.StalledCondition} {
		if c := meta.FindStatusCondition(s.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

// Update says what of an Update must not be so, at any time, after what it was
// before, if that is known.
func Update(before, u *autov1alpha1.Update) []string {
	var problems []string
	problem := func(format string, arguments ...any) {
		problems = append(problems, fmt.Sprintf(format, arguments...))
	}
	if u.Settled() {
		if u.Status.Result == nil {
			problem("it is Complete without a result")
		}
		if meta.IsStatusConditionTrue(u.Status.Conditions, autov1alpha1.UpdateProgressing) {
			problem("it is Complete and progresses")
		}
		if failed := meta.IsStatusConditionTrue(u.Status.Conditions, autov1alpha1.UpdateFailed); failed && u.Status.Message == "" {
			problem("it failed without a message")
		}
	}
	if before == nil {
		return problems
	}
	if before.Settled() && (!same(before.Status.Conditions, u.Status.Conditions) || !same(before.Status.Result, u.Status.Result)) {
		problem("it was Complete as %v, and is now %v", before.Status.Result, u.Status.Result)
	}
	if run.Taken(before) && (!run.Taken(u) || before.Status.Run.PodUID != u.Status.Run.PodUID) {
		problem("it was taken by pod %s, and is now by %+v", before.Status.Run.PodName, u.Status.Run)
	}
	return problems
}

// Fold says why what a Stack says that ran is not what ran, or "".
func Fold(last *pulumiv1.StackUpdateState, ran *autov1alpha1.Update) string {
	stands, err := stack.ParseFor(ran)
	if err != nil {
		return err.Error()
	}
	succeeded := ran.Status.Result != nil && ran.Status.Result.State == autov1alpha1.ResultSucceeded
	if string(ran.Spec.Type) != string(last.Type) || succeeded != (last.State == pulumiv1.SucceededStackStateMessage) ||
		stands.Generation != last.Generation || stands.Request != last.ReconcileRequest {
		return fmt.Sprintf("lastUpdate says %+v, and what ran is %+v with the result %+v", *last, stands, ran.Status.Result)
	}
	return ""
}

func same(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }
