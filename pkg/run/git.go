package run

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

// Environment variables with the credentials of a git source. Only the container
// bootstrap has them.
const (
	EnvGitToken    = "UPDRAFT_GIT_TOKEN"
	EnvGitUsername = "UPDRAFT_GIT_USERNAME"
	EnvGitPassword = "UPDRAFT_GIT_PASSWORD"
)

var commitHash = regexp.MustCompile(`^[0-9a-fA-F]{40}$`)

// IsCommit says whether a git ref is the hash of a commit, and so what it names
// never changes.
func IsCommit(ref string) bool { return commitHash.MatchString(ref) }

// gitEnvironment is how the container bootstrap gets the credentials of a git
// source: by reference, so that they stand in no object but their Secret.
func gitEnvironment(git *autov1alpha1.GitSource) []corev1.EnvVar {
	if git == nil || git.Auth == nil {
		return nil
	}
	var env []corev1.EnvVar
	for _, v := range []struct {
		name string
		from *corev1.SecretKeySelector
	}{
		{EnvGitToken, git.Auth.Token},
		{EnvGitUsername, git.Auth.Username},
		{EnvGitPassword, git.Auth.Password},
	} {
		if v.from != nil {
			env = append(env, corev1.EnvVar{Name: v.name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: v.from.DeepCopy()}})
		}
	}
	return env
}
