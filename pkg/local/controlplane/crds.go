package controlplane

import (
	"embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// The files in crds/ are derived from those of the knative.dev/eventing module that we build against: see derive in crds_test.go,
// which fails when they differ and writes them when told so: go test ./pkg/local/controlplane -run Derived -update
//
//go:embed crds/*.yaml
var knative embed.FS

// KnativeCRDs are the kinds of Knative that Updraft creates objects of, as its modules define them but without their webhooks, which
// nobody would answer here: PingSource, in v1. Every plane serves them.
func KnativeCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := knative.ReadDir("crds")
	if err != nil {
		return nil, err
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(entries))
	for _, entry := range entries {
		content, err := knative.ReadFile("crds/" + entry.Name())
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("cannot read the embedded definition %s: %w", entry.Name(), err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}
