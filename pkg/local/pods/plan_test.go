package pods

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

var testCommands = map[string]string{"/ko-app/agent": "/bin/sh"}

var emptyDir = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}

func secretVolume(name string) corev1.VolumeSource {
	return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}
}

func claimVolume(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

// runPod is the shape of a pod that a Job of ours has.
func runPod(change func(*corev1.PodSpec)) *corev1.Pod {
	pod := testPod()
	root := corev1.EnvVar{Name: rootVariable, Value: shareMount}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "share", VolumeSource: emptyDir},
		{Name: "creds", VolumeSource: secretVolume("token")},
		{Name: "config", VolumeSource: secretVolume("token")},
		{Name: "state", VolumeSource: claimVolume("state")},
		{Name: "account", VolumeSource: emptyDir},
		{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
	}
	account := corev1.VolumeMount{Name: "account", MountPath: accountMount}
	pod.Spec.InitContainers = []corev1.Container{{
		Name: "bootstrap", Image: "ours", Command: []string{"/ko-app/agent", "bootstrap"}, Env: []corev1.EnvVar{root},
		VolumeMounts: []corev1.VolumeMount{{Name: "creds", MountPath: "/share/creds"}, {Name: "share", MountPath: "/share"}, account},
	}}
	pod.Spec.Containers = []corev1.Container{{
		Name: "pulumi", Image: "theirs", Command: []string{"$(UPDRAFT_ROOT)/agent", "run"}, Env: []corev1.EnvVar{root}, WorkingDir: "/share/work",
		VolumeMounts: []corev1.VolumeMount{{Name: "share", MountPath: "/share"}, {Name: "config", MountPath: "/share/run/config"}, account},
	}}
	change(&pod.Spec)
	return pod
}

func TestPlan(t *testing.T) {
	pod := runPod(func(*corev1.PodSpec) {})
	got, err := planFor(pod, testCommands, "/pod")
	if err != nil {
		t.Fatal(err)
	}
	want := &plan{
		programs: map[string]string{"bootstrap": "/bin/sh", "pulumi": "/pod/share/agent"},
		folders:  map[string]string{"bootstrap": "/pod/share", "pulumi": "/pod/share/work"},
		init:     map[string][]mount{"bootstrap": {{at: ".", volume: "share"}, {at: "creds", volume: "creds"}}},
		main:     []mount{{at: ".", volume: "share"}, {at: "run/config", volume: "config"}},
		root:     "share",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(plan{}, mount{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var names []string
	for _, v := range got.volumes(pod) {
		names = append(names, v.Name)
	}
	if diff := cmp.Diff([]string{"share", "creds", "config"}, names); diff != "" {
		t.Errorf("volumes (-want +got)\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	mountMain := func(name, at string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			c := &spec.Containers[0]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: at})
		}
	}
	command := func(words ...string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.Containers[0].Command = words }
	}
	cases := []struct {
		reason string
		change func(*corev1.PodSpec)
		want   string // of the message; empty if it is run
	}{
		{"A program of the image is not there", command("/bin/pulumi"), "/bin/pulumi of the image theirs"},
		{"An entrypoint is not known", command(), "no command"},
		{"A way out of the share is none", command("$(UPDRAFT_ROOT)/../../bin/sh"), "runs no images"},
		{"The share itself is no program", command("$(UPDRAFT_ROOT)"), "runs no images"},
		{"Nor when it is spelled out", command("/share/"), "runs no images"},
		{"The share may be spelled out", command("/share/agent"), ""},
		{"A variable may name a program", func(spec *corev1.PodSpec) {
			spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "AGENT", Value: "$(UPDRAFT_ROOT)/agent"})
			spec.Containers[0].Command = []string{"$(AGENT)"}
		}, ""},
		{"A user's init container", func(spec *corev1.PodSpec) {
			spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: "setup", Image: "alpine", Command: []string{"sh"}})
		}, "Container setup wants sh of the image alpine"},
		{"A sidecar", func(spec *corev1.PodSpec) { spec.InitContainers[0].RestartPolicy = &always }, "sidecar"},
		{"A restart", func(spec *corev1.PodSpec) { spec.RestartPolicy = corev1.RestartPolicyAlways }, "restartPolicy Always"},
		{"A workingDir elsewhere", func(spec *corev1.PodSpec) { spec.Containers[0].WorkingDir = "/home" }, "workingDir /home"},
		{"A mount elsewhere", mountMain("config", "/etc/config"), "mounts config at /etc/config"},
		{"A mount that only looks as if below", mountMain("config", "/share/../etc"), "mounts config at"},
		{"A mount beside", mountMain("config", "/shared"), "mounts config at /shared"},
		{"A subPath", func(spec *corev1.PodSpec) { spec.Containers[0].VolumeMounts[1].SubPath = "x" }, "subPath"},
		{"A host path", mountMain("host", "/share/host"), "Volume host"},
		{"A Secret as the share", func(spec *corev1.PodSpec) { spec.Containers[0].VolumeMounts[0].Name = "config" }, "only one emptyDir"},
		{"Two volumes at one place", mountMain("creds", "/share/run/config/"), "same place"},
		{"A claim is fine", mountMain("state", "/share/state"), ""},
		{"A mount inside a claim", func(spec *corev1.PodSpec) {
			mountMain("state", "/share/state")(spec)
			mountMain("creds", "/share/state/creds")(spec)
		}, "inside the claim"},
	}
	for _, c := range cases {
		_, err := planFor(runPod(c.change), testCommands, "/pod")
		var why unsupported
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.reason, err)
		case c.want != "" && !errors.As(err, &why):
			t.Errorf("%s: not refused: %v", c.reason, err)
		case c.want != "" && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "run it on a cluster")):
			t.Errorf("%s: message %q", c.reason, err)
		}
	}
}
