package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// newReflector makes schemas whose descriptions are the comments of pkg/event.
// They allow for fields that they do not know: a later version may have more.
func newReflector() (*jsonschema.Reflector, error) {
	r := &jsonschema.Reflector{ExpandedStruct: true, DoNotReference: true, Anonymous: true, AllowAdditionalProperties: true}
	if err := r.AddGoComments("github.com/updraft-dev/updraft", "./pkg/event", jsonschema.WithFullComment()); err != nil {
		return nil, fmt.Errorf("cannot read the comments of pkg/event: %w", err)
	}
	for key, comment := range r.CommentMap {
		r.CommentMap[key] = strings.Join(strings.Fields(comment), " ")
	}
	return r, nil
}

func (k kind) reflect(r *jsonschema.Reflector) *jsonschema.Schema {
	schema := r.ReflectFromType(reflect.TypeOf(k.example))
	schema.Title, schema.Description = k.eventType, k.says+"."
	return schema
}

func (k kind) schema(r *jsonschema.Reflector) ([]byte, error) {
	return indented(k.reflect(r))
}

func indented(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return b.Bytes(), err
}
