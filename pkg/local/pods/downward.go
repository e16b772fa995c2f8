package pods

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// loopback is the address of the node and of every pod.
const loopback = "127.0.0.1"

// fieldValue is what a fieldRef stands for.
func fieldValue(pod *corev1.Pod, path string) (string, error) {
	if kind, key, ok := subscript(path); ok {
		switch kind {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return formatMap(pod.Labels), nil
	case "metadata.annotations":
		return formatMap(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs":
		return loopback, nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %s", path)
}

// subscript takes metadata.labels['key'] apart.
func subscript(path string) (kind, key string, ok bool) {
	rest, ok := strings.CutSuffix(path, "']")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "['")
}

// formatMap writes labels as the downward API does: one key="value" a line.
func formatMap(entries map[string]string) string {
	lines := make([]string, 0, len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		lines = append(lines, key+"="+strconv.Quote(entries[key]))
	}
	return strings.Join(lines, "\n")
}

// resourceValue is what a resourceFieldRef stands for, rounded up to its
// divisor. A limit that is not set is what the machine has.
func resourceValue(container *corev1.Container, ref *corev1.ResourceFieldSelector, machine corev1.ResourceList) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	var quantity resource.Quantity
	switch kind {
	case "requests":
		quantity = container.Resources.Requests[corev1.ResourceName(name)]
	case "limits":
		var limited bool
		if quantity, limited = container.Resources.Limits[corev1.ResourceName(name)]; !limited {
			quantity = machine[corev1.ResourceName(name)]
		}
	default:
		return "", fmt.Errorf("unsupported container resource: %s", ref.Resource)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == string(corev1.ResourceCPU) {
		return ceiling(quantity.MilliValue(), divisor.MilliValue()), nil
	}
	return ceiling(quantity.Value(), divisor.Value()), nil
}

func ceiling(value, divisor int64) string {
	return strconv.FormatInt((value+divisor-1)/divisor, 10)
}

// containerNamed finds a container of a pod, init or not.
func containerNamed(pod *corev1.Pod, name string) *corev1.Container {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if containers[i].Name == name {
				return &containers[i]
			}
		}
	}
	return nil
}
