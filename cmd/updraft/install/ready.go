package install

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// readiness is the condition that an object of a kind comes to have, by its
// controller's word. Other kinds need nothing but to be there.
var readiness = map[string]string{
	"apiextensions.k8s.io/CustomResourceDefinition": "Established",
	"serving.knative.dev/Service":                   "Ready",
	"eventing.knative.dev/Broker":                   "Ready",
	"eventing.knative.dev/Trigger":                  "Ready",
	"sources.knative.dev/ApiServerSource":           "Ready",
	"sources.knative.dev/PingSource":                "Ready",
}

func conditionOf(o *unstructured.Unstructured) string {
	return readiness[o.GroupVersionKind().GroupKind().Group+"/"+o.GetKind()]
}

// awaitReady waits until all objects of a run are ready; what they say of
// themselves if they are not is the error.
func (c *cluster) awaitReady(ctx context.Context, run []*unstructured.Unstructured) error {
	err := c.until(ctx, func(ctx context.Context) ([]string, error) {
		var left []string
		for _, o := range run {
			why, err := c.unready(ctx, o)
			if err != nil {
				return nil, err
			}
			if why != "" {
				left = append(left, why)
			}
		}
		return left, nil
	})
	if err != nil {
		return fmt.Errorf("%s did not become ready: %w", list(run), err)
	}
	return nil
}

// unready is why an object is not ready yet, "" if it is.
func (c *cluster) unready(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	resource, err := c.resource(o)
	if err != nil {
		return "", err
	}
	now, err := resource.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return title(o) + ": it was deleted meanwhile", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot get %s: %w", title(o), err)
	}
	return lacks(now, conditionOf(o)), nil
}

// lacks says why an object does not have a condition for the generation that it
// is of.
func lacks(o *unstructured.Unstructured, kind string) string {
	if observed, found, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); found && observed < o.GetGeneration() {
		return title(o) + ": its controller has not seen it yet"
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] != kind {
			continue
		}
		if condition["status"] == "True" {
			return ""
		}
		reason, _ := condition["reason"].(string)
		message, _ := condition["message"].(string)
		return strings.TrimRight(fmt.Sprintf("%s: %s %s", title(o), reason, message), " :")
	}
	return title(o) + ": its controller has said nothing yet"
}
