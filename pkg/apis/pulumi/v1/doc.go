// Package v1 holds the custom resources of pulumi.com/v1, Stack and Program,
// as users of the Pulumi Kubernetes Operator v2 know them, with Updraft's own
// status fields beside theirs.
//
// It promises that a manifest written for that operator decodes into these
// types with nothing lost, and that reasons and conditions are only those
// listed in reasons.go. It holds types, reasons and the condition life cycle;
// no decision is made here and no client is imported.
//
// +kubebuilder:object:generate=true
// +groupName=pulumi.com
package v1
