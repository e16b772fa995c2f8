package agent

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// scrubbed stands in for a secret value.
const scrubbed = "[secret]"

// wholeWordBelow is the length, in bytes, below which a secret is only taken
// out where it stands alone: "on" is no reason to maim every "configuration".
const wholeWordBelow = 8

// secretNames are in the names of environment variables whose values are
// secret; fileNames end the names of those that only say where one is.
var (
	secretNames = regexp.MustCompile(`(?i)token|secret|password|passphrase|private_?key|access_?key|api_?key|credential`)
	fileNames   = regexp.MustCompile(`(?i)_(file|path|dir|url|id|name|provider)$`)
)

// scrubber takes secret values out of texts. It holds them and prints none.
type scrubber struct {
	values []string
}

// String hides what is held.
func (scrubber) String() string { return scrubbed }

// GoString hides what is held.
func (scrubber) GoString() string { return scrubbed }

// newScrubber knows the secrets in the environment.
func newScrubber(env environment) *scrubber {
	s := &scrubber{}
	for _, entry := range env {
		key, value, _ := strings.Cut(entry, "=")
		if secretNames.MatchString(key) && !fileNames.MatchString(key) {
			s.add(value)
		}
	}
	return s
}

// add makes a value known as secret, in the forms that an error may show it:
// as it is, quoted, and by the line.
func (s *scrubber) add(value string) {
	if value == "" {
		return
	}
	forms := []string{value, strings.Trim(strconv.Quote(value), `"`)}
	if encoded, err := json.Marshal(value); err == nil {
		forms = append(forms, strings.Trim(string(encoded), `"`))
	}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= wholeWordBelow {
			forms = append(forms, line)
		}
	}
	s.values = append(s.values, forms...)
	// Longest first, so that no part of a value outlives the whole.
	slices.SortFunc(s.values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	s.values = slices.Compact(s.values)
}

// addSetting makes a configuration value known as secret.
func (s *scrubber) addSetting(of setting) {
	s.add(of.text)
	if of.structured != nil {
		s.add(string(of.structured))
		var parts any
		if err := json.Unmarshal(of.structured, &parts); err == nil {
			s.addJSON(parts)
		}
	}
}

// addJSON makes a structured value known as secret, with each string in it.
func (s *scrubber) addJSON(value any) {
	switch v := value.(type) {
	case string:
		s.add(v)
	case []any:
		for _, element := range v {
			s.addJSON(element)
		}
	case map[string]any:
		for _, element := range v {
			s.addJSON(element)
		}
	case float64:
		s.add(strconv.FormatFloat(v, 'f', -1, 64))
	}
}

// scrub takes the known values out of a text.
func (s *scrubber) scrub(text string) string {
	for _, value := range s.values {
		if len(value) >= wholeWordBelow {
			text = strings.ReplaceAll(text, value, scrubbed)
		} else if strings.Contains(text, value) {
			alone := regexp.MustCompile(`(^|[^\pL\pN])` + regexp.QuoteMeta(value) + `($|[^\pL\pN])`)
			// Twice, since two neighbours share what is between them.
			for range 2 {
				text = alone.ReplaceAllString(text, "${1}"+scrubbed+"${2}")
			}
		}
	}
	return text
}
