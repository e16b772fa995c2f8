// Package planetest gives a test a control plane of its own: the real programs, in the test's own folder, gone when the test ends.
package planetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/updraft-dev/updraft/pkg/local/controlplane"
)

// Start starts a control plane that serves the CRDs in the given files and folders beside the usual ones. It takes some seconds, so
// a package's tests had better share one.
func Start(tb testing.TB, crds ...string) *controlplane.Plane {
	tb.Helper()
	dir := tb.TempDir()
	plane, err := controlplane.Start(tb.Context(), controlplane.Options{Bin: Bin(tb), Dir: dir, CRDs: crds, Log: Log(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return plane
}

// Bin is the folder of the programs: UPDRAFT_BIN, or .bin beside the go.mod above the test. A test without them fails: skipped, it
// would look as if it had passed.
func Bin(tb testing.TB) string {
	tb.Helper()
	bin := os.Getenv("UPDRAFT_BIN")
	if bin == "" {
		bin = filepath.Join(root(tb), ".bin")
	}
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			tb.Fatalf("no program %s in %s: run make tools", program, bin)
		}
	}
	return bin
}

func root(tb testing.TB) string {
	tb.Helper()
	start, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatalf("no go.mod above %s", start)
		}
	}
}
