package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/updraft-dev/updraft/pkg/local/broker"
)

// A function is a subscriber that keeps what it got and answers as it is told.
type function struct {
	url    *apis.URL
	answer func(w http.ResponseWriter, try int)

	mu      sync.Mutex
	events  []cloudevents.Event
	headers []http.Header
	changed chan struct{} // closed and made anew at each event
}

func newFunction(t *testing.T, answer func(w http.ResponseWriter, try int)) *function {
	t.Helper()
	f := &function{answer: answer, changed: make(chan struct{})}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	url, err := apis.ParseURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	f.url = url
	return f
}

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, err := binding.ToEvent(r.Context(), cehttp.NewMessageFromHttpRequest(r))
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	f.mu.Lock()
	f.events, f.headers = append(f.events, *event), append(f.headers, r.Header)
	try := len(f.events)
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
	f.answer(w, try)
}

// wait returns once the function was called n times.
func (f *function) wait(t *testing.T, n int) {
	t.Helper()
	for {
		f.mu.Lock()
		have, changed := len(f.events), f.changed
		f.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("it was called %d times within a minute, want %d", have, n)
		}
	}
}

func (f *function) tries() int {
	events, _ := f.got()
	return len(events)
}

// got is all that came so far.
func (f *function) got() ([]cloudevents.Event, []http.Header) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events), slices.Clone(f.headers)
}

func (f *function) ids() []string {
	events, _ := f.got()
	ids := make([]string, 0, len(events))
	for _, event := range events {
		ids = append(ids, event.ID())
	}
	slices.Sort(ids)
	return ids
}

func status(codes ...int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, try int) { w.WriteHeader(codes[min(try, len(codes))-1]) }
}

// trigger is a Trigger of the function "f"; rest is the rest of its spec, as YAML.
func trigger(t *testing.T, name, rest string) *eventingv1.Trigger {
	t.Helper()
	return triggerOf(t, "f", name, rest)
}

func triggerOf(t *testing.T, function, name, rest string) *eventingv1.Trigger {
	t.Helper()
	triggers, err := broker.LoadTriggers(file(t, fmt.Sprintf(`
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: %s, namespace: updraft-system}
spec:
  broker: updraft
  subscriber:
    ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: %s}
%s`, name, function, rest)))
	if err != nil {
		t.Fatal(err)
	}
	return triggers[0]
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// resolve knows Services by name.
func resolve(functions map[string]*function) func(duckv1.KReference) (*apis.URL, error) {
	return func(ref duckv1.KReference) (*apis.URL, error) {
		f, ok := functions[ref.Name]
		if !ok || ref.Kind != "Service" || ref.Namespace != "updraft-system" {
			return nil, fmt.Errorf("there is no %s %s/%s", ref.Kind, ref.Namespace, ref.Name)
		}
		return f.url, nil
	}
}

func newBroker(t *testing.T, options broker.Options) *broker.Broker {
	t.Helper()
	b, err := broker.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func event(id string, attributes ...string) cloudevents.Event {
	e := cloudevents.NewEvent()
	e.SetID(id)
	e.SetType("dev.updraft.due")
	e.SetSource("/test")
	for i := 0; i < len(attributes); i += 2 {
		if attributes[i] == "type" {
			e.SetType(attributes[i+1])
			continue
		}
		e.SetExtension(attributes[i], attributes[i+1])
	}
	return e
}

// send posts the event to the broker and checks the answer.
func send(t *testing.T, b *broker.Broker, e cloudevents.Event, want int, headers ...string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/updraft-system/updraft", nil)
	if err := cehttp.WriteRequest(t.Context(), binding.ToMessage(&e), r); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	if w.Code != want {
		t.Errorf("the broker answered %d (%s), want %d", w.Code, strings.TrimSpace(w.Body.String()), want)
	}
}

func drain(t *testing.T, b *broker.Broker) {
	t.Helper()
	if err := b.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestServeHTTP(t *testing.T) {
	release := make(chan struct{})
	f := newFunction(t, func(w http.ResponseWriter, _ int) { <-release; w.WriteHeader(http.StatusNoContent) })
	b := newBroker(t, broker.Options{
		Triggers: []*eventingv1.Trigger{trigger(t, "all", "")}, Resolve: resolve(map[string]*function{"f": f}),
	})
	send(t, b, event("1"), http.StatusAccepted) // answered although the function holds it
	send(t, b, event("looped", "knativebrokerttl", "1"), http.StatusBadRequest)

	for name, request := range map[string]*http.Request{
		"a body that is no event": httptest.NewRequest(http.MethodPost, "/", strings.NewReader("hello")),
		"an event without a type": func() *http.Request {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set("Ce-Specversion", "1.0")
			r.Header.Set("Ce-Id", "1")
			r.Header.Set("Ce-Source", "/test")
			return r
		}(),
	} {
		w := httptest.NewRecorder()
		if b.ServeHTTP(w, request); w.Code != http.StatusBadRequest {
			t.Errorf("%s was answered %d, want 400", name, w.Code)
		}
	}
	w := httptest.NewRecorder()
	if b.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET was answered %d, want 405", w.Code)
	}
	close(release)
	drain(t, b)
	send(t, b, event("late"), http.StatusServiceUnavailable)
	if got := f.ids(); !slices.Equal(got, []string{"1"}) {
		t.Errorf("the function got %q, want only 1", got)
	}
}

func TestTamper(t *testing.T) {
	f := newFunction(t, status(http.StatusNoContent))
	b := newBroker(t, broker.Options{
		Triggers: []*eventingv1.Trigger{trigger(t, "all", "")}, Resolve: resolve(map[string]*function{"f": f}),
		Tamper: func(trigger string, e cloudevents.Event) int {
			if trigger != "all" {
				t.Errorf("asked for Trigger %q", trigger)
			}
			return map[string]int{"lost": 0, "once": 1, "doubled": 2}[e.ID()]
		},
	})
	for _, id := range []string{"lost", "once", "doubled"} {
		send(t, b, event(id), http.StatusAccepted)
	}
	drain(t, b)
	if got := f.ids(); !slices.Equal(got, []string{"doubled", "doubled", "once"}) {
		t.Errorf("the function got %q", got)
	}
}

func TestDrainDropsWhatWaits(t *testing.T) {
	f := newFunction(t, status(http.StatusServiceUnavailable))
	b := newBroker(t, broker.Options{
		Triggers: []*eventingv1.Trigger{trigger(t, "all", "  delivery: {retry: 5, backoffPolicy: exponential, backoffDelay: PT1H}")},
		Resolve:  resolve(map[string]*function{"f": f}),
	})
	send(t, b, event("1"), http.StatusAccepted)
	f.wait(t, 1)
	drain(t, b) // or the test takes an hour
	if got := f.tries(); got != 1 {
		t.Errorf("it was tried %d times, want once", got)
	}
}

func TestDrainWaitsForWhatIsInHand(t *testing.T) {
	release, served := make(chan struct{}), atomic.Bool{}
	f := newFunction(t, func(w http.ResponseWriter, _ int) { <-release; served.Store(true); w.WriteHeader(http.StatusNoContent) })
	b := newBroker(t, broker.Options{
		Triggers: []*eventingv1.Trigger{trigger(t, "all", "")}, Resolve: resolve(map[string]*function{"f": f}),
	})
	send(t, b, event("1"), http.StatusAccepted)
	f.wait(t, 1)
	ended := make(chan error)
	go func() { ended <- b.Drain(t.Context()) }()
	close(release)
	if err := <-ended; err != nil || !served.Load() {
		t.Errorf("Drain ended with %v, served: %t", err, served.Load())
	}
}

func TestDrainCutsOffInTheEnd(t *testing.T) {
	release := make(chan struct{})
	f := newFunction(t, func(http.ResponseWriter, int) { <-release })
	defer close(release)
	b := newBroker(t, broker.Options{
		Triggers: []*eventingv1.Trigger{trigger(t, "all", "")}, Resolve: resolve(map[string]*function{"f": f}),
	})
	send(t, b, event("1"), http.StatusAccepted)
	f.wait(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain ended with %v, want the context's error", err)
	}
}

func TestTraces(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	traceOf := func(header http.Header) string {
		parts := strings.Split(header.Get("Traceparent"), "-")
		if len(parts) != 4 || len(parts[1]) != 32 {
			t.Fatalf("the traceparent is %q", header.Get("Traceparent"))
		}
		return parts[1]
	}
	f := newFunction(t, status(http.StatusNoContent))
	b := newBroker(t, broker.Options{
		Triggers: []*eventingv1.Trigger{trigger(t, "one", ""), trigger(t, "two", "")}, Resolve: resolve(map[string]*function{"f": f}),
	})
	send(t, b, event("given"), http.StatusAccepted, "traceparent", parent)
	send(t, b, event("new"), http.StatusAccepted)
	drain(t, b)
	traces := map[string][]string{}
	events, headers := f.got()
	for i, e := range events {
		traces[e.ID()] = append(traces[e.ID()], traceOf(headers[i]))
	}
	if got := traces["given"]; len(got) != 2 || got[0] != traceOf(http.Header{"Traceparent": {parent}}) || got[1] != got[0] {
		t.Errorf("the event of a trace was sent in the traces %q", got)
	}
	if got := traces["new"]; len(got) != 2 || got[0] != got[1] || got[0] == traces["given"][0] {
		t.Errorf("the event without a trace was sent in the traces %q", got)
	}
}

func TestReply(t *testing.T) {
	first := newFunction(t, func(w http.ResponseWriter, _ int) {
		reply := event("reply", "type", "second")
		_ = cehttp.WriteResponseWriter(context.Background(), binding.ToMessage(&reply), http.StatusOK, w)
	})
	second := newFunction(t, status(http.StatusNoContent))
	b := newBroker(t, broker.Options{
		Triggers: []*eventingv1.Trigger{
			trigger(t, "first", "  filter: {attributes: {type: dev.updraft.due}}"),
			triggerOf(t, "second", "second", "  filter: {attributes: {type: second}}"),
		},
		Resolve: resolve(map[string]*function{"f": first, "second": second}),
	})
	send(t, b, event("1", "knativebrokerttl", "2"), http.StatusAccepted) // 2 and 1 left at the first: the reply is refused
	first.wait(t, 1)
	send(t, b, event("2"), http.StatusAccepted)
	second.wait(t, 1)
	drain(t, b)
	if got := second.ids(); !slices.Equal(got, []string{"reply"}) {
		t.Errorf("the second function got %q", got)
	}
	events, _ := second.got()
	if ttl := events[0].Extensions()["knativebrokerttl"]; ttl != nil {
		t.Errorf("the subscriber sees the broker's own mark: %v", ttl)
	}
}

func TestNewChecksReferences(t *testing.T) {
	_, err := broker.New(broker.Options{
		Triggers: []*eventingv1.Trigger{trigger(t, "all", "")}, Resolve: resolve(nil),
	})
	if err == nil || !strings.Contains(err.Error(), "cannot resolve Service f of Trigger all") {
		t.Errorf("New gave %v", err)
	}
}
