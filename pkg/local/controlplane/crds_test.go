package controlplane

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the files in crds/ anew")

// TestKnativeCRDsAreDerived holds the files in crds/ to what the module that we build against says.
func TestKnativeCRDsAreDerived(t *testing.T) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", "knative.dev/eventing").Output()
	if err != nil {
		t.Fatalf("cannot find the module: %v", err)
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(string(module)), " ")
	const source = "config/core/resources/pingsource.yaml"
	original, err := os.ReadFile(filepath.Join(dir, source))
	if err != nil {
		t.Fatal(err)
	}
	want, err := derive(original, "knative.dev/eventing "+version+", "+source)
	if err != nil {
		t.Fatal(err)
	}
	const file = "crds/pingsource.yaml"
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the module gives; run with -update (-want +got):\n%s", file, diff)
	}
}

// derive keeps the licence, the storage version and no conversion: that needs a webhook.
func derive(original []byte, from string) ([]byte, error) {
	licence, _, _ := strings.Cut(string(original), "\n\n")
	var crd map[string]any
	if err := yaml.Unmarshal(original, &crd); err != nil {
		return nil, err
	}
	spec := crd["spec"].(map[string]any)
	delete(spec, "conversion")
	var stored []any
	for _, version := range spec["versions"].([]any) {
		if version.(map[string]any)["storage"] == true {
			stored = append(stored, version)
		}
	}
	spec["versions"] = stored
	body, err := yaml.Marshal(crd)
	if err != nil {
		return nil, err
	}
	return []byte(licence + "\n#\n# Changed: derived from " + from + ": only the stored version, and no conversion webhook.\n\n" + string(body)), nil
}

func TestKnativeCRDs(t *testing.T) {
	crds, err := KnativeCRDs()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			got = append(got, crd.Name+"/"+version.Name)
		}
		if crd.Spec.Conversion != nil {
			t.Errorf("%s asks for a conversion webhook", crd.Name)
		}
	}
	if diff := cmp.Diff([]string{"pingsources.sources.knative.dev/v1"}, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}
