package metrics

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	queries "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
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

// TestTheDashboardIsOneOfGrafana holds it to Grafana's own schema: a field that is not
// in it, that lacks or has another type is told, in panels and queries too.
func TestTheDashboardIsOneOfGrafana(t *testing.T) {
	known := cog.NewRuntime()
	known.RegisterPanelcfgVariant(stat.VariantConfig())
	known.RegisterPanelcfgVariant(table.VariantConfig())
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterDataqueryVariant(queries.VariantConfig())
	text, err := os.ReadFile(shipped("dashboard.json"))
	must(t, err)
	for name, c := range map[string]struct {
		old, now string
		valid    bool
	}{
		"As it is shipped":             {valid: true},
		"A field that nobody knows":    {old: `"schemaVersion"`, now: `"schemaversion"`},
		"An option that nobody knows":  {old: `"colorMode"`, now: `"colourMode"`},
		"An option of another type":    {old: `"showHeader": true`, now: `"showHeader": "yes"`},
		"A query's part of no meaning": {old: `"instant": true`, now: `"instance": true`},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(string(text), c.old, c.now, 1)
			if (changed == string(text)) != c.valid {
				t.Fatalf("the dashboard has no %s", c.old)
			}
			var d grafana.Dashboard                       //nolint:staticcheck // the file is of this version, which every Grafana reads
			err := d.UnmarshalJSONStrict([]byte(changed)) // what is valid gives an empty list of errors
			if valid := err == nil || err.Error() == ""; valid != c.valid {
				t.Errorf("valid = %v: %v", valid, err)
			}
		})
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
