package pods

import (
	"fmt"
	"maps"
	"os/user"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// objects reads what a pod refers to in its namespace.
type objects interface {
	secret(name string) (*corev1.Secret, error)
	configMap(name string) (*corev1.ConfigMap, error)
	claim(name string) error
}

// environment is what a container's process gets: what the container declares,
// and of what an image would have, only the bare minimum. Nothing of the
// developer's own environment is in it: their access tokens would be.
func environment(pod *corev1.Pod, container *corev1.Container, in objects, at place) (map[string]string, error) {
	variables, err := declared(pod, container, in, at)
	if err != nil {
		return nil, err
	}
	for name, value := range defaults(pod, at.folder) {
		if _, ok := variables[name]; !ok {
			variables[name] = value
		}
	}
	variables["PATH"] = searchPath(at.bin, variables["PATH"])
	variables[messageVariable] = messageFile(at.folder, container)
	variables[sandboxMark] = mark(pod.UID, container.Name)
	return variables, nil
}

// place is what the environment has to know of where the pod is.
type place struct {
	folder  folder
	bin     string
	machine corev1.ResourceList
}

func defaults(pod *corev1.Pod, at folder) map[string]string {
	return map[string]string{
		"HOME":        at.home(),
		"HOSTNAME":    pod.Name,
		"PULUMI_HOME": at.in("home", ".pulumi"),
		"TMPDIR":      at.tmp(),
		"USER":        userName(),
	}
}

func userName() string {
	if current, err := user.Current(); err == nil {
		return current.Username
	}
	return "updraft"
}

func searchPath(bin, path string) string {
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	if bin == "" {
		return path
	}
	return bin + ":" + path
}

// declared is a container's env and envFrom, in the order and with the
// precedence of a kubelet: a value sees the variables declared before it.
func declared(pod *corev1.Pod, container *corev1.Container, in objects, at place) (map[string]string, error) {
	variables := map[string]string{}
	for _, source := range container.EnvFrom {
		if err := addAll(variables, source, in); err != nil {
			return nil, err
		}
	}
	if _, ok := variables[rootVariable]; ok {
		variables[rootVariable] = at.folder.share()
	}
	for _, variable := range container.Env {
		value, found, err := valueOf(pod, container, variable, variables, in, at)
		if err != nil {
			return nil, err
		}
		if found {
			variables[variable.Name] = value
		}
	}
	return variables, nil
}

func valueOf(pod *corev1.Pod, container *corev1.Container, variable corev1.EnvVar, before map[string]string, in objects, at place) (string, bool, error) {
	if variable.Name == rootVariable {
		return at.folder.share(), true, nil
	}
	from := variable.ValueFrom
	if variable.Value != "" || from == nil {
		return expand(variable.Value, before), true, nil
	}
	switch {
	case from.SecretKeyRef != nil:
		return secretKey(pod.Namespace, from.SecretKeyRef, in)
	case from.ConfigMapKeyRef != nil:
		return configMapKey(pod.Namespace, from.ConfigMapKeyRef, in)
	case from.FieldRef != nil:
		value, err := fieldValue(pod, from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		if other := containerNamed(pod, from.ResourceFieldRef.ContainerName); other != nil {
			container = other
		}
		value, err := resourceValue(container, from.ResourceFieldRef, at.machine)
		return value, true, err
	}
	return "", false, fmt.Errorf("the source of variable %s is not supported in dev mode", variable.Name)
}

func secretKey(namespace string, ref *corev1.SecretKeySelector, in objects) (string, bool, error) {
	secret, err := in.secret(ref.Name)
	if skip, err := missing(err, ref.Optional, "secret", ref.Name); skip || err != nil {
		return "", false, err
	}
	value, ok := secret.Data[ref.Key]
	if !ok && !isTrue(ref.Optional) {
		return "", false, fmt.Errorf("couldn't find key %s in Secret %s/%s", ref.Key, namespace, ref.Name)
	}
	return string(value), ok, nil
}

func configMapKey(namespace string, ref *corev1.ConfigMapKeySelector, in objects) (string, bool, error) {
	configMap, err := in.configMap(ref.Name)
	if skip, err := missing(err, ref.Optional, "configmap", ref.Name); skip || err != nil {
		return "", false, err
	}
	value, ok := configMap.Data[ref.Key]
	if !ok && !isTrue(ref.Optional) {
		return "", false, fmt.Errorf("couldn't find key %s in ConfigMap %s/%s", ref.Key, namespace, ref.Name)
	}
	return value, ok, nil
}

// addAll adds what an envFrom names.
func addAll(variables map[string]string, source corev1.EnvFromSource, in objects) error {
	switch {
	case source.SecretRef != nil:
		secret, err := in.secret(source.SecretRef.Name)
		if skip, err := missing(err, source.SecretRef.Optional, "secret", source.SecretRef.Name); skip || err != nil {
			return err
		}
		for key, value := range secret.Data {
			variables[source.Prefix+key] = string(value)
		}
	case source.ConfigMapRef != nil:
		configMap, err := in.configMap(source.ConfigMapRef.Name)
		if skip, err := missing(err, source.ConfigMapRef.Optional, "configmap", source.ConfigMapRef.Name); skip || err != nil {
			return err
		}
		for key, value := range configMap.Data {
			variables[source.Prefix+key] = value
		}
	}
	return nil
}

// missing sorts the error of reading an object: skip what is optional and
// absent, and say what is absent in a kubelet's words.
func missing(err error, optional *bool, kind, name string) (skip bool, _ error) {
	switch {
	case !apierrors.IsNotFound(err):
		return false, err
	case isTrue(optional):
		return true, nil
	}
	return false, fmt.Errorf("%s %q not found", kind, name)
}

func isTrue(flag *bool) bool { return flag != nil && *flag }

// environ is the environment in the form of a process's. As on a cluster, bytes
// that are no text are refused: they would not arrive as they are.
func environ(variables map[string]string) ([]string, error) {
	list := make([]string, 0, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if !utf8.ValidString(variables[name]) {
			return nil, fmt.Errorf("the value of variable %s is not valid UTF-8", name)
		}
		list = append(list, name+"="+variables[name])
	}
	return list, nil
}
