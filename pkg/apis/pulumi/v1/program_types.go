package v1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Program is a Pulumi YAML program written in the cluster.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=programs,scope=Namespaced,categories=pulumi
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.artifact.url`
type Program struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Program is the body of Pulumi.yaml; its name is the object's name, its
	// runtime is yaml.
	Program ProgramSpec `json:"program,omitempty"`
	// Status is written by Updraft alone.
	Status ProgramStatus `json:"status,omitempty"`
}

// ProgramList is a list of Programs.
//
// +kubebuilder:object:root=true
type ProgramList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Program `json:"items"`
}

// ProgramSpec is the body of a Pulumi YAML program.
type ProgramSpec struct {
	// Configuration declares the program's configuration by name.
	// +optional
	Configuration map[string]Configuration `json:"configuration,omitempty"`
	// Resources by name.
	// +optional
	Resources map[string]ProgramResource `json:"resources,omitempty"`
	// Variables by name.
	// +optional
	Variables map[string]apiextensionsv1.JSON `json:"variables,omitempty"`
	// Outputs of the stack by name.
	// +optional
	Outputs map[string]apiextensionsv1.JSON `json:"outputs,omitempty"`
	// Packages are external packages by name, installed first.
	// +optional
	Packages map[string]string `json:"packages,omitempty"`
}

// ConfigType is the type of a configuration value.
//
// +kubebuilder:validation:Enum=String;Number;List<Number>;List<String>
type ConfigType string

// Configuration declares one configuration value.
type Configuration struct {
	// Type of the value.
	// +optional
	Type ConfigType `json:"type,omitempty"`
	// Default value.
	// +optional
	Default *apiextensionsv1.JSON `json:"default,omitempty"`
}

// ProgramResource is a resource of a program.
type ProgramResource struct {
	// Type token of the resource.
	// +kubebuilder:validation:MinLength=1
	Type string `json:"type"`
	// Properties are its inputs.
	// +optional
	Properties map[string]apiextensionsv1.JSON `json:"properties,omitempty"`
	// Options of the resource.
	// +optional
	Options *Options `json:"options,omitempty"`
	// Get reads an existing resource in place of making one.
	// +optional
	Get *Getter `json:"get,omitempty"`
}

// Options are the options of a resource.
type Options struct {
	// AdditionalSecretOutputs are outputs to treat as secret.
	// +optional
	AdditionalSecretOutputs []string `json:"additionalSecretOutputs,omitempty"`
	// Aliases are earlier names.
	// +optional
	Aliases []string `json:"aliases,omitempty"`
	// CustomTimeouts override the provider's.
	// +optional
	CustomTimeouts *CustomTimeouts `json:"customTimeouts,omitempty"`
	// DeleteBeforeReplace deletes the old one first.
	// +optional
	DeleteBeforeReplace bool `json:"deleteBeforeReplace,omitempty"`
	// DependsOn are resources that come first.
	// +optional
	DependsOn []apiextensionsv1.JSON `json:"dependsOn,omitempty"`
	// IgnoreChanges are properties whose changes are ignored.
	// +optional
	IgnoreChanges []string `json:"ignoreChanges,omitempty"`
	// Import is the id of an existing resource to adopt.
	// +optional
	Import string `json:"import,omitempty"`
	// Parent of the resource.
	// +optional
	Parent *apiextensionsv1.JSON `json:"parent,omitempty"`
	// Protect refuses its deletion.
	// +optional
	Protect bool `json:"protect,omitempty"`
	// Provider of the resource.
	// +optional
	Provider *apiextensionsv1.JSON `json:"provider,omitempty"`
	// Providers of a component's children.
	// +optional
	Providers map[string]apiextensionsv1.JSON `json:"providers,omitempty"`
	// Version of the provider.
	// +optional
	Version string `json:"version,omitempty"`
}

// CustomTimeouts override a provider's timeouts; each is a Go duration.
type CustomTimeouts struct {
	// Create timeout.
	// +optional
	Create string `json:"create,omitempty"`
	// Delete timeout.
	// +optional
	Delete string `json:"delete,omitempty"`
	// Update timeout.
	// +optional
	Update string `json:"update,omitempty"`
}

// Getter reads an existing resource.
type Getter struct {
	// Id of the resource.
	// +kubebuilder:validation:MinLength=1
	Id string `json:"id"`
	// State that is known of it.
	// +optional
	State map[string]apiextensionsv1.JSON `json:"state,omitempty"`
}

// ProgramStatus is what is known of a Program.
type ProgramStatus struct {
	// ObservedGeneration is the newest generation that was looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Artifact of the program, in the form of a Flux artifact.
	// +optional
	Artifact *Artifact `json:"artifact,omitempty"`
}

// Artifact is a packed source, in the form of a Flux artifact.
type Artifact struct {
	// Path of the artifact.
	Path string `json:"path"`
	// URL it is served at.
	URL string `json:"url"`
	// Revision is the Program's generation.
	Revision string `json:"revision"`
	// Digest of the artifact, as algorithm:hex.
	// +optional
	// +kubebuilder:validation:Pattern="^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$"
	Digest string `json:"digest,omitempty"`
	// LastUpdateTime is when it was packed.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
	// Size in bytes.
	// +optional
	Size *int64 `json:"size,omitempty"`
	// Metadata of the artifact.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
}
