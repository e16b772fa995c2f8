package install

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// part is a kind that an installation has objects of.
type part struct {
	schema.GroupVersionResource
	// namespaced objects of ours are in updraft-system only.
	namespaced bool
}

var (
	crds       = part{resource("apiextensions.k8s.io/v1", "customresourcedefinitions"), false}
	namespaces = part{resource("v1", "namespaces"), false}
)

// parts are all kinds that an installation has or had objects of, but CRDs and
// the namespace, in the order in which they are taken away: first what wakes the
// functions, and rights only when nobody acts by them. A kind that config/ no
// longer has stays here, for what older versions left.
var parts = [][]part{
	{{resource("sources.knative.dev/v1", "pingsources"), true}, {resource("sources.knative.dev/v1", "apiserversources"), true}},
	{{resource("eventing.knative.dev/v1", "triggers"), true}},
	{{resource("serving.knative.dev/v1", "services"), true}},
	{{resource("eventing.knative.dev/v1beta3", "eventtypes"), true}},
	{{resource("eventing.knative.dev/v1", "brokers"), true}},
	{{resource("rbac.authorization.k8s.io/v1", "clusterrolebindings"), false}, {resource("rbac.authorization.k8s.io/v1", "rolebindings"), true}},
	{{resource("rbac.authorization.k8s.io/v1", "clusterroles"), false}, {resource("rbac.authorization.k8s.io/v1", "roles"), true}},
	{{resource("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings"), false}},
	{{resource("admissionregistration.k8s.io/v1", "validatingadmissionpolicies"), false}},
	{{resource("v1", "configmaps"), true}, {resource("v1", "serviceaccounts"), true}},
}

func resource(groupVersion, name string) schema.GroupVersionResource {
	parsed, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		panic(err) // a constant of ours
	}
	return parsed.WithResource(name)
}

// ours are the objects of a kind that updraft install applied: they carry the
// label, and we own fields of them. The label alone could be anybody's.
func (c *cluster) ours(ctx context.Context, p part) ([]unstructured.Unstructured, error) {
	namespace := ""
	if p.namespaced {
		namespace = systemNamespace
	}
	found, err := c.dynamic.Resource(p.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: partOf + "=updraft"})
	if apierrors.IsNotFound(err) {
		return nil, nil // the cluster does not have the kind
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", p.Resource, err)
	}
	var mine []unstructured.Unstructured
	for _, o := range found.Items {
		if appliedByUs(&o) {
			mine = append(mine, o)
		}
	}
	return mine, nil
}

func appliedByUs(o *unstructured.Unstructured) bool {
	for _, f := range o.GetManagedFields() {
		if f.Manager == manager && f.Operation == metav1.ManagedFieldsOperationApply {
			return true
		}
	}
	return false
}

// prune deletes what an older version applied and this one does not have. CRDs
// stay, with what users made of them, and so does the namespace.
func (c *cluster) prune(ctx context.Context, applied []*unstructured.Unstructured) error {
	keep := map[string]bool{}
	for _, o := range applied {
		keep[identity(o)] = true
	}
	for _, group := range parts {
		var stale []unstructured.Unstructured
		for _, p := range group {
			mine, err := c.ours(ctx, p)
			if err != nil {
				return err
			}
			for _, o := range mine {
				if keep[identity(&o)] || o.GetDeletionTimestamp() != nil {
					continue
				}
				if err := c.delete(ctx, p, &o); err != nil {
					return err
				}
				stale = append(stale, o)
			}
		}
		for _, o := range stale {
			c.screen.say("%s deleted: this version does not have it", title(&o))
		}
	}
	return nil
}

func identity(o *unstructured.Unstructured) string {
	return o.GroupVersionKind().GroupKind().String() + "/" + o.GetNamespace() + "/" + o.GetName()
}

// delete deletes the very object that was seen, and what belongs to it before
// itself.
func (c *cluster) delete(ctx context.Context, p part, o *unstructured.Unstructured) error {
	uid, foreground := o.GetUID(), metav1.DeletePropagationForeground
	err := c.dynamic.Resource(p.GroupVersionResource).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &foreground,
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot delete %s: %w", title(o), err)
	}
	return nil
}
