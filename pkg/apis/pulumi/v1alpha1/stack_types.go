package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// Stack is a Pulumi stack that Updraft keeps up to date.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=stacks,scope=Namespaced,categories=pulumi
// +kubebuilder:selectablefield:JSONPath=`.spec.programRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.fluxSource.sourceRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.projectRepo`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 42",message="Stack name must be no more than 42 characters in length.",optionalOldSelf=true
type Stack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	Spec pulumiv1.StackSpec `json:"spec,omitempty"`
	// Status is what was last done, written by Updraft alone.
	Status pulumiv1.StackStatus `json:"status,omitempty"`
}

// StackList is a list of Stacks.
//
// +kubebuilder:object:root=true
type StackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Stack `json:"items"`
}
