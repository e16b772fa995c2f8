package v1alpha1

// Conditions of an Update.
const (
	// UpdateProgressing is True while the Update's run goes on.
	UpdateProgressing = "Progressing"
	// UpdateFailed is True when the Update did not succeed.
	UpdateFailed = "Failed"
	// UpdateComplete is True, for good, once the Update is settled.
	UpdateComplete = "Complete"
)

// ConditionReason is the reason of a condition of an Update or a Workspace.
// The list is closed.
type ConditionReason string

// Reasons of an Update's condition Progressing.
const (
	// ReasonProgressing: the run was launched and goes on. Wait for it.
	ReasonProgressing ConditionReason = "Progressing"
	// ReasonWorkspaceNotFound: the Workspace does not exist, so the run is not
	// launched. Create the Workspace, or correct spec.workspaceName.
	ReasonWorkspaceNotFound ConditionReason = "WorkspaceNotFound"
	// ReasonWorkspaceNotReady: the Workspace is being deleted, so the run is
	// not launched. It is tried again once the Workspace is there anew.
	ReasonWorkspaceNotReady ConditionReason = "WorkspaceNotReady"
	// ReasonWorkspaceBusy: another Update runs in the Workspace; this one is
	// launched when that one has ended. Wait, or delete the other to cancel it.
	ReasonWorkspaceBusy ConditionReason = "WorkspaceBusy"
	// ReasonImagePullBackOff: an image of the run's pod cannot be pulled, so that
	// the run does not begin; if nothing changes until the timeout, it fails as
	// this. Correct the image or its pull secret, or wait for the registry.
	ReasonImagePullBackOff ConditionReason = "ImagePullBackOff"
	// ReasonUnschedulable: no node can take the run's pod, so that the run does
	// not begin; if nothing changes until the timeout, it fails as this. Lower
	// what the pod requests, or add or free a node.
	ReasonUnschedulable ConditionReason = "Unschedulable"
	// ReasonPodRefused: the run's pod is refused: by a quota, by pod security, by
	// a webhook, or for want of its ServiceAccount; if nothing changes until the
	// timeout, the run fails as this. Correct what the message names.
	ReasonPodRefused ConditionReason = "PodRefused"
	// ReasonCreateContainerError: a container of the run's pod cannot be created,
	// as for want of a Secret or a ConfigMap; if nothing changes until the
	// timeout, the run fails as this. Create what the message names.
	ReasonCreateContainerError ConditionReason = "CreateContainerError"
	// ReasonComplete: the Update succeeded.
	ReasonComplete ConditionReason = "Complete"
	// ReasonFailed: the Update did not succeed; the condition Failed says why.
	ReasonFailed ConditionReason = "Failed"
)

// Reasons of an Update's condition Complete; a settled one has these or
// ReasonFailed.
const (
	// ReasonUpdated: the operation succeeded.
	ReasonUpdated ConditionReason = "Updated"
)

// Reasons of an Update's condition Failed.
const (
	// ReasonUpdateSucceeded: it did not fail.
	ReasonUpdateSucceeded ConditionReason = "UpdateSucceeded"
	// ReasonUpdateFailed: the CLI ran and reported an error, which the message
	// holds. Correct the program or its configuration.
	ReasonUpdateFailed ConditionReason = "UpdateFailed"
	// ReasonUpdateConflict: someone else holds the stack's lock in the state
	// backend; the message says who. Wait for them, or remove a stale lock with
	// pulumi cancel once its holder is known to be gone.
	ReasonUpdateConflict ConditionReason = "UpdateConflict"
	// ReasonInvalidAccessToken: the backend refused the access token. Correct
	// the Secret that PULUMI_ACCESS_TOKEN is taken from.
	ReasonInvalidAccessToken ConditionReason = "InvalidAccessToken"
	// ReasonPulumiVersionTooLow: the CLI of the image is too old for what the
	// Stack asks. Use an image with a newer CLI.
	ReasonPulumiVersionTooLow ConditionReason = "PulumiVersionTooLow"
	// ReasonWorkspaceFailed: the run could not be set up: no CLI in the image,
	// a source that cannot be fetched, an install that failed, a stack that
	// cannot be selected, a pod that is not allowed. The message says which.
	ReasonWorkspaceFailed ConditionReason = "WorkspaceFailed"
	// ReasonCanceled: it was stopped on request. It is final for what it stood
	// for; change the Stack or request a new run.
	ReasonCanceled ConditionReason = "Canceled"
	// ReasonAborted: the run ended before it could report, as when its pod was
	// killed. What it did is not known; the next run finds out.
	ReasonAborted ConditionReason = "Aborted"
	// ReasonOutOfMemory: a container of the run used more memory than its limit
	// and was killed. Raise resources.limits.memory through workspaceTemplate.
	ReasonOutOfMemory ConditionReason = "OutOfMemory"
	// ReasonEvicted: the run's pod was taken off its node: the node ran out of
	// something, was drained, or had to make room for another pod. The message
	// says which. It is tried again.
	ReasonEvicted ConditionReason = "Evicted"
	// ReasonSuperseded: it was never run, because what it stood for had changed
	// by the time it could be. A newer Update takes its place.
	ReasonSuperseded ConditionReason = "Superseded"
	// ReasonInvalid: the Update's spec cannot be run; the message says why.
	ReasonInvalid ConditionReason = "Invalid"
	// ReasonDeadlineExceeded: the run took longer than its timeout and was
	// stopped. Raise spec.timeout through updateTemplate, or make it do less.
	ReasonDeadlineExceeded ConditionReason = "DeadlineExceeded"
	// ReasonUnknown: it failed in a way that is not told apart.
	ReasonUnknown ConditionReason = "Unknown"
)
