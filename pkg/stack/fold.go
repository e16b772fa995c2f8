package stack

import (
	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// Fold puts what a settled Update came to into the status of the Stack that it
// was made for: lastUpdate, outputs and projectInfo, and no claim. It returns
// false, and the status as it is, if the Stack's claim does not name the
// Update, or the Update is not the Stack's. The conditions are left for Assess,
// of the world that results.
func Fold(stack *pulumiv1.Stack, update *autov1alpha1.Update) (pulumiv1.StackStatus, bool) {
	status := *stack.Status.DeepCopy()
	claim := stack.Status.CurrentUpdate
	if claim == nil || claim.Name != update.Name || !MadeFor(update, stack.UID) || !update.Settled() {
		return status, false
	}
	status.CurrentUpdate = nil
	result := update.Status.Result
	stands, err := ParseFor(update)
	if err != nil || result == nil || result.State == autov1alpha1.ResultNotRun {
		return status, true
	}
	status.LastUpdate = lastUpdate(stack.Status.LastUpdate, update, stands, result)
	if result.State != autov1alpha1.ResultSucceeded {
		return status, true
	}
	if result.ProjectInfo != nil {
		status.ProjectInfo = &pulumiv1.ProjectInfo{Name: result.ProjectInfo.Name, Runtime: result.ProjectInfo.Runtime}
	}
	if update.Spec.Type == autov1alpha1.UpType && result.Outputs != nil {
		status.Outputs = result.DeepCopy().Outputs
	}
	return status, true
}

func lastUpdate(before *pulumiv1.StackUpdateState, update *autov1alpha1.Update, stands For, result *autov1alpha1.UpdateResult) *pulumiv1.StackUpdateState {
	revision := ranRevision(update, stands, result)
	last := &pulumiv1.StackUpdateState{
		Generation:          stands.Generation,
		ReconcileRequest:    stands.Request,
		Name:                update.Name,
		Type:                pulumiv1.UpdateType(update.Spec.Type),
		State:               pulumiv1.SucceededStackStateMessage,
		LastAttemptedCommit: revision,
		Permalink:           result.Permalink,
		LastResyncTime:      update.Status.EndTime,
	}
	if result.State == autov1alpha1.ResultSucceeded {
		last.LastSuccessfulCommit = revision
		return last
	}
	last.State = pulumiv1.FailedStackStateMessage
	last.Reason = string(update.FailedReason())
	last.Message = result.Message
	if before != nil {
		last.LastSuccessfulCommit = before.LastSuccessfulCommit
		if before.Generation == stands.Generation && before.ReconcileRequest == stands.Request {
			last.Failures = before.Failures + 1
		}
	}
	return last
}

// ranRevision is the revision that an Update ran: the one it stands for, or, of
// a git ref whose commit nobody had seen, the one that the run found. The next
// look compares it with what the poll sees, so that the commit which ran first is
// not run again.
func ranRevision(update *autov1alpha1.Update, stands For, result *autov1alpha1.UpdateResult) string {
	if stands.Revision != "" || update.Spec.Type == autov1alpha1.DestroyType {
		return stands.Revision // a destroy without a source ran no commit
	}
	return result.Commit
}
