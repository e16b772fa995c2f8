package apiserver

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"knative.dev/eventing/pkg/adapter/apiserver"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
)

// failFast is the annotation by which a cluster's source trusts that it has its rights, and gives up at the first watch that ends.
const failFast = "features.knative.dev/apiserversource-skip-permissions-check"

// configOf is what Knative's controller makes of the object for the adapter's environment; the code for it is private there
// (pkg/reconciler/apiserversource).
func configOf(ctx context.Context, source *sourcesv1.ApiServerSource, client kubernetes.Interface) (apiserver.Config, error) {
	namespaces, err := namespacesOf(ctx, source, client)
	if err != nil {
		return apiserver.Config{}, err
	}
	config := apiserver.Config{
		Namespaces:    namespaces,
		AllNamespaces: isAll(source.Spec.NamespaceSelector),
		ResourceOwner: source.Spec.ResourceOwner,
		EventMode:     source.Spec.EventMode,
		Filters:       source.Spec.Filters,
		FailFast:      source.Annotations[failFast] == "true",
	}
	for _, resource := range source.Spec.Resources {
		watch, err := watchOf(resource)
		if err != nil {
			return apiserver.Config{}, err
		}
		config.Resources = append(config.Resources, watch)
	}
	return config, nil
}

func watchOf(resource sourcesv1.APIVersionKindSelector) (apiserver.ResourceWatch, error) {
	version, err := schema.ParseGroupVersion(resource.APIVersion)
	if err != nil {
		return apiserver.ResourceWatch{}, fmt.Errorf("cannot read the version of %s: %w", resource.Kind, err)
	}
	plural, _ := meta.UnsafeGuessKindToResource(version.WithKind(resource.Kind)) // a guess, but the one that a cluster makes
	watch := apiserver.ResourceWatch{GVR: plural}
	if resource.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(resource.LabelSelector)
		if err != nil {
			return apiserver.ResourceWatch{}, fmt.Errorf("cannot read the selector of %s: %w", resource.Kind, err)
		}
		watch.LabelSelector = selector.String()
	}
	return watch, nil
}

// namespacesOf lists the namespaces to watch: the source's own without a selector, else those that it selects now.
func namespacesOf(ctx context.Context, source *sourcesv1.ApiServerSource, client kubernetes.Interface) ([]string, error) {
	switch {
	case source.Spec.NamespaceSelector == nil:
		return []string{source.Namespace}, nil
	case isAll(source.Spec.NamespaceSelector):
		return nil, nil // the adapter does not look
	}
	selector, err := metav1.LabelSelectorAsSelector(source.Spec.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("cannot read the namespace selector: %w", err)
	}
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("cannot list the namespaces to watch: %w", err)
	}
	names := make([]string, 0, len(list.Items))
	for _, namespace := range list.Items {
		names = append(names, namespace.Name)
	}
	slices.Sort(names)
	return names, nil
}

func isAll(selector *metav1.LabelSelector) bool {
	return selector != nil && len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0
}
