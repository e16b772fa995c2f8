package tested

import (
	"os"
	"strings"
	"testing"
)

// What is built and what is said may not differ.
func TestTheVersionsAreThoseThatAreBuilt(t *testing.T) {
	for file, lines := range map[string][]string{
		"../../../Makefile": {"\nK8S_VERSION := v" + Kubernetes + ".", "\nPULUMI_VERSION := " + Pulumi + "\n"},
		"../../../go.mod":   {"\tgithub.com/pulumi/pulumi/sdk/v3 v" + Pulumi + "\n"},
		// Knative's release 1.22 is 0.49 of its modules.
		"../../../tools/knative/go.mod": {"\tknative.dev/eventing v0.49.", "\tknative.dev/serving v0.49."},
		"../../../docs/install.md":      {"Kubernetes " + Kubernetes + ", Knative Serving 0.49.0", "(" + Knative + ")"},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if !strings.Contains(string(text), line) {
				t.Errorf("%s has no %q", file, line)
			}
		}
	}
}
