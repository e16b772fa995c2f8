// Package spans reads what an OpenTelemetry collector wrote down, OTLP's JSON a line
// each, so that tests can say what a trace must hold.
package spans

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Span is one that was collected.
type Span struct {
	// Service that made it.
	Service    string
	Name       string `json:"name"`
	TraceID    string `json:"traceId"`
	ID         string `json:"spanId"`
	Parent     string `json:"parentSpanId"`
	Attributes []struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	} `json:"attributes"`
	Links []struct {
		TraceID string `json:"traceId"`
	} `json:"links"`
}

// String is the service and the name.
func (s Span) String() string { return s.Service + ": " + s.Name }

// Attribute of a span, as text.
func (s Span) Attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			for _, v := range a.Value {
				return fmt.Sprint(v)
			}
		}
	}
	return ""
}

// Trace is the spans of a trace, by their ids.
type Trace map[string]Span

// Read finds the spans of a trace in lines of OTLP's JSON.
func Read(lines, trace string) (Trace, error) {
	found := Trace{}
	for line := range strings.Lines(lines) {
		var batch struct {
			ResourceSpans []struct {
				Resource   Span `json:"resource"` // of which only the attributes are there
				ScopeSpans []struct {
					Spans []Span `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if err := json.Unmarshal([]byte(line), &batch); err != nil {
			return nil, fmt.Errorf("%w in %s", err, line)
		}
		for _, r := range batch.ResourceSpans {
			for _, scope := range r.ScopeSpans {
				for _, s := range scope.Spans {
					if s.TraceID == trace {
						s.Service = r.Resource.Attribute("service.name")
						found[s.ID] = s
					}
				}
			}
		}
	}
	return found, nil
}

// Has says whether a span of this service and name is below, at any depth, one of
// another service and name.
func (t Trace) Has(span, below string) bool {
	for _, s := range t {
		if s.String() != span {
			continue
		}
		for up, there := t[s.Parent]; there; up, there = t[up.Parent] {
			if up.String() == below {
				return true
			}
		}
	}
	return false
}

// Roots are the spans whose parent is not there.
func (t Trace) Roots() []string {
	var roots []string
	for _, s := range t {
		if _, there := t[s.Parent]; !there {
			roots = append(roots, s.String())
		}
	}
	slices.Sort(roots)
	return roots
}

// Tree draws the trace, without what is inside the CLI.
func (t Trace) Tree() string {
	below := map[string][]Span{}
	for _, s := range t {
		parent := s.Parent
		if _, there := t[parent]; !there {
			parent = ""
		}
		below[parent] = append(below[parent], s)
	}
	var draw func(id, indent string) string
	draw = func(id, indent string) string {
		var out strings.Builder
		slices.SortFunc(below[id], func(a, b Span) int { return strings.Compare(a.String(), b.String()) })
		for _, s := range below[id] {
			if s.Service == "pulumi-cli" && s.Name != "pulumi" {
				continue
			}
			fmt.Fprintf(&out, "%s%s (%s %s)\n%s", indent, s, s.Attribute("cloudevents.event_type"), s.Attribute("updraft.name"), draw(s.ID, indent+"  "))
		}
		return out.String()
	}
	return draw("", "")
}
