package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

func all(t *testing.T) []reason {
	t.Helper()
	reasons, err := read(filepath.Join(root, "pkg", "apis"))
	if err != nil {
		t.Fatal(err)
	}
	if len(reasons) < 30 {
		t.Fatalf("only %d reasons are found", len(reasons))
	}
	return reasons
}

func TestEachReasonHasAPageAndEachPageAReason(t *testing.T) {
	wanted := map[string]bool{"README.md": true}
	for _, r := range all(t) {
		if wanted[r.page()] {
			t.Errorf("%s: another reason has the page %s", r.constant, r.page())
		}
		wanted[r.page()] = true
		content, err := os.ReadFile(filepath.Join(root, "docs", "runbook", r.page()))
		if err != nil {
			t.Errorf("%s has no page: write docs/runbook/%s", r.constant, r.page())
			continue
		}
		if heading, _, _ := strings.Cut(string(content), "\n"); heading != "# "+r.title() {
			t.Errorf("%s begins with %q, not with %q", r.page(), heading, "# "+r.title())
		}
		for _, part := range []string{"\n**Cause.** ", "\n**Effect.** ", "\n**What to do.** ", "\n**See it.**", "\nkubectl "} {
			if strings.Count(string(content), part) < 1 {
				t.Errorf("%s lacks the part %q", r.page(), strings.TrimSpace(part))
			}
		}
	}
	files, err := os.ReadDir(filepath.Join(root, "docs", "runbook"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !wanted[f.Name()] {
			t.Errorf("docs/runbook/%s is the page of no reason", f.Name())
		}
	}
}

func TestTheTableIsGenerated(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "docs", "runbook", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(content) != table(all(t)) {
		t.Error("docs/runbook/README.md is not what the generator gives: run make generate")
	}
}

func TestLinksLeadToPages(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "runbook", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, rest := range strings.Split(string(content), "](")[1:] {
			link, _, _ := strings.Cut(rest, ")")
			if strings.Contains(link, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link)); err != nil {
				t.Errorf("%s links to %s, which does not exist", filepath.Base(page), link)
			}
		}
	}
}

func TestAReasonThatSaysTooLittleIsAnError(t *testing.T) {
	for why, source := range map[string]string{
		"no condition":   "// FooReason is a reason.\ntype FooReason string\nconst (\n// Foo: it is so.\nFoo FooReason = \"Foo\"\n)",
		"no comment":     "// FooReason is the reason of a Stack's condition Ready.\ntype FooReason string\nconst Foo FooReason = \"Foo\"",
		"no literal":     "// FooReason is the reason of a Stack's condition Ready.\ntype FooReason string\nconst (\n// Foo: it is so.\nFoo FooReason = bar\n)",
		"another's name": "// FooReason is the reason of a Stack's condition Ready.\ntype FooReason string\nconst (\n// Bar: it is so.\nFoo FooReason = \"Foo\"\n)",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "reasons.go", "package p\n"+source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := reasonsOf(file); err == nil {
			t.Errorf("%s: %v is taken", why, found)
		}
	}
}
