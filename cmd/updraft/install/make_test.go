package install_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Whoever forgot the registry is told before a build and a preflight, not after.
func TestMakeAsksForTheRegistryFirst(t *testing.T) {
	for _, target := range []string{"install", "release"} {
		command := exec.CommandContext(t.Context(), "make", "--no-print-directory", target)
		command.Dir = "../../.."
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "KO_DOCKER_REPO=") && !strings.HasPrefix(v, "MAKE") && !strings.HasPrefix(v, "KUBECONFIG=") {
				command.Env = append(command.Env, v)
			}
		}
		out, err := command.CombinedOutput()
		if first, _, _ := strings.Cut(string(out), "\n"); err == nil || !strings.HasPrefix(first, "Set KO_DOCKER_REPO") {
			t.Errorf("make %s says first %q, and ends with %v", target, first, err)
		}
	}
}
