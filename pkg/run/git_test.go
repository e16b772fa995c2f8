package run

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

func TestIsCommit(t *testing.T) {
	for ref, want := range map[string]bool{
		strings.Repeat("a1", 20): true, strings.Repeat("A1", 20): true, strings.Repeat("a1", 19): false,
		strings.Repeat("a1", 20) + "0": false, strings.Repeat("g1", 20): false, "main": false, "": false,
		"refs/heads/" + strings.Repeat("a1", 20): false,
	} {
		if got := IsCommit(ref); got != want {
			t.Errorf("IsCommit(%q) = %v", ref, got)
		}
	}
}

// Of a run's pod only the container bootstrap has the credentials of its source,
// and those by reference.
func TestOnlyBootstrapHasTheCredentials(t *testing.T) {
	key := func(name string) *corev1.SecretKeySelector {
		return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "git"}, Key: name}
	}
	update := &autov1alpha1.Update{}
	update.Name, update.Namespace = "app-1", "team"
	ws := &autov1alpha1.Workspace{Spec: autov1alpha1.WorkspaceSpec{Git: &autov1alpha1.GitSource{
		URL: "https://git.example/app", Ref: "main", Auth: &autov1alpha1.GitAuth{Token: key("token"), Username: key("name"), Password: key("word")},
	}}}
	job, err := Job(update, ws, Settings{AgentImage: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, c := range append(job.Spec.Template.Spec.InitContainers, job.Spec.Template.Spec.Containers...) {
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				found[c.Name+" "+e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
			}
		}
	}
	want := map[string]string{"bootstrap " + EnvGitToken: "git/token", "bootstrap " + EnvGitUsername: "git/name", "bootstrap " + EnvGitPassword: "git/word"}
	if len(found) != len(want) {
		t.Errorf("credentials are in %v", found)
	}
	for where, from := range want {
		if found[where] != from {
			t.Errorf("%s is from %q, want %q", where, found[where], from)
		}
	}
}
