package pods

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// known are the objects of a namespace.
type known struct {
	secrets    map[string]map[string][]byte
	configMaps map[string]map[string]string
	claims     []string
}

func absent(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

func (k known) secret(name string) (*corev1.Secret, error) {
	if data, ok := k.secrets[name]; ok {
		return &corev1.Secret{Data: data}, nil
	}
	return nil, absent("secrets", name)
}

func (k known) configMap(name string) (*corev1.ConfigMap, error) {
	if data, ok := k.configMaps[name]; ok {
		return &corev1.ConfigMap{Data: data, BinaryData: map[string][]byte{"binary": {1}}}, nil
	}
	return nil, absent("configmaps", name)
}

func (k known) claim(name string) error {
	if slices.Contains(k.claims, name) {
		return nil
	}
	return absent("persistentvolumeclaims", name)
}

var testObjects = known{
	secrets:    map[string]map[string][]byte{"token": {"value": []byte("s3cret"), "other": []byte("o")}},
	configMaps: map[string]map[string]string{"settings": {"colour": "red", "size": "big"}},
	claims:     []string{"state"},
}

func testPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "run-1", Namespace: "ns", UID: "uid-1",
			Labels:      map[string]string{"b": "2", "a": `"1"`},
			Annotations: map[string]string{"example.com/note": "hi"},
		},
		Spec: corev1.PodSpec{NodeName: NodeName, ServiceAccountName: "runner", RestartPolicy: corev1.RestartPolicyNever},
	}
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func quantity(path, divisor string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: path, Divisor: resource.MustParse(divisor)}}
}

func secretEnv(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
	}}
}

func configEnv(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
	}}
}

func TestDeclaredEnvironment(t *testing.T) {
	at := place{folder: "/pod", machine: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
	cases := []struct {
		reason    string
		container corev1.Container
		want      map[string]string
		err       string
	}{
		{
			reason: "A value sees the variables declared before it, and not those after it",
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "EARLY", Value: "$(LATE)"}, {Name: "LATE", Value: "x"}, {Name: "BOTH", Value: "$(EARLY)-$(LATE)-$$(LATE)"},
			}},
			want: map[string]string{"EARLY": "$(LATE)", "LATE": "x", "BOTH": "$(LATE)-x-$(LATE)"},
		},
		{
			reason:    "The root is where the pod's share is, whatever is declared",
			container: corev1.Container{Env: []corev1.EnvVar{{Name: rootVariable, Value: "/share"}, {Name: "P", Value: "$(UPDRAFT_ROOT)/x"}}},
			want:      map[string]string{rootVariable: "/pod/share", "P": "/pod/share/x"},
		},
		{
			reason: "Sources are read, and values see them",
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "S", ValueFrom: secretEnv("token", "value", false)},
				{Name: "C", ValueFrom: configEnv("settings", "colour", false)},
				{Name: "BOTH", Value: "$(S)/$(C)"},
			}},
			want: map[string]string{"S": "s3cret", "C": "red", "BOTH": "s3cret/red"},
		},
		{
			reason: "envFrom comes first, with its prefix, and env overrides it",
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{
					{Prefix: "X_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Optional: new(true)}},
				},
				Env: []corev1.EnvVar{{Name: "size", Value: "small"}, {Name: "SEES", Value: "$(X_value)"}},
			},
			want: map[string]string{"X_value": "s3cret", "X_other": "o", "colour": "red", "size": "small", "SEES": "s3cret"},
		},
		{
			reason: "What is optional and absent is left out",
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "A", ValueFrom: secretEnv("none", "x", true)}, {Name: "B", ValueFrom: secretEnv("token", "none", true)},
				{Name: "C", ValueFrom: configEnv("none", "x", true)}, {Name: "D", ValueFrom: configEnv("settings", "none", true)},
			}},
			want: map[string]string{},
		},
		{
			reason: "Fields of the pod are there",
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "NAME", ValueFrom: field("metadata.name")}, {Name: "NS", ValueFrom: field("metadata.namespace")},
				{Name: "UID", ValueFrom: field("metadata.uid")}, {Name: "LABEL", ValueFrom: field("metadata.labels['b']")},
				{Name: "NOTE", ValueFrom: field("metadata.annotations['example.com/note']")}, {Name: "NONE", ValueFrom: field("metadata.labels['c']")},
				{Name: "NODE", ValueFrom: field("spec.nodeName")}, {Name: "SA", ValueFrom: field("spec.serviceAccountName")},
				{Name: "IP", ValueFrom: field("status.podIP")}, {Name: "HOST", ValueFrom: field("status.hostIP")},
			}},
			want: map[string]string{"NAME": "run-1", "NS": "ns", "UID": "uid-1", "LABEL": "2", "NOTE": "hi", "NONE": "",
				"NODE": "local", "SA": "runner", "IP": "127.0.0.1", "HOST": "127.0.0.1"},
		},
		{
			reason: "Requests and limits are rounded up to their divisor, and a missing limit is the machine's",
			container: corev1.Container{
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1100m"), corev1.ResourceMemory: resource.MustParse("1500Ki")},
				},
				Env: []corev1.EnvVar{
					{Name: "CPU", ValueFrom: quantity("requests.cpu", "1")}, {Name: "MILLI", ValueFrom: quantity("requests.cpu", "1m")},
					{Name: "MEM", ValueFrom: quantity("requests.memory", "1Mi")}, {Name: "BYTES", ValueFrom: quantity("requests.memory", "0")},
					{Name: "LIMIT", ValueFrom: quantity("limits.memory", "1Mi")},
				},
			},
			want: map[string]string{"CPU": "2", "MILLI": "1100", "MEM": "2", "BYTES": "1536000", "LIMIT": "1024"},
		},
		{reason: "A missing Secret is named", container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: secretEnv("none", "x", false)}}},
			err: `secret "none" not found`},
		{reason: "A missing key is named", container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: secretEnv("token", "none", false)}}},
			err: "couldn't find key none in Secret ns/token"},
		{reason: "A missing ConfigMap is named", container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: configEnv("none", "x", false)}}},
			err: `configmap "none" not found`},
		{reason: "A missing key of a ConfigMap is named", container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: configEnv("settings", "none", false)}}},
			err: "couldn't find key none in ConfigMap ns/settings"},
	}
	for _, c := range cases {
		got, err := declared(testPod(), &c.container, testObjects, at)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: error %v, want %s", c.reason, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.reason, diff)
		}
	}
}

func TestEnvironmentIsClean(t *testing.T) {
	t.Setenv("PULUMI_ACCESS_TOKEN", "the developer's own")
	container := &corev1.Container{Name: "c", Env: []corev1.EnvVar{{Name: "HOME", Value: "/elsewhere"}, {Name: "PATH", Value: "/opt/bin"}}}
	got, err := environment(testPod(), container, testObjects, place{folder: "/pod", bin: "/bin-first"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"HOME": "/elsewhere", "HOSTNAME": "run-1", "PATH": "/bin-first:/opt/bin", "PULUMI_HOME": "/pod/home/.pulumi",
		"TMPDIR": "/pod/tmp", "USER": userName(), messageVariable: "/pod/termination/c", sandboxMark: "uid-1/c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	list, err := environ(got)
	if err != nil || !slices.IsSorted(list) || len(list) != len(want) || !strings.Contains(fmt.Sprint(list), "HOSTNAME=run-1") {
		t.Errorf("environ: %v", list)
	}
	if _, err := environ(map[string]string{"A": "\xff"}); err == nil {
		t.Error("bytes that are no text are not refused")
	}
	if path := searchPath("/bin-first", ""); path != "/bin-first:/usr/local/bin:/usr/bin:/bin" {
		t.Errorf("PATH of a container that sets none: %s", path)
	}
}
