// Package architecture holds the rules of the house: who may import whom, and
// why; and that each package says what it promises.
package architecture

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/updraft-dev/updraft/"

// ban says that packages below From may not import, directly or through others,
// packages below any of Imports, but those of Except.
type ban struct {
	From    []string
	Imports []string
	Except  []string
	Direct  bool
	Why     string
}

var bans = []ban{
	{
		From:    []string{"pkg/stack", "pkg/run", "pkg/event", "pkg/request", "pkg/apis"},
		Imports: []string{"k8s.io/client-go", module + "pkg/client", module + "pkg/record"},
		Why:     "they decide purely: no client, so that tables and simulations can hold them",
	},
	{
		From:    []string{"pkg/stack", "pkg/run", "pkg/event", "pkg/request", "pkg/measure", "pkg/apis"},
		Imports: []string{"net/http", "os", "log", "log/slog", "context"},
		Direct:  true,
		Why:     "they decide purely: no I/O, no environment, nothing to wait for",
	},
	{
		From:    []string{"functions/stack"},
		Imports: []string{module + "functions/"},
		Except:  []string{module + "functions/stack"},
		Why:     "functions meet only through objects and events",
	},
	{
		From:    []string{"functions/update"},
		Imports: []string{module + "functions/"},
		Except:  []string{module + "functions/update"},
		Why:     "functions meet only through objects and events",
	},
	{
		From:    []string{"functions/status"},
		Imports: []string{module + "functions/"},
		Except:  []string{module + "functions/status"},
		Why:     "functions meet only through objects and events",
	},
	{
		From:    []string{"functions/source"},
		Imports: []string{module + "functions/"},
		Except:  []string{module + "functions/source"},
		Why:     "functions meet only through objects and events",
	},
	{
		From:    []string{"functions/sweep"},
		Imports: []string{module + "functions/"},
		Except:  []string{module + "functions/sweep"},
		Why:     "functions meet only through objects and events",
	},
	{
		From:    []string{"functions/gateway"},
		Imports: []string{module + "functions/"},
		Except:  []string{module + "functions/gateway"},
		Why:     "functions meet only through objects and events",
	},
	{
		From:    []string{"sources/webhook"},
		Imports: []string{"k8s.io/client-go", module + "functions", module + "pkg/record", module + "pkg/client"},
		Why:     "a webhook that is forged can do no more than send an event: it has no client of the API server",
	},
	{
		From:    []string{"pkg"},
		Imports: []string{module + "functions", module + "cmd", module + "sources"},
		Why:     "imports point one way: cmd, then functions and sources, then pkg",
	},
	{
		From:    []string{"functions", "sources"},
		Imports: []string{module + "cmd"},
		Why:     "imports point one way: cmd, then functions and sources, then pkg",
	},
	{
		From:    []string{"cmd/stack", "cmd/update", "cmd/status", "cmd/source", "cmd/sweep", "cmd/gateway", "functions", "sources/webhook"},
		Imports: []string{"github.com/pulumi", "knative.dev", "sigs.k8s.io/controller-runtime", module + "pkg/local", module + "pkg/agent", module + "pkg/fetch", "k8s.io/client-go/informers", "k8s.io/client-go/kubernetes/typed/apps"},
		Why:     "a function's binary links only what it needs: cold start is a feature",
	},
	{
		From:    []string{"cmd/stack", "cmd/update", "cmd/status", "cmd/sweep", "cmd/gateway", "functions/stack", "functions/update", "functions/status", "functions/sweep", "functions/gateway", "pkg/record"},
		Imports: []string{module + "pkg/gitremote", "github.com/go-git"},
		Why:     "only the source function and the agent speak to git repositories",
	},
	{
		From:    []string{"pkg/observe"},
		Imports: []string{"k8s.io/client-go", "knative.dev", "github.com/prometheus", "go.opentelemetry.io/contrib", module + "pkg/record", module + "pkg/transport"},
		Why:     "each function and the agent link it: Knative's own set-up of the same keys costs 2 MB more, and see docs/decisions/0015",
	},
	{
		From:    []string{"cmd/agent", "pkg/agent", "pkg/fetch", "pkg/gitremote"},
		Imports: []string{"k8s.io/client-go", "knative.dev", "sigs.k8s.io/controller-runtime"},
		Why:     "a run has no right on the API server, so its agent has no client of it",
	},
	{
		From:    []string{"functions", "pkg/stack", "pkg/run", "pkg/event", "pkg/request", "pkg/apis", "pkg/record", "pkg/transport"},
		Imports: []string{"github.com/kelseyhightower/envconfig", "os/exec"},
		Direct:  true,
		Why:     "the environment is read in mains, and processes are started only in pkg/agent and pkg/local",
	},
}

type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

func TestImportsPointOneWay(t *testing.T) {
	packages := list(t)
	for _, b := range bans {
		matched := false
		for _, p := range packages {
			if !below(strings.TrimPrefix(p.ImportPath, module), b.From) {
				continue
			}
			matched = true
			imports := p.Deps
			if b.Direct {
				imports = p.Imports
			}
			for _, i := range imports {
				if below(i, b.Imports) && !below(i, b.Except) {
					t.Errorf("%s imports %s, but %s", p.ImportPath, i, b.Why)
				}
			}
		}
		if !matched {
			t.Errorf("no package is below %v: the ban guards nothing", b.From)
		}
	}
}

func TestEveryPackageSaysWhatItPromises(t *testing.T) {
	for _, p := range list(t) {
		if strings.Contains(p.ImportPath, "/pkg/client/") || len(p.GoFiles) == 0 {
			continue // generated, or tests only
		}
		said := 0
		for _, file := range p.GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if parsed.Doc != nil {
				said++
			}
		}
		if said != 1 {
			t.Errorf("%s has %d package comments, want 1", p.ImportPath, said)
		}
	}
}

func below(path string, roots []string) bool {
	for _, root := range roots {
		root = strings.TrimSuffix(root, "/")
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

func list(t *testing.T) []goPackage {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps", "./...")
	command.Dir, command.Stderr = filepath.Join("..", ".."), os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var packages []goPackage
	decoder := json.NewDecoder(out)
	for {
		var p goPackage
		if err := decoder.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	return packages
}
