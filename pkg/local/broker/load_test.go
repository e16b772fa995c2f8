package broker_test

import (
	"strings"
	"testing"

	"github.com/updraft-dev/updraft/pkg/local/broker"
)

const installed = `
# A file as config/ has it: more than one object, and not only ours.
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata:
  name: updraft
  namespace: updraft-system
  annotations: {messaging.knative.dev/async-handler: "true"}
spec:
  delivery: {retry: 7, backoffPolicy: exponential, backoffDelay: PT1S}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: stack, namespace: updraft-system}
spec:
  broker: updraft
  subscriber:
    ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: stack}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: update, namespace: updraft-system}
spec:
  broker: updraft
  subscriber: {uri: http://127.0.0.1:1/}
  delivery: {timeout: PT30S} # which a cluster's default features allow
`

func TestLoad(t *testing.T) {
	path := file(t, installed)
	triggers, err := broker.LoadTriggers(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(triggers) != 2 || triggers[0].Name != "stack" || triggers[1].Name != "update" {
		t.Fatalf("read %v", triggers)
	}
	if got := triggers[0].Spec.Subscriber.Ref.Namespace; got != "updraft-system" {
		t.Errorf("the subscriber's namespace is %q: the webhook's defaults are missing", got)
	}
	b, err := broker.LoadBroker(path)
	if err != nil || b.Name != "updraft" || *b.Spec.Delivery.Retry != 7 {
		t.Errorf("read the Broker %v (%v)", b, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, test := range []struct {
		reason, old, new, want string
	}{
		{"an unknown field", "  subscriber:", "  filtres: []\n  subscriber:", `unknown field "filtres"`},
		{"a Trigger without a subscriber", "  subscriber: {uri: http://127.0.0.1:1/}", "", "spec.subscriber"},
		{"a misspelt filter", "  subscriber: {uri", "  filters: [{cesql: 'type LIKE'}]\n  subscriber: {uri", "spec.filters"},
		{"a misspelt kind", "kind: Trigger\nmetadata: {name: update", "kind: Triger\nmetadata: {name: update", "knows no Triger"},
		{"Triggers of two Brokers", "metadata: {name: update, namespace: updraft-system}\nspec:\n  broker: updraft", "metadata: {name: update, namespace: updraft-system}\nspec:\n  broker: other", "different Brokers"},
		{"a file without a Trigger", "kind: Trigger", "kind: EventType", "no Trigger in"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			changed := strings.ReplaceAll(installed, test.old, test.new)
			if changed == installed {
				t.Fatal("the case changes nothing")
			}
			_, err := broker.LoadTriggers(file(t, changed))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
		})
	}
}
