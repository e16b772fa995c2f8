package broker_test

import (
	"net/http"
	"slices"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"

	"github.com/updraft-dev/updraft/pkg/local/broker"
)

func TestFilters(t *testing.T) {
	events := []cloudevents.Event{
		event("stack-added", "type", "dev.knative.apiserver.ref.add", "kind", "Stack"),
		event("stack-due", "type", "dev.updraft.due", "kind", "Stack"),
		event("update-due", "type", "dev.updraft.due", "kind", "Update"),
		event("update-ping", "type", "dev.knative.sources.ping", "kind", "Update"),
		event("push", "type", "dev.updraft.push"),
	}
	for _, test := range []struct {
		reason, spec string
		want         []string
	}{
		{reason: "no filter lets all pass", want: []string{"push", "stack-added", "stack-due", "update-due", "update-ping"}},
		{
			reason: "attributes must all be equal",
			spec:   "  filter: {attributes: {type: dev.updraft.due, kind: Stack}}",
			want:   []string{"stack-due"},
		},
		{
			reason: "an empty attribute means any value, but one",
			spec:   `  filter: {attributes: {kind: ""}}`,
			want:   []string{"stack-added", "stack-due", "update-due", "update-ping"},
		},
		{reason: "exact", spec: "  filters: [{exact: {kind: Update}}]", want: []string{"update-due", "update-ping"}},
		{reason: "prefix", spec: "  filters: [{prefix: {type: dev.knative.}}]", want: []string{"stack-added", "update-ping"}},
		{reason: "suffix", spec: "  filters: [{suffix: {type: .due}}]", want: []string{"stack-due", "update-due"}},
		{reason: "not", spec: "  filters: [{not: {prefix: {type: dev.updraft.}}}]", want: []string{"stack-added", "update-ping"}},
		{reason: "several filters must all pass", spec: "  filters: [{exact: {kind: Update}}, {suffix: {type: .ping}}]", want: []string{"update-ping"}},
		{
			reason: "any of all",
			spec: `
  filters:
    - any:
        - all:
            - exact: {kind: Stack}
            - exact: {type: dev.updraft.due}
        - exact: {type: dev.updraft.push}`,
			want: []string{"push", "stack-due"},
		},
		{
			reason: "CESQL",
			spec:   `  filters: [{cesql: "type LIKE '%.due' AND kind = 'Update'"}]`,
			want:   []string{"update-due"},
		},
		{
			reason: "the new filters replace the old",
			spec:   "  filter: {attributes: {kind: Stack}}\n  filters: [{exact: {type: dev.updraft.push}}]",
			want:   []string{"push"},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			f := newFunction(t, status(http.StatusNoContent))
			b := newBroker(t, broker.Options{
				Triggers: []*eventingv1.Trigger{trigger(t, "filtered", test.spec)}, Resolve: resolve(map[string]*function{"f": f}),
			})
			for _, e := range events {
				send(t, b, e, http.StatusAccepted)
			}
			drain(t, b)
			if got := f.ids(); !slices.Equal(got, test.want) {
				t.Errorf("the function got %q, want %q", got, test.want)
			}
		})
	}
}
