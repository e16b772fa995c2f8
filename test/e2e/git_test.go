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
	s.gitServer()
	program := read(t, "samples/git/Pulumi.yaml")
	first := s.commit("infra/Pulumi.yaml", program)
	s.apply(strings.Replace(read(t, "samples/git/stack.yaml.in"), "REPOSITORY", "http://git."+s.namespace+".svc/repository.git", 1))
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

// gitServer brings test/e2e/gitserver up.
func (s *space) gitServer() {
	s.Helper()
	image := os.Getenv("GIT_IMAGE")
	if image == "" {
		s.Fatal("GIT_IMAGE is not set: run make e2e, which builds it")
	}
	s.apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: git}
spec:
  selector: {matchLabels: {app: git}}
  template:
    metadata: {labels: {app: git}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: git
        image: ` + image + `
        ports: [{containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: 8080}}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Service
metadata: {name: git}
spec:
  selector: {app: git}
  ports: [{port: 80, targetPort: 8080}]
`)
	s.kubectl("rollout", "status", "deployment/git", "--timeout="+patience.String())
}

// commit changes a file of the git server's repository, and gives the commit.
func (s *space) commit(path, content string) string {
	s.Helper()
	out, err := cluster.clients.Core.RESTClient().Post().Namespace(s.namespace).Resource("services").Name("git:80").
		SubResource("proxy").Suffix("commit", path).Body([]byte(content)).DoRaw(s.Context())
	if err != nil {
		s.Fatalf("cannot commit: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// awaitCommit waits until a Stack is Ready at a commit, with this output.
func (s *space) awaitCommit(name, commit, message string) {
	s.Helper()
	s.await(patience, name, "is Ready at "+commit, func(stack *pulumiv1.Stack) bool {
		last := stack.Status.LastUpdate
		return isReady(stack) && last != nil && last.LastSuccessfulCommit == commit && string(stack.Status.Outputs["message"].Raw) == message
	})
}
