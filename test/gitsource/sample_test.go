package gitsource

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/updraft-dev/updraft/pkg/stack"
)

// The sample as its comments say, but that the poll is not waited for.
func TestTheSample(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	dir := t.TempDir()
	s.command(filepath.Join(lab.root, "samples/git/make-repository.sh"), dir)
	repository := filepath.Join(dir, "repository")
	head := func() string { return s.command("git", "-C", repository, "rev-parse", "HEAD") }

	s.command(filepath.Join(lab.bin, "kubectl"), "--kubeconfig", lab.env.Kubeconfig, "--namespace", s.namespace, "apply", "-f", filepath.Join(dir, "stack.yaml"))
	s.ranAt("git", head(), "Hello, git!")

	s.command("sed", "-i", "s/Hello/Good morning/", filepath.Join(repository, "infra/Pulumi.yaml"))
	s.command("git", "-C", repository, "commit", "--quiet", "--all", "--message", "Another greeting")
	s.poll("git")
	s.ranAt("git", head(), "Good morning, git!")

	poll, _ := stack.PollOf(s.get("git"))
	s.remove("git")
	s.gone(poll.Name())
}

// command runs a program and gives what it printed.
func (s *space) command(program string, args ...string) string {
	s.Helper()
	command := exec.Command(program, args...)
	command.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := command.CombinedOutput()
	if err != nil {
		s.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
