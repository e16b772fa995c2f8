package fetch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/gitremote"
	"github.com/updraft-dev/updraft/pkg/run"
)

// none are the credentials of most sources.
var none gitremote.Credentials

const programText = "name: hello\nruntime: yaml\n"

func TestFetch(t *testing.T) {
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "Pulumi.yaml"), "name: local\nruntime: go\n")

	cases := map[string]struct {
		source   run.Source
		revision string
		project  string
		fails    string
	}{
		"A Program is copied beside a writable folder and its generation is the revision": {
			source:   run.Source{Program: &autov1alpha1.ProgramSource{Name: "hello", Generation: 7}},
			revision: "7",
			project:  programText,
		},
		"A Program without a generation has no revision": {
			source:  run.Source{Program: &autov1alpha1.ProgramSource{Name: "hello"}},
			project: programText,
		},
		"ProjectInfo becomes a minimal project": {
			source:  run.Source{ProjectInfo: &autov1alpha1.ProjectInfo{Name: "p", Runtime: "nodejs"}},
			project: "name: p\nruntime: nodejs\n",
		},
		"ProjectInfo without a runtime is refused": {
			source: run.Source{ProjectInfo: &autov1alpha1.ProjectInfo{Name: "p"}},
			fails:  "needs a name and a runtime",
		},
		"A local folder is used where it is": {
			source:  run.Source{Local: &autov1alpha1.LocalSource{Dir: elsewhere}},
			project: "name: local\nruntime: go\n",
		},
		"A local folder without a name is refused": {
			source: run.Source{Local: &autov1alpha1.LocalSource{}},
			fails:  "names no dir",
		},
		"Flux is refused with a reason": {
			source: run.Source{Flux: &autov1alpha1.FluxSource{URL: "http://flux.example/a.tgz"}},
			fails:  "flux sources are not served yet",
		},
		"Two sources are refused and named": {
			source: run.Source{Local: &autov1alpha1.LocalSource{Dir: "/x"}, Git: &autov1alpha1.GitSource{}},
			fails:  "more than one source is set: local, git",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := share(t)
			// Twice, since an init container may be started again.
			for range 2 {
				revision, err := Fetch(t.Context(), root, c.source, none)
				if c.fails != "" {
					if err == nil || !strings.Contains(err.Error(), c.fails) {
						t.Fatalf("Fetch() error = %v, want one that says %q", err, c.fails)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if revision != c.revision {
					t.Errorf("revision = %q, want %q", revision, c.revision)
				}
				if got := read(t, filepath.Join(root, run.WorkspaceLink, "Pulumi.yaml")); got != c.project {
					t.Errorf("Pulumi.yaml = %q, want %q", got, c.project)
				}
			}
		})
	}
}

func TestAStackConfigOfAnEarlierRunIsGone(t *testing.T) {
	root := share(t)
	source := run.Source{Program: &autov1alpha1.ProgramSource{Name: "hello"}}
	left := filepath.Join(root, run.WorkspaceLink, "Pulumi.dev.yaml")
	for range 2 {
		if _, err := Fetch(t.Context(), root, source, none); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(left); !os.IsNotExist(err) {
			t.Fatalf("the folder holds %s of an earlier run (%v)", left, err)
		}
		write(t, left, "config: {}\n")
	}
}

func TestNoSourceTouchesNothing(t *testing.T) {
	root := share(t)
	write(t, filepath.Join(root, run.WorkspaceLink, "Pulumi.yaml"), "name: mine\n")
	if _, err := Fetch(t.Context(), root, run.Source{}, none); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(root, run.WorkspaceLink, "Pulumi.yaml")); got != "name: mine\n" {
		t.Errorf("the user's workspace was changed to %q", got)
	}
}

func TestSomebodysWorkspaceIsNotReplaced(t *testing.T) {
	root := share(t)
	write(t, filepath.Join(root, run.WorkspaceLink, "Pulumi.yaml"), "name: mine\n")
	_, err := Fetch(t.Context(), root, run.Source{Program: &autov1alpha1.ProgramSource{Name: "hello"}}, none)
	if err == nil || !strings.Contains(err.Error(), "is no link") {
		t.Errorf("Fetch() error = %v, want that the workspace is no link", err)
	}
}

// share makes a share as it is after the ConfigMap was mounted.
func share(t *testing.T) string {
	root := t.TempDir()
	write(t, filepath.Join(root, run.SpecFolder, run.ProgramFile), programText)
	return root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
