package apiserver_test

import (
	"strings"
	"testing"

	"github.com/updraft-dev/updraft/sources/apiserver"
)

func TestLoadSource(t *testing.T) {
	source := load(t, sourceYAML)
	if source.Name != "updraft" || source.Spec.EventMode != "Reference" {
		t.Errorf("read %s in mode %q", source.Name, source.Spec.EventMode)
	}
}

func TestLoadSourceRefuses(t *testing.T) {
	for _, test := range []struct {
		reason, old, new, want string
	}{
		{"an unknown field", "  namespaceSelector: {}", "  namespaceSelectors: {}", `unknown field "namespaceSelectors"`},
		{"a source without a sink", "    ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: updraft}", "    {}", "spec.sink"},
		{"another version", "apiVersion: sources.knative.dev/v1\nkind: ApiServerSource", "apiVersion: sources.knative.dev/v2\nkind: ApiServerSource", "there is no ApiServerSource"},
		{"two sources", sourceYAML, sourceYAML + "---" + sourceYAML, "more than one"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			changed := strings.Replace(sourceYAML, test.old, test.new, 1)
			if changed == sourceYAML {
				t.Fatal("the case changes nothing")
			}
			_, err := apiserver.LoadSource(file(t, changed))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
		})
	}
}
