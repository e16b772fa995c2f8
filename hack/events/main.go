// Command events writes what other systems need to know of Updraft's events, from
// the Go types of their data: a JSON Schema each in docs/events, docs/events.md with
// an example of each, and the EventTypes of config/410-eventtypes.yaml.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "events:", err)
		os.Exit(1)
	}
}

// write writes all files of the tree in whose root it is called.
func write() error {
	files, err := generate()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// folder is that of the schemas, which holds nothing else.
const folder = "docs/events"

// generate gives the content of each file by its path in the tree, in whose root
// it is called.
func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	reflector, err := newReflector()
	if err != nil {
		return nil, err
	}
	for _, k := range catalogue {
		schema, err := k.schema(reflector)
		if err != nil {
			return nil, err
		}
		files[filepath.Join(folder, k.eventType+".json")] = schema
	}
	page, err := page(reflector)
	if err != nil {
		return nil, err
	}
	files["docs/events.md"] = page
	types, err := eventTypes()
	if err != nil {
		return nil, err
	}
	files["config/410-eventtypes.yaml"] = types
	return files, nil
}
