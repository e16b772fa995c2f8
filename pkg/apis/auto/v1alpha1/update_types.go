package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Update is one operation on one stack of a Workspace. Once Complete it stays
// so.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=updates,scope=Namespaced,categories=pulumi
// +kubebuilder:selectablefield:JSONPath=`.spec.workspaceName`
// +kubebuilder:selectablefield:JSONPath=`.spec.stackName`
// +kubebuilder:printcolumn:name="Workspace",type=string,JSONPath=`.spec.workspaceName`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,priority=10
// +kubebuilder:printcolumn:name="Start Time",type=date,JSONPath=`.status.startTime`,priority=10
// +kubebuilder:printcolumn:name="End Time",type=date,JSONPath=`.status.endTime`,priority=10
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name="Failed",type=string,JSONPath=`.status.conditions[?(@.type=="Failed")].status`
// +kubebuilder:printcolumn:name="Complete",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].status`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.permalink`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.conditions) || !oldSelf.status.conditions.exists(c, c.type == 'Complete' && c.status == 'True') || (has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'Complete' && c.status == 'True'))",message="A Complete Update stays Complete."
type Update struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the operation.
	Spec UpdateSpec `json:"spec,omitempty"`
	// Status is how it goes and what it came to.
	Status UpdateStatus `json:"status,omitempty"`
}

// UpdateList is a list of Updates.
//
// +kubebuilder:object:root=true
type UpdateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Update `json:"items"`
}

// UpdateType is an operation of the Pulumi CLI: up, preview, refresh or
// destroy.
type UpdateType string

const (
	// UpType creates and changes resources.
	UpType UpdateType = "up"
	// PreviewType shows what an up would do.
	PreviewType UpdateType = "preview"
	// RefreshType reads the real state of resources.
	RefreshType UpdateType = "refresh"
	// DestroyType deletes resources.
	DestroyType UpdateType = "destroy"
)

// UpdateSpec is one operation.
type UpdateSpec struct {
	// WorkspaceName names the Workspace to run in.
	// +optional
	WorkspaceName string `json:"workspaceName,omitempty"`
	// StackName is the stack to operate on.
	// +optional
	StackName string `json:"stackName,omitempty"`
	// Type of the operation: up, preview, refresh or destroy.
	// +optional
	Type UpdateType `json:"type,omitempty"`
	// TtlAfterCompleted is how long the Update is kept once it is Complete.
	// +optional
	TtlAfterCompleted *metav1.Duration `json:"ttlAfterCompleted,omitempty"`
	// Timeout is how long the run may take before it is asked to stop. Default:
	// the installation's.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Parallel is how many resource operations may run at once.
	// +optional
	Parallel *int32 `json:"parallel,omitempty"`
	// Message is kept with the operation in the backend.
	// +optional
	Message *string `json:"message,omitempty"`
	// ExpectNoChanges fails the operation if there are changes.
	// +optional
	ExpectNoChanges *bool `json:"expectNoChanges,omitempty"`
	// Replace lists URNs to replace.
	// +optional
	Replace []string `json:"replace,omitempty"`
	// Target lists the only URNs to operate on.
	// +optional
	Target []string `json:"target,omitempty"`
	// TargetDependents includes what depends on the targets.
	// +optional
	TargetDependents *bool `json:"targetDependents,omitempty"`
	// Refresh the state first.
	// +optional
	Refresh *bool `json:"refresh,omitempty"`
	// ContinueOnError goes on when a resource operation fails.
	// +optional
	ContinueOnError *bool `json:"continueOnError,omitempty"`
	// Remove the stack from the backend after a destroy.
	// +optional
	Remove *bool `json:"remove,omitempty"`
	// RunProgram at destroy and refresh.
	// +optional
	RunProgram *bool `json:"runProgram,omitempty"`
}

// UpdateStatus is how an operation goes and what it came to.
type UpdateStatus struct {
	// ObservedGeneration is the newest generation that was looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// StartTime is when its run began.
	// +optional
	StartTime metav1.Time `json:"startTime,omitempty"`
	// EndTime is when it was settled.
	// +optional
	EndTime metav1.Time `json:"endTime,omitempty"`
	// Permalink to the operation in the backend's console.
	// +optional
	Permalink string `json:"permalink,omitempty"`
	// Message of a failure.
	// +optional
	Message string `json:"message,omitempty"`
	// Outputs names the Secret that holds the outputs.
	// +optional
	Outputs string `json:"outputs,omitempty"`
	// ProjectInfo is the project that was run.
	// +optional
	ProjectInfo *ProjectInfo `json:"projectInfo,omitempty"`
	// Run is who took the run, and where it is.
	// +optional
	Run *RunStatus `json:"run,omitempty"`
	// Result is what it came to.
	// +optional
	Result *UpdateResult `json:"result,omitempty"`
	// Conditions are Progressing, Failed and Complete.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RunPhase is how far a run is, as far as is known.
type RunPhase string

const (
	// RunTaken means that a pod has taken the run.
	RunTaken RunPhase = "Taken"
	// RunRunning means that the operation has begun.
	RunRunning RunPhase = "Running"
	// RunUnknown means that the pod is gone and its end is not proven yet.
	RunUnknown RunPhase = "Unknown"
	// RunEnded means that the pod's container is proven to have ended.
	RunEnded RunPhase = "Ended"
)

// RunStatus is who took a run, and where it is.
type RunStatus struct {
	// PodName of the pod that took the run.
	// +optional
	PodName string `json:"podName,omitempty"`
	// PodUID of the pod that took the run.
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`
	// Node that the pod runs on.
	// +optional
	Node string `json:"node,omitempty"`
	// Phase of the run.
	// +optional
	Phase RunPhase `json:"phase,omitempty"`
	// AbsentSince is when the pod was first found gone.
	// +optional
	AbsentSince *metav1.Time `json:"absentSince,omitempty"`
	// Holder is the process that holds the stack's lock in the backend while
	// the operation goes on.
	// +optional
	Holder *LockHolder `json:"holder,omitempty"`
}

// LockHolder is a process as a state backend's lock names it.
type LockHolder struct {
	// Host name that the process sees.
	Host string `json:"host"`
	// Pid that the process has there.
	Pid int64 `json:"pid"`
}

// ResultState is how an operation ended.
type ResultState string

const (
	// ResultSucceeded is a success.
	ResultSucceeded ResultState = "succeeded"
	// ResultFailed is a failure.
	ResultFailed ResultState = "failed"
	// ResultCanceled was stopped on request.
	ResultCanceled ResultState = "canceled"
	// ResultNotRun was settled without ever being run.
	ResultNotRun ResultState = "notrun"
)

// UpdateResult is what an operation came to: all that a Stack is told of it.
type UpdateResult struct {
	// State it ended in.
	State ResultState `json:"state"`
	// Outputs of the stack by name; a secret one is the string "[secret]".
	// +optional
	Outputs map[string]apiextensionsv1.JSON `json:"outputs,omitempty"`
	// Changes counts resources by operation: create, update, delete, same, ...
	// +optional
	Changes map[string]int64 `json:"changes,omitempty"`
	// Commit is the revision of the source that ran.
	// +optional
	Commit string `json:"commit,omitempty"`
	// ProjectInfo is the project that was run.
	// +optional
	ProjectInfo *ProjectInfo `json:"projectInfo,omitempty"`
	// Permalink to the operation in the backend's console.
	// +optional
	Permalink string `json:"permalink,omitempty"`
	// PulumiVersion of the CLI.
	// +optional
	PulumiVersion string `json:"pulumiVersion,omitempty"`
	// Message of a failure.
	// +optional
	Message string `json:"message,omitempty"`
}
