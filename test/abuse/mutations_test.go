package abuse

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/updraft-dev/updraft/test/abuse/mutations"
)

// TestMutationsApply holds that the deliberate faults do not rot: each still fits the code, and names scenarios that there are. That the
// harness finds them takes longer: make mutations.
func TestMutationsApply(t *testing.T) {
	all, err := mutations.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			check := exec.Command("git", "apply", "--check", "-")
			check.Dir, check.Stdin = filepath.Join("..", ".."), bytes.NewReader(m.Patch)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("it no longer applies: %v\n%s", err, out)
			}
			for _, c := range m.CaughtBy {
				if parts := strings.Split(c.Test, "/"); parts[0] != "TestAbuse" || len(parts) > 1 && !known(parts[1]) {
					t.Errorf("there is no test %s", c.Test)
				}
			}
		})
	}
}

func known(name string) bool {
	return slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name })
}
