package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Workspace says how runs are set up: image, source, environment, pod, stacks
// and their configuration. It is an object only; no pod stands for it.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=workspaces,scope=Namespaced,categories=pulumi
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address`
// +kubebuilder:printcolumn:name="Running",type=string,JSONPath=`.status.run.name`
type Workspace struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is how a run is set up.
	Spec WorkspaceSpec `json:"spec,omitempty"`
	// Status holds the lock of the runs.
	Status WorkspaceStatus `json:"status,omitempty"`
}

// WorkspaceList is a list of Workspaces.
//
// +kubebuilder:object:root=true
type WorkspaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Workspace `json:"items"`
}

// SecurityProfile is a Pod Security Standard.
type SecurityProfile string

const (
	// SecurityProfileBaseline asks nothing of the pod.
	SecurityProfileBaseline SecurityProfile = "baseline"
	// SecurityProfileRestricted meets the restricted standard.
	SecurityProfileRestricted SecurityProfile = "restricted"
)

// WorkspaceSpec is how a run is set up.
type WorkspaceSpec struct {
	// ServiceAccountName of the run's pod.
	// +optional
	// +kubebuilder:default="default"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// SecurityProfile of the run's pod: restricted or baseline.
	// +optional
	// +kubebuilder:default="restricted"
	SecurityProfile SecurityProfile `json:"securityProfile,omitempty"`
	// Image that holds the pulumi CLI. Default: pulumi/pulumi:latest-nonroot,
	// pulumi/pulumi:latest with the baseline profile.
	// +optional
	Image string `json:"image,omitempty"`
	// ImagePullPolicy of the image.
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// Git is a git repository as the source.
	// +optional
	Git *GitSource `json:"git,omitempty"`
	// Flux is a Flux artifact as the source.
	// +optional
	Flux *FluxSource `json:"flux,omitempty"`
	// Local is a folder of the image or of a volume as the source.
	// +optional
	Local *LocalSource `json:"local,omitempty"`
	// Program is a Program of the same namespace as the source.
	// +optional
	Program *ProgramSource `json:"program,omitempty"`
	// ProjectInfo stands in for a source: a Pulumi.yaml of a name and a
	// runtime.
	// +optional
	ProjectInfo *ProjectInfo `json:"projectInfo,omitempty"`

	// EnvFrom of the container pulumi.
	// +optional
	// +listType=atomic
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// Env of the container pulumi.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Resources of the container pulumi. Requests default to 64Mi of memory and
	// 100m of CPU.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// PodTemplate is merged over the run's pod by the rules of a strategic
	// merge patch. Fields: metadata (labels, annotations) and spec (a PodSpec).
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`
	// ServiceTemplate is accepted for compatibility; a Workspace has no Service.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	ServiceTemplate *runtime.RawExtension `json:"serviceTemplate,omitempty"`
	// PulumiLogVerbosity is the verbosity of the CLI's own log; 0 is off.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PulumiLogVerbosity int32 `json:"pulumiLogLevel,omitempty"`
	// Stacks to select before an operation.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	Stacks []WorkspaceStack `json:"stacks,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// GitSource is a git repository.
type GitSource struct {
	// URL of the repository.
	// +optional
	URL string `json:"url,omitempty"`
	// Ref is a branch, a tag or a commit.
	// +optional
	Ref string `json:"ref,omitempty"`
	// Dir is the folder that holds Pulumi.yaml.
	// +optional
	Dir string `json:"dir,omitempty"`
	// Auth is how to authenticate.
	// +optional
	Auth *GitAuth `json:"auth,omitempty"`
	// Shallow clones only what is needed.
	// +optional
	Shallow bool `json:"shallow,omitempty"`
}

// GitAuth is how to authenticate to a git repository.
type GitAuth struct {
	// SSHPrivateKey in PEM form.
	// +optional
	SSHPrivateKey *corev1.SecretKeySelector `json:"sshPrivateKey,omitempty"`
	// Username to present.
	// +optional
	Username *corev1.SecretKeySelector `json:"username,omitempty"`
	// Password to present, or of the SSH key.
	// +optional
	Password *corev1.SecretKeySelector `json:"password,omitempty"`
	// Token to present.
	// +optional
	Token *corev1.SecretKeySelector `json:"token,omitempty"`
	// GitHubApp is a GitHub App installation.
	// +optional
	GitHubApp *GitHubAppAuth `json:"githubApp,omitempty"`
}

// GitHubAppAuth is a GitHub App installation.
type GitHubAppAuth struct {
	// AppID of the app.
	AppID *corev1.SecretKeySelector `json:"appID"`
	// InstallationID of the app's installation.
	InstallationID *corev1.SecretKeySelector `json:"installationID"`
	// PrivateKey of the app, in PEM form.
	PrivateKey *corev1.SecretKeySelector `json:"privateKey"`
}

// FluxSource is a Flux artifact.
type FluxSource struct {
	// URL of the artifact.
	// +optional
	URL string `json:"url,omitempty"`
	// Digest of the artifact.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Dir is the folder in the artifact that holds Pulumi.yaml.
	// +optional
	Dir string `json:"dir,omitempty"`
}

// LocalSource is a folder of the image or of a volume.
type LocalSource struct {
	// Dir is the folder that holds Pulumi.yaml.
	// +optional
	Dir string `json:"dir,omitempty"`
}

// ProgramSource is a Program of the same namespace at one generation.
type ProgramSource struct {
	// Name of the Program.
	Name string `json:"name"`
	// Generation of the Program that is to run; 0 is the one found.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// ProjectInfo is a Pulumi project.
type ProjectInfo struct {
	// Name of the project.
	Name string `json:"name"`
	// Runtime of the project.
	Runtime string `json:"runtime"`
}

// WorkspaceStack is a stack that a run selects, and its configuration.
type WorkspaceStack struct {
	// Name of the stack, as Pulumi understands it.
	Name string `json:"name"`
	// Create the stack if it is missing.
	// +optional
	Create *bool `json:"create,omitempty"`
	// SecretsProvider of a stack that is created.
	// +optional
	SecretsProvider string `json:"secretsProvider,omitempty"`
	// Config of the stack.
	// +optional
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=key
	Config []ConfigItem `json:"config,omitempty" patchStrategy:"merge" patchMergeKey:"key"`
	// Environment lists the Pulumi ESC environments to import.
	// +optional
	Environment []string `json:"environment,omitempty"`
}

// ConfigItem is one configuration value. A path takes a string.
type ConfigItem struct {
	// Key of the value.
	Key string `json:"key"`
	// Path says that the key is a path into a structure.
	// +optional
	Path *bool `json:"path,omitempty"`
	// Value itself, any JSON.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
	// ValueFrom says where the value is.
	// +optional
	// +structType=atomic
	ValueFrom *ConfigValueFrom `json:"valueFrom,omitempty"`
	// Secret encrypts the value in the stack's configuration.
	// +optional
	Secret *bool `json:"secret,omitempty"`
}

// ConfigValueFrom says where a configuration value is: one of env and path.
type ConfigValueFrom struct {
	// Env is an environment variable of the container pulumi.
	// +optional
	Env string `json:"env,omitempty"`
	// Path is a file in the container pulumi; a relative one is below the
	// share, $(UPDRAFT_ROOT).
	// +optional
	Path string `json:"path,omitempty"`
	// JSON parses the value as JSON.
	// +optional
	JSON *bool `json:"json,omitempty"`
}

// WorkspaceStatus holds the lock of the runs.
type WorkspaceStatus struct {
	// ObservedGeneration is the newest generation that was looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Address is of an automation server, if one is running.
	// +optional
	Address string `json:"address,omitempty"`
	// PulumiVersion of the last run.
	// +optional
	PulumiVersion string `json:"pulumiVersion,omitempty"`
	// Run is the lock: the one Update that may run now.
	// +optional
	Run *RunLock `json:"run,omitempty"`
	// Conditions are Ready and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RunLock names the Update that holds a Workspace.
type RunLock struct {
	// Name of the Update.
	Name string `json:"name"`
	// UID of the Update.
	UID types.UID `json:"uid"`
}
