package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/blang/semver"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

// call is one run of the CLI that sets configuration. A secret value is never
// in its arguments, which whoever lists the processes of a node can see.
type call struct {
	args  []string
	env   []string
	stdin string
}

// documentOption is the flag --json of "config set-all", as an environment
// variable.
const documentOption = "PULUMI_OPTION_JSON="

// sizeLimit, in bytes, keeps one argument or variable below what Linux takes,
// which is 128 KiB.
const sizeLimit = 120 << 10

// entry is a setting in a document, which is what "pulumi config --json" prints
// and "pulumi config set-all --json" takes.
type entry struct {
	key     string
	encoded json.RawMessage
}

// plan gives the calls that set the settings of a stack, in order. How few they
// can be depends on the CLI's version.
func plan(settings []setting, stack string, version semver.Version) ([]call, error) {
	byVariable := version.GTE(oldestForOptions)
	var documented []entry
	var single []setting
	for _, s := range settings {
		if s.structured != nil && s.secret {
			// The CLI cannot set a structure that is secret as a whole. A secret
			// string of JSON is the same to a program that reads a structure.
			s.text, s.structured = string(s.structured), nil
		}
		if s.structured == nil && (!byVariable || s.path || !utf8.ValidString(s.text)) {
			single = append(single, s)
			continue
		}
		e, err := s.entry()
		switch {
		case err != nil:
			return nil, err
		case len(e.encoded) <= sizeLimit-len(e.key)-64:
			documented = append(documented, e)
		case s.structured == nil:
			single = append(single, s)
		default:
			return nil, faultf(autov1alpha1.ReasonWorkspaceFailed,
				"The configuration value %s cannot be set: a structure of that size does not fit: make it smaller, or a string", s.key)
		}
	}
	return append(documentCalls(documented, stack, byVariable), singleCalls(single, stack)...), nil
}

// entry of a setting in a document.
func (s setting) entry() (entry, error) {
	var v struct {
		Value       string          `json:"value"`
		ObjectValue json.RawMessage `json:"objectValue,omitempty"`
		Secret      bool            `json:"secret"`
	}
	key := s.key
	v.Value, v.Secret = s.text, s.secret
	if s.structured != nil {
		v.Value, v.ObjectValue = string(s.structured), s.structured
		key = verbatim(key)
	}
	encoded, err := encode(v)
	if err != nil {
		return entry{}, fmt.Errorf("cannot encode the configuration value %s: %w", s.key, err)
	}
	return entry{key: key, encoded: encoded}, nil
}

// verbatim escapes a name that could be read as a path, as the CLI reads the
// key of a structure.
func verbatim(key string) string {
	at := strings.LastIndex(key, ":") + 1
	name := key[at:]
	if !strings.ContainsAny(name, `.["`) || strings.HasPrefix(name, `["`) {
		return key
	}
	return fmt.Sprintf("%s[%q]", key[:at], name)
}

// documentCalls sets values by documents of a size that fits.
func documentCalls(entries []entry, stack string, byVariable bool) []call {
	var calls []call
	for len(entries) > 0 {
		document, size := []byte("{"), 0
		for size < len(entries) && (size == 0 || len(document)+len(entries[size].key)+len(entries[size].encoded)+64 <= sizeLimit) {
			if size > 0 {
				document = append(document, ',')
			}
			key, _ := encode(entries[size].key)
			document = slices.Concat(document, key, []byte(":"), entries[size].encoded)
			size++
		}
		entries = entries[size:]
		c := call{args: []string{"config", "set-all", "--stack", stack}}
		if text := string(document) + "}"; byVariable {
			c.env = []string{documentOption + text}
		} else {
			c.args = append(c.args, "--json", text)
		}
		calls = append(calls, c)
	}
	return calls
}

// singleCalls sets strings: plain ones in a row by one call, a secret one by a
// call that gets it on its standard input. The order is kept, for the elements
// of a list must come in theirs.
func singleCalls(settings []setting, stack string) []call {
	var calls []call
	for _, s := range settings {
		flags := []string{"--stack", stack}
		if s.path {
			flags = append(flags, "--path")
		}
		pair := s.key + "=" + s.text
		if s.secret || len(pair) > sizeLimit || strings.ContainsAny(s.key, `="'`) || strings.Contains(s.text, "\x00") {
			calls = append(calls, piped(s, flags))
			continue
		}
		args := slices.Concat([]string{"config", "set-all"}, flags)
		if last := len(calls) - 1; last >= 0 && continues(calls[last], args) {
			calls[last].args = append(calls[last].args, "--plaintext", pair)
			continue
		}
		calls = append(calls, call{args: append(args, "--plaintext", pair)})
	}
	return calls
}

// piped sets one value from standard input. The CLI takes one line end off it,
// so one is added.
func piped(s setting, flags []string) call {
	kind := "--plaintext"
	if s.secret {
		kind = "--secret"
	}
	return call{args: slices.Concat([]string{"config", "set"}, flags, []string{kind, "--", s.key}), stdin: s.text + "\n"}
}

// continues says whether a call begins with these arguments, has room for more
// values and takes them.
func continues(c call, args []string) bool {
	return len(c.args) > len(args) && slices.Equal(c.args[:len(args)], args) && c.args[len(args)] == "--plaintext" &&
		len(strings.Join(c.args, " ")) < sizeLimit
}

// encode is JSON without the escapes that are for HTML.
func encode(v any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(text.Bytes(), "\n"), nil
}

// isStructured says whether some setting is no string.
func isStructured(settings []setting) bool {
	return slices.ContainsFunc(settings, func(s setting) bool { return s.structured != nil })
}
