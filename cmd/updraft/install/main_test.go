package install_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/updraft-dev/updraft/pkg/local/controlplane/planetest"
)

func root() string { return filepath.Join("..", "..", "..") }

// kustomize is config/ with its labels, as one file.
func kustomize(t *testing.T) []byte {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(planetest.Bin(t), "kubectl"), "kustomize", filepath.Join(root(), "config"))
	out, err := command.Output()
	if err != nil {
		t.Fatalf("cannot put the manifests together: %v", err)
	}
	return out
}
