// Command runbook writes docs/runbook/README.md: a table of all reasons of
// conditions, from the comments of their constants in pkg/apis, each with a link
// to its page. The pages are written by hand; a test holds that there is one for
// each reason and none besides.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "runbook:", err)
		os.Exit(1)
	}
}

// write writes the table of the tree at root.
func write(root string) error {
	reasons, err := read(filepath.Join(root, "pkg", "apis"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "runbook", "README.md"), []byte(table(reasons)), 0o644)
}
