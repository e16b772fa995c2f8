package metrics

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/updraft-dev/updraft/pkg/observe"
)

// TestEachAlertFires provokes each once. What takes longer than a test is put there: a
// condition of two hours ago, a time in a queue. TestGaugesFollowObjects has a Stack
// that fails and stalls by itself.
func TestEachAlertFires(t *testing.T) {
	needsPrometheus(t)
	p, s := lab.prometheus, newSpace(t)
	text := attribute.String
	function := newPod(t, "updraft-source", lab.collector, 500*time.Millisecond)
	defer function.meter.Stop()

	t.Run("UpdraftEventsDropped", func(t *testing.T) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, lab.env.Functions["updraft-stack"], strings.NewReader("no event"))
		must(t, err)
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		must(t, response.Body.Close())
		p.fires(t, "UpdraftEventsDropped", "updraft-stack")
	})
	t.Run("UpdraftDrift", func(t *testing.T) {
		function.measures(observe.Measurement{Metric: observe.Drift, Value: 1, Labels: []attribute.KeyValue{text("k8s.namespace.name", "drifted"), text("type", "refresh")}})
		p.fires(t, "UpdraftDrift", "drifted")
	})
	t.Run("UpdraftQueueTimeHigh", func(t *testing.T) {
		eventually(t, "UpdraftQueueTimeHigh", func() (bool, string) {
			function.measures(observe.Measurement{Metric: observe.QueueTime, Value: 200, Labels: []attribute.KeyValue{text("type", "up")}})
			all := fmt.Sprint(p.firing(t))
			return strings.Contains(all, "UpdraftQueueTimeHigh "), all
		})
	})
	t.Run("UpdraftLooksLater", func(t *testing.T) {
		eventually(t, "UpdraftLooksLater", func() (bool, string) {
			function.measures(observe.Measurement{Metric: observe.Looks, Value: 5, Labels: []attribute.KeyValue{text("function", "updraft-source"), text("kind", "Poll"), text("outcome", "later")}})
			all := fmt.Sprint(p.firing(t))
			return strings.Contains(all, "UpdraftLooksLater updraft-source"), all
		})
	})
	t.Run("functions are asleep", func(t *testing.T) {
		lab.asleep.Store(true)
		defer lab.asleep.Store(false)
		s.kubectl(strings.ReplaceAll(sound, "sound", "unseen"), "apply", "-f", "-")
		p.fires(t, "UpdraftStackNotLookedAt", s.name)
		s.patchStatus("unseen", map[string]any{"observedGeneration": 1, "conditions": []any{map[string]any{
			"type": "Reconciling", "status": "True", "reason": "StackProcessing", "message": "Put there",
			"lastTransitionTime": time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339),
		}}})
		p.fires(t, "UpdraftStackReconcilesLong", s.name)
		s.kubectl(strings.ReplaceAll(sound, "sound", "given-up"), "apply", "-f", "-")
		now := time.Now().UTC().Format(time.RFC3339)
		s.patchStatus("given-up", map[string]any{
			"observedGeneration": 1, "conditions": []any{map[string]any{"type": "Stalled", "status": "True", "reason": "UpdateFailed", "message": "Put there", "lastTransitionTime": now}},
			"lastUpdate": map[string]any{"type": "up", "state": "failed", "reason": "UpdateFailed", "failures": 3, "lastResyncTime": now},
		})
		p.fires(t, "UpdraftStackStalled", s.name)
		p.fires(t, "UpdraftStackFailing", s.name)
		p.fires(t, "UpdraftLooksAtNothing", "")
	})
	// No alert is without its part above.
	rules, err := readRules()
	must(t, err)
	fired, err := p.query(t, `count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1h]))`)
	must(t, err)
	for _, r := range rules.all() {
		found := r.Alert == ""
		for _, f := range fired {
			found = found || f.Metric["alertname"] == r.Alert
		}
		if !found {
			t.Errorf("%s was never seen to fire", r.Alert)
		}
	}
	// That of the functions ends when they look again.
	s.kubectl("", "annotate", "stacks", "--all", "pulumi.com/reconciliation-request=now")
	eventually(t, "it ends", func() (bool, string) {
		all := fmt.Sprint(p.firing(t))
		return !strings.Contains(all, "UpdraftLooksAtNothing"), all
	})
}

func (s *space) patchStatus(name string, status map[string]any) {
	s.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	must(s.T, err)
	s.kubectl("", "patch", "stack", name, "--subresource=status", "--type=merge", "--patch", string(patch))
}

// TestEachMetricHasTheNameThatIsDocumented holds the names in Prometheus. What it
// pushes makes alerts fire, so it comes after the test that nothing does.
func TestEachMetricHasTheNameThatIsDocumented(t *testing.T) {
	p := newPod(t, "updraft-status", lab.collector, time.Second)
	for _, i := range observe.Instruments {
		p.measures(observe.Measurement{Metric: i.Metric, Value: 1, Labels: []attribute.KeyValue{attribute.String("reason", "Named")}})
	}
	p.meter.Stop()
	documented, err := os.ReadFile(lab.root + "/docs/metrics.md")
	must(t, err)
	for _, i := range observe.Instruments {
		name := strings.ReplaceAll(string(i.Metric), ".", "_")
		counted := name + "_total"
		if i.Unit == "s" {
			name += "_seconds"
			counted = name + "_count"
		} else {
			name = counted
		}
		if !strings.Contains(string(documented), "`"+name+"`") {
			t.Errorf("docs/metrics.md does not tell of %s", name)
		}
		eventually(t, name, func() (bool, string) {
			n, _ := total(t, get(t, "http://"+lab.collector.scraped+"/metrics"), counted, `reason="Named"`, `job="updraft-status"`)
			return n == 1, fmt.Sprint(n)
		})
	}
}
