package broker_test

import (
	"io"
	"log/slog"
	"net/http"
	"testing"

	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"

	"github.com/updraft-dev/updraft/pkg/local/broker"
)

// TestDelivery waits, for each case, until the event was accepted, went to the dead letter sink or was given up, and counts the tries.
func TestDelivery(t *testing.T) {
	retry, policy, delay := int32(2), eventingduckv1.BackoffPolicyExponential, "PT0.1S" // to Knative, less than a tenth is nothing
	ofBroker := &eventingduckv1.DeliverySpec{Retry: &retry, BackoffPolicy: &policy, BackoffDelay: &delay}
	const dead = "  delivery: {deadLetterSink: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: dead}}}"
	for _, test := range []struct {
		reason      string
		spec        string
		ofBroker    *eventingduckv1.DeliverySpec
		answer      func(http.ResponseWriter, int)
		tries, dead int
		givenUp     bool
	}{
		{reason: "later, later, done", ofBroker: ofBroker, answer: status(503, 503, 204), tries: 3},
		{reason: "never", ofBroker: ofBroker, answer: status(422), tries: 1, givenUp: true},
		{reason: "a conflict is tried again", ofBroker: ofBroker, answer: status(409, 204), tries: 2},
		{reason: "a crash is tried again", ofBroker: ofBroker, answer: status(500, 204), tries: 2},
		{reason: "always later is given up in the end", ofBroker: ofBroker, answer: status(503), tries: 3, givenUp: true},
		{reason: "without a delivery there is one try", answer: status(503), tries: 1, givenUp: true},
		{
			reason: "the Trigger's delivery replaces the Broker's", ofBroker: ofBroker,
			spec:   "  delivery: {retry: 1, backoffPolicy: linear, backoffDelay: PT0.1S}",
			answer: status(503), tries: 2, givenUp: true,
		},
		{
			reason: "one that only names a dead letter sink does not try again", ofBroker: ofBroker, spec: dead,
			answer: status(503), tries: 1, dead: 1,
		},
		{
			reason: "a success with a body that is no event is a failure", ofBroker: ofBroker,
			answer: func(w http.ResponseWriter, try int) {
				if try == 1 {
					_, _ = io.WriteString(w, "OK")
				}
			},
			tries: 2,
		},
		{
			reason: "and is dead-lettered as one", spec: dead, ofBroker: ofBroker,
			answer: func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, "OK") },
			tries:  1, dead: 1,
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			given := &givenUp{reported: make(chan struct{}, 1)}
			f, sink := newFunction(t, test.answer), newFunction(t, status(204))
			b := newBroker(t, broker.Options{
				Triggers: []*eventingv1.Trigger{trigger(t, "t", test.spec)}, Delivery: test.ofBroker,
				Resolve: resolve(map[string]*function{"f": f, "dead": sink}), Log: slog.New(slog.NewTextHandler(given, nil)),
			})
			send(t, b, event("1"), http.StatusAccepted)
			f.wait(t, test.tries)
			sink.wait(t, test.dead)
			if test.givenUp {
				<-given.reported
			}
			drain(t, b)
			if f.tries() != test.tries || sink.tries() != test.dead {
				t.Errorf("%d tries and %d dead letters, want %d and %d", f.tries(), sink.tries(), test.tries, test.dead)
			}
			if !test.givenUp && len(given.reported) > 0 {
				t.Error("an event that was delivered was logged as given up")
			}
			if test.dead > 0 {
				events, _ := sink.got()
				if got := events[0].Extensions()["knativeerrordest"]; got != f.url.String() {
					t.Errorf("the dead letter says it was for %v, want %s", got, f.url)
				}
			}
		})
	}
}

// givenUp hears that something was logged.
type givenUp struct{ reported chan struct{} }

func (g *givenUp) Write(line []byte) (int, error) {
	select {
	case g.reported <- struct{}{}:
	default:
	}
	return len(line), nil
}
