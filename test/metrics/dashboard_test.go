package metrics

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// dashboard is what is looked at of Grafana's model.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
}

// rightlyEmpty are panels that show what should not be.
var rightlyEmpty = map[string]bool{
	"Drift found":               true, // nothing has drifted
	"Malformed events":          true, // nobody has sent one
	"Under way":                 true, // all Stacks have come to an end
	"Lost by the collector":     true, // its own metrics are not scraped in the test
	"Looks put off (\"later\")": true, // nothing was down
}

// dashboardHasData runs each expression of the dashboard and of the rules, as Grafana
// would, while there are Stacks that succeeded and failed.
func dashboardHasData(t *testing.T, namespace string) {
	text, err := os.ReadFile(shipped("dashboard.json"))
	must(t, err)
	var d dashboard
	must(t, json.Unmarshal(text, &d))
	variables := strings.NewReplacer("$namespace", namespace, "$__rate_interval", "20s", "$__range", "1m")
	panels := map[string]bool{}
	for _, panel := range d.Panels {
		panels[panel.Title] = true
		for _, target := range panel.Targets {
			expression := variables.Replace(target.Expr)
			if strings.Contains(expression, "$") {
				t.Errorf("%s: %s has a variable that nobody sets", panel.Title, target.Expr)
			}
			got, err := lab.prometheus.query(t, expression)
			if err != nil {
				t.Errorf("%s: %v", panel.Title, err)
			} else if len(got) == 0 && !rightlyEmpty[panel.Title] {
				t.Errorf("%s: %s gives nothing", panel.Title, expression)
			}
		}
	}
	for title := range rightlyEmpty {
		if !panels[title] {
			t.Errorf("there is no panel %s", title)
		}
	}
	rules, err := readRules()
	must(t, err)
	for _, r := range rules.all() {
		got, err := lab.prometheus.query(t, r.Expr)
		if err != nil {
			t.Errorf("%s%s: %v", r.Record, r.Alert, err)
		}
		switch r.Record {
		case "", "updraft:drift:increase1h", "updraft:events_dropped:increase1h", "updraft:stack_under_way:seconds": // as above
		default:
			if len(got) == 0 {
				t.Errorf("%s gives nothing", r.Record)
			}
		}
	}
}
