package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestDecisionsReadNoClock holds that the clock is passed in: a decision that
// reads it cannot be tested by moving it.
func TestDecisionsReadNoClock(t *testing.T) {
	reads := map[string]bool{"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "NewTimer": true, "NewTicker": true}
	for _, root := range []string{"pkg/stack", "pkg/run", "pkg/event", "pkg/request", "pkg/apis", "pkg/measure", "pkg/record", "functions"} {
		err := filepath.WalkDir(filepath.Join("..", "..", root), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && reads[s.Sel.Name] {
						t.Errorf("%s uses time.%s: the clock is passed in", path, s.Sel.Name)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
