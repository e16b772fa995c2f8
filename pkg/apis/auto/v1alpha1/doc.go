// Package v1alpha1 holds the custom resources of auto.pulumi.com/v1alpha1:
// Workspace, which says how a run is set up, and Update, which is one
// operation. It holds types, reasons and the condition life cycle; no decision
// is made here and no client is imported.
//
// +kubebuilder:object:generate=true
// +groupName=auto.pulumi.com
package v1alpha1
