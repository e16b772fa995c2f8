package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

// setting is one configuration value, found and checked.
type setting struct {
	// key, with its namespace.
	key string
	// path says that the key is a path into a structure.
	path bool
	// secret says that the value is to be encrypted.
	secret bool
	// text is the value if it is a string.
	text string
	// structured is the value as JSON if it is none.
	structured json.RawMessage
}

// places are where values of configuration are found.
type places struct {
	// root that a relative path is below.
	root string
	// lookup finds an environment variable.
	lookup func(key string) (string, bool)
	// readFile reads a file.
	readFile func(path string) ([]byte, error)
}

// settings finds the value of each item. Its errors name a key and a place,
// never a value.
func (p places) settings(project string, items []autov1alpha1.ConfigItem) ([]setting, error) {
	found := make([]setting, 0, len(items))
	for _, item := range items {
		s, err := p.setting(project, item)
		if err != nil {
			return nil, faultf(autov1alpha1.ReasonWorkspaceFailed, "The configuration value %s cannot be set: %v", item.Key, err)
		}
		found = append(found, s)
	}
	return found, nil
}

func (p places) setting(project string, item autov1alpha1.ConfigItem) (setting, error) {
	s := setting{path: isTrue(item.Path), secret: isTrue(item.Secret)}
	if item.Key == "" {
		return s, errors.New("its key is empty")
	}
	s.key = namespaced(project, item.Key, s.path)
	raw, isJSON, err := p.value(item)
	if err != nil {
		return s, err
	}
	if !isJSON {
		s.text = string(raw)
		return s, nil
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err == nil && text != nil {
		s.text = *text
		return s, nil
	}
	s.structured, err = compact(raw)
	if err != nil {
		return s, err
	}
	if s.path {
		return s, errors.New("its key is a path, which takes only a string")
	}
	return s, nil
}

// value finds the bytes of an item's value, and whether they are JSON.
func (p places) value(item autov1alpha1.ConfigItem) (raw []byte, isJSON bool, err error) {
	from := item.ValueFrom
	switch {
	case item.Value != nil && from != nil:
		return nil, false, errors.New("it has both value and valueFrom")
	case item.Value != nil:
		return item.Value.Raw, true, nil
	case from == nil:
		return nil, false, errors.New("it has neither value nor valueFrom")
	case from.Env != "" && from.Path != "":
		return nil, false, errors.New("its valueFrom has both env and path")
	case from.Env != "":
		text, found := p.lookup(from.Env)
		if !found {
			return nil, false, fmt.Errorf("the environment variable %s is not set in the container", from.Env)
		}
		raw = []byte(text)
	case from.Path != "":
		if raw, err = p.file(from.Path); err != nil {
			return nil, false, err
		}
	default:
		return nil, false, errors.New("its valueFrom has neither env nor path")
	}
	return raw, isTrue(from.JSON), nil
}

func (p places) file(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.root, path)
	}
	raw, err := p.readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s in the container", path)
	}
	if why, ok := errors.AsType[*os.PathError](err); ok {
		err = why.Err
	}
	if err != nil {
		return nil, fmt.Errorf("the file %s cannot be read: %w", path, err)
	}
	return raw, nil
}

// compact gives JSON in its shortest form. Its errors do not quote the JSON.
func compact(raw []byte) (json.RawMessage, error) {
	var short bytes.Buffer
	if err := json.Compact(&short, raw); err != nil {
		return nil, errors.New("it is not JSON")
	}
	if short.String() == "null" {
		return nil, errors.New("it is null, which is no value")
	}
	return short.Bytes(), nil
}

// namespaced gives a key that names no namespace that of the project. Of a
// path only what comes before its first step can name one.
func namespaced(project, key string, path bool) string {
	top := key
	if at := strings.IndexAny(key, "[."); path && at > 0 {
		top = key[:at]
	}
	if strings.Contains(top, ":") {
		return key
	}
	return project + ":" + key
}

func isTrue(b *bool) bool { return b != nil && *b }
