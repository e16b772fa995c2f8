//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// TestTheSampleGit follows a branch of a git server that is in the cluster, as pods
// can reach it: the source function polls it, and the run fetches from it.
func TestTheSampleGit(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.outside()
	program := read(t, "samples/git/Pulumi.yaml")
	first := s.commit("infra/Pulumi.yaml", program)
	s.apply(strings.Replace(read(t, "samples/git/stack.yaml.in"), "REPOSITORY", outsideURL(s.namespace)+"/repository.git", 1))
	s.awaitCommit("git", first, `"Hello, git!"`)
	second := s.commit("infra/Pulumi.yaml", strings.Replace(program, "Hello", "Good morning", 1))
	s.awaitCommit("git", second, `"Good morning, git!"`)
	s.kubectl("delete", "stack", "git", "--wait=false")
	s.awaitGone("git")
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(cluster.root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// commit changes a file of the git server's repository, and gives the commit.
func (s *space) commit(path, content string) string {
	s.Helper()
	return strings.TrimSpace(string(s.askOutside("commit/"+path, []byte(content))))
}

// awaitCommit waits until a Stack is Ready at a commit, with this output.
func (s *space) awaitCommit(name, commit, message string) {
	s.Helper()
	s.await(patience, name, "is Ready at "+commit, func(stack *pulumiv1.Stack) bool {
		last := stack.Status.LastUpdate
		return isReady(stack) && last != nil && last.LastSuccessfulCommit == commit && string(stack.Status.Outputs["message"].Raw) == message
	})
}
