// Package schemas holds what is really sent to the schemas of docs/events: for
// tests, which take a field that no schema knows as a fault, since that is how
// something that is nobody's business would come to be told.
package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/updraft-dev/updraft/pkg/event"
)

// Schemas are those of docs/events by the type of event.
type Schemas map[string]*jsonschema.Schema

// Load reads the schemas of the repository at root.
func Load(root string) (Schemas, error) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "events", "*.json"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, errors.New("docs/events has no schemas: run make generate"))
	}
	schemas := Schemas{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		eventType := strings.TrimSuffix(filepath.Base(file), ".json")
		if schemas[eventType], err = compile(eventType, text); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return schemas, nil
}

func compile(name string, text []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	object, ok := document.(map[string]any)
	if !ok {
		return nil, errors.New("it is no object")
	}
	object["additionalProperties"] = false
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(name, object); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

// Check says what is wrong with an event that is sent to the Broker. What is no
// event of Updraft's own, or only for itself, is not looked at.
func (s Schemas) Check(e cloudevents.Event) error {
	if !strings.HasPrefix(e.Type(), "dev.updraft.stack.") && !strings.HasPrefix(e.Type(), "dev.updraft.run.") && e.Type() != event.TypePush {
		return nil
	}
	schema, ok := s[e.Type()]
	if !ok {
		return fmt.Errorf("docs/events has no schema of %s", e.Type())
	}
	problems := []error{e.Validate(), envelope(e)}
	if data, err := jsonschema.UnmarshalJSON(bytes.NewReader(e.Data())); err != nil {
		problems = append(problems, fmt.Errorf("its data is no JSON: %w", err))
	} else {
		problems = append(problems, schema.Validate(data))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("event %s of type %s: %w", e.ID(), e.Type(), err)
	}
	return nil
}

// envelope looks at what the schema of the data does not hold.
func envelope(e cloudevents.Event) error {
	about, err := event.About(e)
	if err != nil {
		return err
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(e.Type(), "dev.updraft."), ".")
	want := map[string]string{"stack": event.KindStack, "run": event.KindUpdate, "push": event.KindPush}[kind]
	switch {
	case about.Kind != want:
		return fmt.Errorf("it is about a %s, not about a %s", about.Kind, want)
	case e.Subject() != strings.ToLower(about.Kind)+"/"+about.Namespace+"/"+about.Name:
		return fmt.Errorf("its subject is %s", e.Subject())
	case e.DataContentType() != cloudevents.ApplicationJSON:
		return fmt.Errorf("its data is %s", e.DataContentType())
	case !strings.HasPrefix(e.Source(), "/updraft/"):
		return fmt.Errorf("its source is %s", e.Source())
	case len(strings.Split(e.ID(), "/")) < 2:
		return errors.New("its id does not say of what state of what it is")
	}
	return nil
}
