package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/updraft-dev/updraft/test/schemas"
)

func TestWhatIsGeneratedIsUpToDate(t *testing.T) {
	t.Chdir("../..")
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%v: run make generate", err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not what the types give, run make generate:\n%s", name, diff)
		}
	}
	there, err := filepath.Glob("docs/events/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range there {
		if files[name] == nil {
			t.Errorf("%s is of no type of event", name)
		}
	}
}

func TestEachExampleIsOfItsSchema(t *testing.T) {
	all, err := schemas.Load("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range catalogue {
		e, err := k.event()
		if err != nil {
			t.Fatal(err)
		}
		if err := all.Check(e); err != nil {
			t.Error(err)
		}
		// And the schema refuses what is not: a field that nobody said may be told.
		if err := e.SetData("application/json", map[string]string{"message": "error: hunter2"}); err != nil {
			t.Fatal(err)
		}
		if err := all.Check(e); err == nil {
			t.Errorf("%s may have a message", k.eventType)
		}
	}
}

// reports are the types of runs that only the status function reads.
var reports = []string{"TypeRunTaken", "TypeRunRunning"}

func TestEachTypeIsInTheCatalogue(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../pkg/event/types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	types := 0
	for name := range file.Scope.Objects {
		told := strings.HasPrefix(name, "TypeStack") || strings.HasPrefix(name, "TypeRun") || name == "TypePush"
		if told && !slices.Contains(reports, name) {
			types++
		}
	}
	if types != len(catalogue) {
		t.Errorf("pkg/event has %d types that are told, and the catalogue %d", types, len(catalogue))
	}
}
