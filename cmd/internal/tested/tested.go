// Package tested says on which versions of what it needs Updraft is tested.
package tested

const (
	// Kubernetes by its minor version.
	Kubernetes = "1.34"
	// Knative by its release, which is of both Serving and Eventing.
	Knative = "1.22"
	// Pulumi is the CLI.
	Pulumi = "3.276.0"
)
