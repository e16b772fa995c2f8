package apiserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"sigs.k8s.io/yaml"
)

// LoadSource reads the one ApiServerSource in the file and judges it as Knative's webhook would; beyond it, an unknown field is an
// error.
func LoadSource(file string) (*sourcesv1.ApiServerSource, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var source *sourcesv1.ApiServerSource
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		found, err := readSource(document)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		if found != nil && source != nil {
			return nil, fmt.Errorf("there is more than one ApiServerSource in %s", file)
		}
		if found != nil {
			source = found
		}
	}
	if source == nil {
		return nil, fmt.Errorf("there is no ApiServerSource of %s in %s", sourcesv1.SchemeGroupVersion, file)
	}
	return source, nil
}

// readSource returns nil for another kind.
func readSource(document []byte) (*sourcesv1.ApiServerSource, error) {
	var is metav1.TypeMeta
	if err := yaml.Unmarshal(document, &is); err != nil {
		return nil, err
	}
	if is.GroupVersionKind() != sourcesv1.SchemeGroupVersion.WithKind("ApiServerSource") {
		return nil, nil
	}
	source := &sourcesv1.ApiServerSource{}
	if err := yaml.UnmarshalStrict(document, source); err != nil {
		return nil, err
	}
	ctx := context.Background()
	source.SetDefaults(ctx)
	if err := source.Validate(ctx); err != nil {
		return nil, fmt.Errorf("ApiServerSource %s is invalid: %w", source.Name, err)
	}
	return source, nil
}
