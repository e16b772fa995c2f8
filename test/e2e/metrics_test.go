//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/updraft-dev/updraft/pkg/observe"
)

// TestMetricsArePushedBeforeAFunctionIsGone is the first push of all: the interval is a
// minute, and functions live for some seconds.
func TestMetricsArePushedBeforeAFunctionIsGone(t *testing.T) {
	if os.Getenv("COLLECTOR_IMAGE") == "" {
		t.Skip("COLLECTOR_IMAGE is not set")
	}
	s := newSpace(t)
	s.program()
	s.apply(s.stackOf("app", ""))
	s.awaitReady("app")
	s.awaitZero()
	s.within(patience, "what was measured is collected", func() error {
		lines, err := collected(s.Context(), "metrics", s.namespace)
		if err != nil {
			return err
		}
		got, err := counted(lines, observe.Updates, s.namespace)
		if err != nil {
			return err
		}
		if want := map[string]int{"result=succeeded,type=up": 1}; fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("counted are %v, want %v", got, want)
		}
		return nil
	})
	all, err := collected(s.Context(), "metrics", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range []observe.Metric{observe.Looks, observe.UpdateDuration, observe.PhaseDuration, observe.QueueTime} {
		if !strings.Contains(all, strconv.Quote(string(metric))) {
			t.Errorf("%s was not pushed", metric)
		}
	}
}

// counted are the sums of a counter in a namespace, by the other labels.
func counted(lines string, metric observe.Metric, namespace string) (map[string]int, error) {
	sums := map[string]int{}
	for line := range strings.Lines(lines) {
		var pushed struct {
			ResourceMetrics []struct {
				ScopeMetrics []struct {
					Metrics []struct {
						Name string
						Sum  struct {
							DataPoints []struct {
								AsInt      string
								Attributes []struct {
									Key   string
									Value struct{ StringValue string }
								}
							}
						}
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &pushed); err != nil {
			return nil, err
		}
		for _, resource := range pushed.ResourceMetrics {
			for _, scope := range resource.ScopeMetrics {
				for _, m := range scope.Metrics {
					if m.Name != string(metric) {
						continue
					}
					for _, p := range m.Sum.DataPoints {
						var labels []string
						in := ""
						for _, a := range p.Attributes {
							if a.Key == "k8s.namespace.name" {
								in = a.Value.StringValue
								continue
							}
							labels = append(labels, a.Key+"="+a.Value.StringValue)
						}
						n, err := strconv.Atoi(p.AsInt)
						if err != nil {
							return nil, err
						}
						if in == namespace {
							sums[strings.Join(labels, ",")] += n
						}
					}
				}
			}
		}
	}
	return sums, nil
}
