// Package leak looks for secret values where none may be: it finds each object
// of an API server, but Secrets, that holds one (invariant 5).
package leak

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// InObjects is an error that names every object, of any kind that can be listed
// but Secret, which holds one of the values. What a ConfigMap keeps compressed,
// as a run's log is, is looked into.
func InObjects(ctx context.Context, config *rest.Config, values ...string) error {
	kinds, err := listable(config)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	var errs []error
	for _, kind := range kinds {
		list, err := client.Resource(kind).List(ctx, metav1.ListOptions{})
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot list %s: %w", kind, err))
			continue
		}
		for i := range list.Items {
			errs = append(errs, inObject(&list.Items[i], values))
		}
	}
	return errors.Join(errs...)
}

// InText is an error if a text holds one of the values. It does not say which.
func InText(what, text string, values ...string) error {
	if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(text, v) }) {
		return fmt.Errorf("%s holds a secret value", what)
	}
	return nil
}

func listable(config *rest.Config) ([]schema.GroupVersionResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	groups, err := client.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("cannot find the kinds of objects: %w", err)
	}
	var kinds []schema.GroupVersionResource
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range group.APIResources {
			kind := version.WithResource(r.Name)
			if slices.Contains(r.Verbs, "list") && kind.GroupResource() != (schema.GroupResource{Resource: "secrets"}) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds, nil
}

func inObject(object *unstructured.Unstructured, values []string) error {
	what := fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	errs := []error{InText(what, string(text), values...)}
	binary, _, err := unstructured.NestedStringMap(object.Object, "binaryData")
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for key, encoded := range binary {
		content, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if unpacked, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
			if content, err = io.ReadAll(unpacked); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		errs = append(errs, InText(what+" at "+key, string(content), values...))
	}
	return errors.Join(errs...)
}
