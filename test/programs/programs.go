// Package programs finds, for suites that share one embedded mode, the programs
// that it runs, before there is a test to fail.
package programs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// OfOthers are the programs of others that the embedded mode runs.
var OfOthers = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "pulumi", "pulumi-language-yaml"}

// Find finds the repository and its programs of others, and some more of them: in
// UPDRAFT_BIN, or .bin. One that is missing is an error, since a suite that is skipped looks as if it had
// passed.
func Find(more ...string) (root, bin string, err error) {
	if root, err = repository(); err != nil {
		return "", "", err
	}
	if bin = os.Getenv("UPDRAFT_BIN"); bin == "" {
		bin = filepath.Join(root, ".bin")
	}
	for _, program := range slices.Concat(OfOthers, more) {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			return "", "", fmt.Errorf("no program %s in %s: run make tools", program, bin)
		}
	}
	return root, bin, nil
}

// repository is the folder of the go.mod above the test.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the tests")
		}
	}
}

// BuildAgent builds the agent into a file, so that it is never an old one.
func BuildAgent(root, file string) error {
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", file, "./cmd/agent")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the agent: %w\n%s", err, out)
	}
	return nil
}
