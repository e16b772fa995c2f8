// Package v1alpha1 serves Stack under its older version, with the very spec
// and status of v1: a version that lacked a field would erase it on every
// write through it.
//
// +kubebuilder:object:generate=true
// +groupName=pulumi.com
package v1alpha1
