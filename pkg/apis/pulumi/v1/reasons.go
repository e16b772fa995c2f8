package v1

// Names that a user or another function puts on a Stack.
const (
	// Finalizer holds a Stack, Workspace or Update until what must follow has
	// followed.
	Finalizer = "finalizer.stack.pulumi.com"

	// AnnotationReconcileRequest asks for a run by any new value.
	AnnotationReconcileRequest = "pulumi.com/reconciliation-request"
	// AnnotationSuspend, if "true", starts no new Update.
	AnnotationSuspend = "updraft.dev/suspend"
	// AnnotationLetGo, if "true", releases a deleted Stack without a destroy.
	AnnotationLetGo = "updraft.dev/let-go"
	// AnnotationCancel names the Updates to cancel, separated by commas: see AsksToCancel.
	AnnotationCancel = "updraft.dev/cancel"
	// AnnotationPaths are globs of what in its repository the Stack depends on,
	// separated by commas: a commit that touches none of them starts no run.
	AnnotationPaths = "updraft.dev/paths"
	// AnnotationRequests keeps which requests from outside the Stack took last:
	// a hash of the event and what it asked for, of each.
	AnnotationRequests = "updraft.dev/requests"
	// AnnotationRequestedBy names who made the last request, on a Stack, or the
	// one that an Update was created for.
	AnnotationRequestedBy = "updraft.dev/requested-by"
	// AnnotationRequest is on an Update that a request from outside created: the
	// hash of the event.
	AnnotationRequest = "updraft.dev/request"

	// AnnotationStackUID is on what was made for a Stack: the Stack's UID.
	AnnotationStackUID = "updraft.dev/stack-uid"
	// AnnotationWorkspace is on an Update: uid/generation of the Workspace that
	// it was made for.
	AnnotationWorkspace = "updraft.dev/workspace"
	// AnnotationFor is on an Update: what it stands for, as JSON.
	AnnotationFor = "updraft.dev/for"
	// AnnotationTraceparent is on an Update: the span, as a W3C traceparent, that
	// asked for it. What follows from it is in the same trace. On a Stack it is that
	// of the last request from outside, then a space and how that request begins.
	AnnotationTraceparent = "updraft.dev/traceparent"
	// AnnotationSecretOutputs is on an outputs Secret: a JSON array of the keys
	// that are secret.
	AnnotationSecretOutputs = "pulumi.com/secrets"
	// AnnotationLogContainer is on a kept log: the container that wrote it.
	AnnotationLogContainer = "updraft.dev/log-container"
	// AnnotationLogLeftOut is on a kept log: how many bytes before it are not
	// kept, as far as they were read.
	AnnotationLogLeftOut = "updraft.dev/log-left-out"

	// LabelUpdate is on a run's Job, its Pod and its companions: the Update.
	LabelUpdate = "updraft.dev/update"
	// LabelComponent is on what was made for a Stack: "stack".
	LabelComponent = "pulumi.com/component"
	// LabelStackName is on what was made for a Stack: its name.
	LabelStackName = "pulumi.com/stack-name"
)

// Conditions of a Stack, by the rules of kstatus: exactly one of Ready,
// Reconciling and Stalled is True, and Reconciling and Stalled are absent when
// they are not.
const (
	// ReadyCondition is True when the Stack is up to date.
	ReadyCondition = "Ready"
	// ReconcilingCondition is True while something goes on or will be retried.
	ReconcilingCondition = "Reconciling"
	// StalledCondition is True when a person must act.
	StalledCondition = "Stalled"
)

// ReadyReason is the reason of a Stack's condition Ready.
type ReadyReason string

const (
	// ReadyCompleted: the Stack is up to date. Nothing to do.
	ReadyCompleted ReadyReason = "ProcessingCompleted"
	// NotReadyInProgress: see the condition Reconciling.
	NotReadyInProgress ReadyReason = "NotReadyInProgress"
	// NotReadyStalled: see the condition Stalled.
	NotReadyStalled ReadyReason = "NotReadyStalled"
)

// ReconcilingReason is the reason of a Stack's condition Reconciling.
type ReconcilingReason string

const (
	// ReconcilingProcessing: an Update is wanted or under way. Wait for it, or
	// look at the Update that status.currentUpdate names.
	ReconcilingProcessing ReconcilingReason = "StackProcessing"
	// ReconcilingImagePullBackOff: an image of the run's pod cannot be pulled.
	// Correct the image or its pull secret; the message names it.
	ReconcilingImagePullBackOff ReconcilingReason = "ImagePullBackOff"
	// ReconcilingUnschedulable: no node can take the run's pod. Lower what it
	// requests, or add or free a node; the message says what is missing.
	ReconcilingUnschedulable ReconcilingReason = "Unschedulable"
	// ReconcilingPodRefused: the run's pod is refused, by a quota, by pod
	// security, by a webhook, or for want of its ServiceAccount. Correct what the
	// message names.
	ReconcilingPodRefused ReconcilingReason = "PodRefused"
	// ReconcilingCreateContainerError: a container of the run's pod cannot be
	// created, as for want of a Secret or a ConfigMap. Create what the message
	// names.
	ReconcilingCreateContainerError ReconcilingReason = "CreateContainerError"
	// ReconcilingRetry: the last Update failed and is tried again after a
	// backoff. status.lastUpdate.message says why it failed.
	ReconcilingRetry ReconcilingReason = "RetryingAfterFailure"
	// ReconcilingPreviewFailed: the last preview failed and is tried again after
	// a backoff. status.lastUpdate.message says why it failed.
	ReconcilingPreviewFailed ReconcilingReason = "PreviewFailed"
	// ReconcilingPrerequisite: a prerequisite has not succeeded yet. The Stack
	// goes on once it has.
	ReconcilingPrerequisite ReconcilingReason = "PrerequisiteNotSatisfied"
	// ReconcilingSuspended: the annotation updraft.dev/suspend holds back what is
	// wanted. Remove it to go on.
	ReconcilingSuspended ReconcilingReason = "Suspended"
)

// StalledReason is the reason of a Stack's condition Stalled.
type StalledReason string

const (
	// StalledSpecInvalid: the spec cannot be served as it is; the message names
	// the field. Correct it.
	StalledSpecInvalid StalledReason = "SpecInvalid"
	// StalledSourceUnavailable: the source does not exist or cannot be read. The
	// Stack goes on when it can.
	StalledSourceUnavailable StalledReason = "SourceUnavailable"
	// StalledPulumiVersionTooLow: the CLI of the image is too old for what the
	// Stack asks. Use an image with a newer CLI.
	StalledPulumiVersionTooLow StalledReason = "PulumiVersionTooLow"
	// StalledWorkspaceFailed: the run could not be set up; the message says what
	// failed. Correct it, then change the Stack or request a run.
	StalledWorkspaceFailed StalledReason = "WorkspaceFailed"
	// StalledUpdateFailed: the Update failed as often as it is tried. Correct the
	// program or its configuration, or request a run.
	StalledUpdateFailed StalledReason = "UpdateFailed"
	// StalledUpdateConflict: someone else holds the stack's lock in the state
	// backend; the message says who. Request a run once they are done.
	StalledUpdateConflict StalledReason = "UpdateConflict"
	// StalledUpdateCanceled: the Update was cancelled on request, which is final
	// for what it stood for. Change the Stack or request a run.
	StalledUpdateCanceled StalledReason = "UpdateCanceled"
	// StalledNamespaceTerminating: the namespace is being deleted, so that the
	// destroy cannot be run in it. Destroy by hand, then set the annotation
	// updraft.dev/let-go to "true".
	StalledNamespaceTerminating StalledReason = "NamespaceTerminating"
)
