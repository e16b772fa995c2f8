package gateway

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/updraft-dev/updraft/pkg/request"
)

func TestEachProblemHasItsRowInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/events-in.md")
	if err != nil {
		t.Fatal(err)
	}
	for why, status := range statuses {
		if row := fmt.Sprintf("| %d | %#q |", status, string(why)); !strings.Contains(string(page), row) {
			t.Errorf("docs/events-in.md has no row %s", row)
		}
	}
	if rows := strings.Count(string(page), "\n| 4") + strings.Count(string(page), "\n| 5"); rows != len(statuses) {
		t.Errorf("docs/events-in.md has %d rows for %d problems", rows, len(statuses))
	}
	for _, operation := range request.Operations {
		if !strings.Contains(string(page), "| `dev.updraft.request."+string(operation)+"` |") {
			t.Errorf("docs/events-in.md does not tell of %s", operation)
		}
	}
}

func TestWhatMayBeWellLaterIsSaidFirst(t *testing.T) {
	bad := result{problem: request.Problemf(request.NotFound, "a")}
	later := result{problem: request.Problemf(request.Unavailable, "b")}
	for name, c := range map[string]struct {
		results []result
		want    string
	}{
		"none":         {[]result{{}}, ""},
		"the first":    {[]result{{}, bad, {problem: request.Problemf(request.Conflict, "c")}}, "a"},
		"503":          {[]result{bad, later, bad}, "b"},
		"503 at first": {[]result{later, bad}, "b"},
	} {
		got := ""
		if p := (response{results: c.results}).worst(); p != nil {
			got = p.Detail
		}
		if got != c.want {
			t.Errorf("%s: it is answered with %q", name, got)
		}
	}
}
