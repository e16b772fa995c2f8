package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/updraft-dev/updraft/test/suite"
)

// prometheus is a real one, that scrapes and evaluates twice a second.
type prometheus struct {
	process *exec.Cmd
	address string
	said    *suite.Text
}

func startPrometheus(ctx context.Context, dir, rules, collector, state string) (*prometheus, error) {
	p := &prometheus{said: &suite.Text{}}
	var err error
	if p.address, err = freePort(ctx); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "prometheus.yaml")
	text := fmt.Sprintf(`
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
- {job_name: updraft-collector, honor_labels: true, static_configs: [{targets: [%q]}]}
- {job_name: kube-state-metrics, honor_labels: true, static_configs: [{targets: [%q]}]}
`, rules, collector, state)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p.process = exec.CommandContext(ctx, filepath.Join(lab.bin, "prometheus"), "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "prometheus"), "--web.listen-address="+p.address)
	p.process.Stdout, p.process.Stderr = p.said, p.said
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	// It listens before it can answer.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		ready, err := p.ready(ctx)
		if ready {
			return p, nil
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("prometheus does not start: %w\n%s", err, p.said), p.stop())
		}
	}
}

func (p *prometheus) ready(ctx context.Context) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/-/ready", http.NoBody)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	return response.StatusCode == http.StatusOK, response.Body.Close()
}

func (p *prometheus) stop() error {
	if err := p.process.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return p.process.Wait()
}

// series is one of an answer.
type series struct {
	Metric map[string]string
	Value  [2]any
}

func (s series) number() float64 {
	text, _ := s.Value[1].(string)
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// query is what an expression gives now. Its error is what is wrong with it.
func (p *prometheus) query(t *testing.T, expression string) ([]series, error) {
	t.Helper()
	var answer struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     []series
		}
	}
	must(t, json.Unmarshal([]byte(p.ask(t, "query", url.Values{"query": {expression}})), &answer))
	if answer.Status != "success" || answer.Data.ResultType != "vector" {
		return nil, fmt.Errorf("%s: %s, a %s", expression, answer.Error, answer.Data.ResultType)
	}
	return answer.Data.Result, nil
}

func (p *prometheus) ask(t *testing.T, what string, values url.Values) string {
	t.Helper()
	return get(t, "http://"+p.address+"/api/v1/"+what+"?"+values.Encode())
}

// is waits until an expression gives these values, by the labels that are asked for.
func (p *prometheus) is(t *testing.T, expression string, want map[string]float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is %v", expression, want), func() (bool, string) {
		got, err := p.query(t, expression)
		must(t, err)
		found := map[string]float64{}
		for _, s := range got {
			found[labelText(withoutName(s.Metric))] = s.number()
		}
		return fmt.Sprint(found) == fmt.Sprint(want), fmt.Sprint(found)
	})
}

func labelText(labels map[string]string) string {
	var text []string
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		text = append(text, label+"="+strconv.Quote(labels[label]))
	}
	return strings.Join(text, ",")
}

func withoutName(labels map[string]string) map[string]string {
	without := map[string]string{}
	for k, v := range labels {
		if k != "__name__" {
			without[k] = v
		}
	}
	return without
}

// rule is one of monitoring/rules.yaml.
type rule struct {
	Record      string            `json:"record,omitempty"`
	Alert       string            `json:"alert,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type ruleGroups struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

func readRules() (g ruleGroups, err error) {
	text, err := os.ReadFile(shipped("rules.yaml"))
	if err != nil {
		return g, err
	}
	err = yaml.UnmarshalStrict(text, &g)
	return g, err
}

func (g ruleGroups) all() (all []rule) {
	for _, group := range g.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// soon replaces what takes hours in an expression: windows, and for how long
// something must have been so. testdata/rules.yaml holds the real ones.
var soon = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\[1d\] offset 1h`), "[10m] offset 20s"},
	{regexp.MustCompile(`\[1h\]`), "[20s]"},
	{regexp.MustCompile(`\[(30|10)m\]`), "[20s]"},
	{regexp.MustCompile(`> (1800|3600)\b`), "> 30"},
}

// hastened writes the rules as they are but for their times.
func hastened(dir string) (file string, err error) {
	rules, err := readRules()
	if err != nil {
		return "", err
	}
	used := make([]bool, len(soon))
	for _, group := range rules.Groups {
		for i := range group.Rules {
			r := &group.Rules[i]
			for n, s := range soon {
				used[n] = used[n] || s.what.MatchString(r.Expr)
				r.Expr = s.what.ReplaceAllString(r.Expr, s.by)
			}
			r.For = ""
		}
	}
	for n, s := range soon {
		if !used[n] {
			return "", fmt.Errorf("no rule has %s", s.what)
		}
	}
	text, err := yaml.Marshal(rules)
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "rules.yaml")
	return file, os.WriteFile(file, text, 0o600)
}

// firing are the alerts that fire now, with a label each that tells what for.
func (p *prometheus) firing(t *testing.T) []string {
	t.Helper()
	got, err := p.query(t, `ALERTS{alertstate="firing"}`)
	must(t, err)
	all := []string{}
	for _, s := range got {
		all = append(all, s.Metric["alertname"]+" "+s.Metric["namespace"]+s.Metric["k8s_namespace_name"]+s.Metric["function"])
	}
	return all
}

// TestAsShipped holds the rules with their own durations: Prometheus' own tool plays
// hours and days.
func TestAsShipped(t *testing.T) {
	needsPrometheus(t)
	for _, args := range [][]string{{"check", "rules", shipped("rules.yaml")}, {"test", "rules", "testdata/rules.yaml"}} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(lab.bin, "promtool"), args...).CombinedOutput()
		if err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	// Each alert is in both kinds of test.
	text, err := os.ReadFile("testdata/rules.yaml")
	must(t, err)
	rules, err := readRules()
	must(t, err)
	for _, r := range rules.all() {
		if r.Alert == "" {
			continue
		}
		if n := strings.Count(string(text), "alertname: "+r.Alert+"\n"); n < 2 {
			t.Errorf("testdata/rules.yaml asks %d times for %s: before it fires and when it does", n, r.Alert)
		}
		for _, key := range []string{"summary", "description", "runbook_url"} {
			if r.Annotations[key] == "" {
				t.Errorf("%s has no %s", r.Alert, key)
			}
		}
		if r.Labels["severity"] == "" {
			t.Errorf("%s has no severity", r.Alert)
		}
	}
}

// TestRunbooksExist holds that what an alert links to is there.
func TestRunbooksExist(t *testing.T) {
	const at = "https://github.com/updraft-dev/updraft/blob/main/"
	rules, err := readRules()
	must(t, err)
	for _, r := range rules.all() {
		if r.Alert == "" {
			continue
		}
		link, found := strings.CutPrefix(r.Annotations["runbook_url"], at)
		file, anchor, _ := strings.Cut(link, "#")
		file = strings.ReplaceAll(file, "{{ $labels.reason }}", "SpecInvalid")
		text, err := os.ReadFile(filepath.Join(lab.root, file))
		if !found || err != nil {
			t.Errorf("%s links to %s: %v", r.Alert, link, err)
			continue
		}
		if anchor != "" && !strings.Contains(strings.ToLower(string(text)), "### "+anchor+"\n") {
			t.Errorf("%s has no heading %s", file, anchor)
		}
		documented, err := os.ReadFile(filepath.Join(lab.root, "docs", "metrics.md"))
		must(t, err)
		if !strings.Contains(string(documented), r.Alert) {
			t.Errorf("docs/metrics.md does not tell of %s", r.Alert)
		}
	}
}

// fires waits until an alert fires for something.
func (p *prometheus) fires(t *testing.T, alert, what string) {
	t.Helper()
	eventually(t, alert+" fires for "+what, func() (bool, string) {
		all := p.firing(t)
		return slices.Contains(all, alert+" "+what), strings.Join(all, "\n")
	})
}
