package v1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Stack is a Pulumi stack that Updraft keeps up to date.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=stacks,scope=Namespaced,categories=pulumi
// +kubebuilder:selectablefield:JSONPath=`.spec.programRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.fluxSource.sourceRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.projectRepo`
// +kubebuilder:printcolumn:name="Stack",type=string,JSONPath=`.spec.stack`,priority=10
// +kubebuilder:printcolumn:name="Last Update",type=string,JSONPath=`.status.lastUpdate.state`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.status.lastUpdate.lastResyncTime`
// +kubebuilder:printcolumn:name="Last Commit",type=string,JSONPath=`.status.lastUpdate.lastAttemptedCommit`,priority=10
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reconciling",type=string,JSONPath=`.status.conditions[?(@.type=="Reconciling")].reason`
// +kubebuilder:printcolumn:name="Stalled",type=string,JSONPath=`.status.conditions[?(@.type=="Stalled")].reason`
// +kubebuilder:printcolumn:name="Permalink",type=string,JSONPath=`.status.lastUpdate.permalink`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 42",message="Stack name must be no more than 42 characters in length.",optionalOldSelf=true
type Stack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	Spec StackSpec `json:"spec,omitempty"`
	// Status is what was last done, written by Updraft alone.
	Status StackStatus `json:"status,omitempty"`
}

// StackList is a list of Stacks.
//
// +kubebuilder:object:root=true
type StackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Stack `json:"items"`
}

// StackSpec is what is wanted of a Stack. Only stack is required. All
// references stay within the Stack's namespace.
type StackSpec struct {
	// Stack is the name of the Pulumi stack: plain, org/stack or
	// org/project/stack.
	// +kubebuilder:validation:MinLength=1
	Stack string `json:"stack"`

	// AccessTokenSecret names a Secret whose key accessToken becomes
	// PULUMI_ACCESS_TOKEN. Deprecated: use envRefs.
	// +optional
	AccessTokenSecret string `json:"accessTokenSecret,omitempty"`
	// Envs names ConfigMaps whose keys become environment variables.
	// Deprecated: use envRefs or workspaceTemplate.
	// +optional
	Envs []string `json:"envs,omitempty"`
	// SecretEnvs names Secrets whose keys become environment variables.
	// Deprecated: use envRefs or workspaceTemplate.
	// +optional
	SecretEnvs []string `json:"envSecrets,omitempty"`
	// EnvRefs are environment variables of the run, by name.
	// +optional
	EnvRefs map[string]ResourceRef `json:"envRefs,omitempty"`
	// Backend is the URL of the state backend (PULUMI_BACKEND_URL). Default:
	// Pulumi Cloud.
	// +optional
	Backend string `json:"backend,omitempty"`

	// Config holds configuration values by key. A key without a colon belongs
	// to the project. A value that is not a string needs a CLI of 3.202.0 or
	// later.
	// +optional
	Config map[string]apiextensionsv1.JSON `json:"config,omitempty"`
	// ConfigRef takes configuration values from ConfigMaps, by key.
	// +optional
	ConfigRef map[string]ConfigMapRef `json:"configRef,omitempty"`
	// Secrets holds secret configuration in plain text. Deprecated: use
	// secretsRef.
	// +optional
	Secrets map[string]string `json:"secrets,omitempty"`
	// SecretRefs takes secret configuration values from Secrets, by key.
	// +optional
	SecretRefs map[string]ResourceRef `json:"secretsRef,omitempty"`
	// SecretsProvider is given to the stack when it is created.
	// +optional
	SecretsProvider string `json:"secretsProvider,omitempty"`
	// Environment lists the Pulumi ESC environments to import.
	// +optional
	// +listType=atomic
	Environment []string `json:"environment,omitempty"`

	// GitSource is a git repository as the source; its fields stand in the
	// spec itself.
	*GitSource `json:",inline"`
	// FluxSource is a Flux source as the source.
	// +optional
	FluxSource *FluxSource `json:"fluxSource,omitempty"`
	// ProgramRef is a Program of the same namespace as the source.
	// +optional
	ProgramRef *ProgramReference `json:"programRef,omitempty"`

	// Targets limits up and preview to these URNs.
	// +optional
	Targets []string `json:"targets,omitempty"`
	// TargetDependents includes what depends on the targets.
	// +optional
	TargetDependents bool `json:"targetDependents,omitempty"`
	// Prerequisites are Stacks that must have succeeded before this one runs.
	// +optional
	Prerequisites []PrerequisiteRef `json:"prerequisites,omitempty"`
	// ContinueResyncOnCommitMatch runs up again each resync period even if the
	// revision is unchanged.
	// +optional
	ContinueResyncOnCommitMatch bool `json:"continueResyncOnCommitMatch,omitempty"`
	// ResyncFrequencySeconds is the period of resyncs and of polls of a git
	// branch, in seconds. Default and minimum: 60.
	// +optional
	ResyncFrequencySeconds int64 `json:"resyncFrequencySeconds,omitempty"`
	// Refresh refreshes the state before an up or a preview.
	// +optional
	Refresh bool `json:"refresh,omitempty"`
	// ExpectNoRefreshChanges fails when a refresh finds changes.
	// +optional
	ExpectNoRefreshChanges bool `json:"expectNoRefreshChanges,omitempty"`
	// DestroyOnFinalize destroys the stack's resources before the Stack object
	// goes.
	// +optional
	DestroyOnFinalize bool `json:"destroyOnFinalize,omitempty"`
	// RunProgram runs the program at destroy.
	// +optional
	RunProgram bool `json:"runProgram,omitempty"`
	// RetryOnUpdateConflict keeps trying when someone else holds the stack's
	// lock.
	// +optional
	RetryOnUpdateConflict bool `json:"retryOnUpdateConflict,omitempty"`
	// UseLocalStackOnly refuses to create the stack in the backend.
	// +optional
	UseLocalStackOnly bool `json:"useLocalStackOnly,omitempty"`
	// ServiceAccountName is the ServiceAccount of the run. Default: default.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// WorkspaceTemplate is merged over the Workspace that is generated, by the
	// rules of a strategic merge patch. It has the form of a Workspace.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	WorkspaceTemplate *runtime.RawExtension `json:"workspaceTemplate,omitempty"`
	// WorkspaceReclaimPolicy says what becomes of the Workspace after a
	// success. Unset means Retain.
	// +optional
	// +kubebuilder:validation:Enum=Retain;Delete
	WorkspaceReclaimPolicy WorkspaceReclaimPolicy `json:"workspaceReclaimPolicy,omitempty"`
	// UpdateTemplate is merged over each Update that is generated, by the rules
	// of a strategic merge patch. It has the form of an Update.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	UpdateTemplate *runtime.RawExtension `json:"updateTemplate,omitempty"`
	// RetryMaxBackoffDurationSeconds caps the wait between retries, in
	// seconds. Default: 86400.
	// +optional
	RetryMaxBackoffDurationSeconds int64 `json:"retryMaxBackoffDurationSeconds,omitempty"`
	// Preview only ever previews, and never destroys.
	// +optional
	Preview bool `json:"preview,omitempty"`
}

// WorkspaceReclaimPolicy says what becomes of a Workspace after a success.
type WorkspaceReclaimPolicy string

const (
	// WorkspaceReclaimRetain keeps the Workspace.
	WorkspaceReclaimRetain WorkspaceReclaimPolicy = "Retain"
	// WorkspaceReclaimDelete deletes the Workspace.
	WorkspaceReclaimDelete WorkspaceReclaimPolicy = "Delete"
)

// GitSource is a git repository as a Stack's source.
type GitSource struct {
	// ProjectRepo is the repository's URL.
	// +optional
	ProjectRepo string `json:"projectRepo,omitempty"`
	// Branch is a branch or a tag, short or full (refs/heads/main). Exactly one
	// of branch and commit is set.
	// +optional
	Branch string `json:"branch,omitempty"`
	// Commit is a commit hash.
	// +optional
	Commit string `json:"commit,omitempty"`
	// RepoDir is the folder that holds Pulumi.yaml.
	// +optional
	RepoDir string `json:"repoDir,omitempty"`
	// Shallow clones only what is needed.
	// +optional
	Shallow bool `json:"shallow,omitempty"`
	// GitAuthSecret names a Secret with keys sshPrivateKey (and password),
	// accessToken, or username and password. Deprecated: use gitAuth.
	// +optional
	GitAuthSecret string `json:"gitAuthSecret,omitempty"`
	// GitAuth is how to authenticate to the repository. References of type
	// Secret only.
	// +optional
	GitAuth *GitAuthConfig `json:"gitAuth,omitempty"`
}

// GitAuthConfig is how to authenticate to a git repository.
type GitAuthConfig struct {
	// PersonalAccessToken is an access token.
	// +optional
	PersonalAccessToken *ResourceRef `json:"accessToken,omitempty"`
	// SSHAuth is an SSH key.
	// +optional
	SSHAuth *SSHAuth `json:"sshAuth,omitempty"`
	// BasicAuth is a user name and a password.
	// +optional
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
	// GitHubApp is a GitHub App installation.
	// +optional
	GitHubApp *GitHubAppAuth `json:"githubApp,omitempty"`
}

// SSHAuth is an SSH key for git.
type SSHAuth struct {
	// SSHPrivateKey is the private key, in PEM form.
	SSHPrivateKey ResourceRef `json:"sshPrivateKey"`
	// Password of the private key.
	// +optional
	Password *ResourceRef `json:"password,omitempty"`
}

// BasicAuth is a user name and a password for git.
type BasicAuth struct {
	// UserName to present.
	UserName ResourceRef `json:"userName"`
	// Password to present.
	Password ResourceRef `json:"password"`
}

// GitHubAppAuth is a GitHub App installation for git.
type GitHubAppAuth struct {
	// AppID of the app.
	AppID ResourceRef `json:"appID"`
	// InstallationID of the app's installation.
	InstallationID ResourceRef `json:"installationID"`
	// PrivateKey of the app, in PEM form.
	PrivateKey ResourceRef `json:"privateKey"`
}

// FluxSource is a Flux source as a Stack's source.
type FluxSource struct {
	// SourceRef names an object with status.artifact, of the same namespace.
	SourceRef FluxSourceReference `json:"sourceRef"`
	// Dir is the folder in the artifact that holds Pulumi.yaml.
	// +optional
	Dir string `json:"dir,omitempty"`
}

// FluxSourceReference names a Flux source.
type FluxSourceReference struct {
	// APIVersion of the source.
	APIVersion string `json:"apiVersion"`
	// Kind of the source.
	Kind string `json:"kind"`
	// Name of the source.
	Name string `json:"name"`
}

// ProgramReference names a Program of the same namespace.
type ProgramReference struct {
	// Name of the Program.
	Name string `json:"name"`
}

// PrerequisiteRef names a Stack that must have succeeded.
type PrerequisiteRef struct {
	// Name of the Stack.
	Name string `json:"name"`
	// Requirement on that Stack beyond having succeeded.
	// +optional
	Requirement *RequirementSpec `json:"requirement,omitempty"`
}

// RequirementSpec is a requirement on a prerequisite.
type RequirementSpec struct {
	// SucceededWithinDuration is how long ago the success may be.
	// +optional
	SucceededWithinDuration *metav1.Duration `json:"succeededWithinDuration,omitempty"`
}

// ConfigMapRef names a key of a ConfigMap.
type ConfigMapRef struct {
	// Name of the ConfigMap.
	Name string `json:"name"`
	// Key in the ConfigMap.
	Key string `json:"key"`
	// JSON parses the value as JSON.
	// +optional
	JSON *bool `json:"json,omitempty"`
}

// ResourceSelectorType says where a ResourceRef takes its value from.
type ResourceSelectorType string

const (
	// ResourceSelectorEnv is an environment variable of the operator. Refused.
	ResourceSelectorEnv ResourceSelectorType = "Env"
	// ResourceSelectorFS is a file of the operator. Refused.
	ResourceSelectorFS ResourceSelectorType = "FS"
	// ResourceSelectorSecret is a key of a Secret.
	ResourceSelectorSecret ResourceSelectorType = "Secret"
	// ResourceSelectorLiteral is the value itself.
	ResourceSelectorLiteral ResourceSelectorType = "Literal"
)

// ResourceRef says where a value comes from. Literal and Secret are served;
// Env and FS are refused with a condition.
type ResourceRef struct {
	// Type is one of Literal, Secret, Env, FS.
	SelectorType ResourceSelectorType `json:"type"`
	// Env names an environment variable. Refused.
	// +optional
	Env *EnvSelector `json:"env,omitempty"`
	// FileSystem names a file. Refused.
	// +optional
	FileSystem *FSSelector `json:"filesystem,omitempty"`
	// SecretRef names a key of a Secret.
	// +optional
	SecretRef *SecretSelector `json:"secret,omitempty"`
	// LiteralRef is the value itself.
	// +optional
	LiteralRef *LiteralRef `json:"literal,omitempty"`
}

// EnvSelector names an environment variable.
type EnvSelector struct {
	// Name of the variable.
	Name string `json:"name"`
}

// FSSelector names a file.
type FSSelector struct {
	// Path of the file.
	Path string `json:"path"`
}

// SecretSelector names a key of a Secret.
type SecretSelector struct {
	// Namespace, if given, must be the Stack's own.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the Secret.
	Name string `json:"name"`
	// Key in the Secret.
	Key string `json:"key"`
}

// LiteralRef is a value written out.
type LiteralRef struct {
	// Value itself.
	Value string `json:"value"`
}

// StackStatus is what was last done.
type StackStatus struct {
	// ObservedGeneration is the newest generation that was looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ObservedReconcileRequest is the newest value of the annotation
	// pulumi.com/reconciliation-request that was looked at.
	// +optional
	ObservedReconcileRequest string `json:"observedReconcileRequest,omitempty"`
	// Outputs of the stack by name; a secret one is the string "[secret]".
	// +optional
	Outputs map[string]apiextensionsv1.JSON `json:"outputs,omitempty"`
	// LastUpdate is the last operation that ended.
	// +optional
	LastUpdate *StackUpdateState `json:"lastUpdate,omitempty"`
	// CurrentUpdate is the claim: the Update that is wanted or under way.
	// +optional
	CurrentUpdate *CurrentStackUpdate `json:"currentUpdate,omitempty"`
	// ProjectInfo is the project as it was last run; it lets a destroy do
	// without the source.
	// +optional
	ProjectInfo *ProjectInfo `json:"projectInfo,omitempty"`
	// Source is the newest revision seen at the source.
	// +optional
	Source *SourceStatus `json:"source,omitempty"`
	// Conditions are Ready, Reconciling and Stalled, by the rules of kstatus.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StackUpdateStateMessage says how an operation ended.
type StackUpdateStateMessage string

const (
	// SucceededStackStateMessage is a success.
	SucceededStackStateMessage StackUpdateStateMessage = "succeeded"
	// FailedStackStateMessage is a failure.
	FailedStackStateMessage StackUpdateStateMessage = "failed"
)

// UpdateType is an operation of the Pulumi CLI.
type UpdateType string

const (
	// UpUpdateType creates and changes resources.
	UpUpdateType UpdateType = "up"
	// PreviewUpdateType shows what an up would do.
	PreviewUpdateType UpdateType = "preview"
	// RefreshUpdateType reads the real state of resources.
	RefreshUpdateType UpdateType = "refresh"
	// DestroyUpdateType deletes resources.
	DestroyUpdateType UpdateType = "destroy"
)

// StackUpdateState is an operation that ended, as a Stack remembers it.
type StackUpdateState struct {
	// Generation of the Stack that it stood for.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// ReconcileRequest that it stood for.
	// +optional
	ReconcileRequest string `json:"reconcileRequest,omitempty"`
	// Name of the Update.
	// +optional
	Name string `json:"name,omitempty"`
	// Type of the operation.
	// +optional
	Type UpdateType `json:"type,omitempty"`
	// State it ended in: succeeded or failed.
	// +optional
	State StackUpdateStateMessage `json:"state,omitempty"`
	// Reason of a failure: the reason of the Update's condition Failed.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message of a failure.
	// +optional
	Message string `json:"message,omitempty"`
	// LastAttemptedCommit is the revision of the source that was tried.
	// +optional
	LastAttemptedCommit string `json:"lastAttemptedCommit,omitempty"`
	// LastSuccessfulCommit is the revision of the source that last succeeded.
	// +optional
	LastSuccessfulCommit string `json:"lastSuccessfulCommit,omitempty"`
	// Permalink to the operation in the backend's console.
	// +optional
	Permalink string `json:"permalink,omitempty"`
	// LastResyncTime is when it ended.
	// +optional
	LastResyncTime metav1.Time `json:"lastResyncTime,omitempty"`
	// Failures in a row for the same generation and request, the first not
	// counted.
	// +optional
	Failures int64 `json:"failures,omitempty"`
}

// CurrentStackUpdate is the claim of an Update. Only the name counts; the rest
// is what was wanted when it was made.
type CurrentStackUpdate struct {
	// Generation of the Stack.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// ReconcileRequest of the Stack.
	// +optional
	ReconcileRequest string `json:"reconcileRequest,omitempty"`
	// Name of the Update.
	// +optional
	Name string `json:"name,omitempty"`
	// Commit is the revision of the source.
	// +optional
	Commit string `json:"commit,omitempty"`
	// Traceparent names the span that claimed it, if the change is traced.
	// +optional
	Traceparent string `json:"traceparent,omitempty"`
}

// ProjectInfo is a Pulumi project.
type ProjectInfo struct {
	// Name of the project.
	Name string `json:"name"`
	// Runtime of the project.
	Runtime string `json:"runtime"`
}

// SourceStatus is the newest revision seen at a source.
type SourceStatus struct {
	// Poll that observed it: a hash of repository, ref and where the credentials
	// are. What a poll saw that is not the Stack's own any more does not count.
	// +optional
	Poll string `json:"poll,omitempty"`
	// Revision at the source.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Digest of the artifact.
	// +optional
	Digest string `json:"digest,omitempty"`
	// ObservedTime is since when it is so.
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`
	// SameAs is the revision that was run and that this one is the same as, in
	// all that the annotation updraft.dev/paths names. It starts no run then.
	// +optional
	SameAs string `json:"sameAs,omitempty"`
	// Paths is the annotation that SameAs was found by.
	// +optional
	Paths string `json:"paths,omitempty"`
	// Message of a source that could not be read.
	// +optional
	Message string `json:"message,omitempty"`
}
