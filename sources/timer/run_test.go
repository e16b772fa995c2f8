package timer_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/eventing/pkg/client/clientset/versioned"
	sources "knative.dev/eventing/pkg/client/clientset/versioned/typed/sources/v1"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/updraft-dev/updraft/pkg/local/controlplane/planetest"
	"github.com/updraft-dev/updraft/sources/timer"
)

const eachSecond = "* * * * * *"

// TestRun lets real seconds pass, since the cron knows no other clock.
func TestRun(t *testing.T) {
	plane := planetest.Start(t)
	objects := versioned.NewForConfigOrDie(plane.Config).SourcesV1().PingSources("default")
	broker, other := newSink(t), newSink(t)
	logged := &lines{}
	create(t, objects, pingSource("before", eachSecond)) // exists before anybody watches

	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- timer.Run(ctx, timer.Options{
			Config: plane.Config, Sink: broker.url, Ready: func() { close(ready) }, Log: slog.New(slog.NewTextHandler(logged, nil)),
		})
	}()
	<-ready
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	broker.wait(t, "before", 1)

	t.Run("rings with what the object says", func(t *testing.T) { testRing(t, objects, broker) })
	t.Run("sends to a URI", func(t *testing.T) {
		source := pingSource("elsewhere", eachSecond)
		source.Spec.Sink = duckv1.Destination{URI: other.url}
		create(t, objects, source)
		other.wait(t, "elsewhere", 1)
	})
	t.Run("follows a change", func(t *testing.T) {
		source := create(t, objects, pingSource("changed", "0 0 0 1 1 *"))
		source.Spec.Schedule = eachSecond
		update(t, objects, source)
		broker.wait(t, "changed", 1)
	})
	t.Run("stops with the object", func(t *testing.T) {
		create(t, objects, pingSource("gone", eachSecond))
		broker.wait(t, "gone", 1)
		if err := objects.Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		broker.wait(t, "before", broker.count("before")+2) // a ring may be under way
		rang := broker.count("gone")
		broker.wait(t, "before", broker.count("before")+2)
		if got := broker.count("gone"); got != rang {
			t.Errorf("it rang %d times more", got-rang)
		}
	})
	t.Run("says what is invalid, and takes it back when it is mended", func(t *testing.T) {
		source := create(t, objects, pingSource("broken", "every day"))
		logged.wait(t, "default/broken", "spec.schedule")
		source.Spec.Schedule = eachSecond
		source = update(t, objects, source)
		broker.wait(t, "broken", 1)
		source.Spec.Sink = duckv1.Destination{Ref: &duckv1.KReference{APIVersion: "v1", Kind: "Service", Name: "s", Namespace: "default"}}
		update(t, objects, source)
		logged.wait(t, "default/broken", "only a Broker or a URI has an address")
	})
	t.Run("says what is lost", func(t *testing.T) {
		source := pingSource("unlucky", eachSecond)
		source.Spec.Sink = duckv1.Destination{URI: newRefusal(t)}
		create(t, objects, source)
		logged.wait(t, "did not send", "500")
	})
}

func testRing(t *testing.T, objects sources.PingSourceInterface, broker *sink) {
	source := pingSource("alarm", eachSecond)
	source.Spec.CloudEventOverrides = &duckv1.CloudEventOverrides{Extensions: map[string]string{"kind": "Stack", "namespace": "team", "name": "web"}}
	source.Spec.Data, source.Spec.ContentType = `{"a":1}`, "application/json"
	create(t, objects, source)
	start := time.Now()
	broker.wait(t, "alarm", 1)
	t.Logf("rang after %s", time.Since(start))
	event := broker.last("alarm")
	if event.Type() != "dev.knative.sources.ping" || string(event.Data()) != `{"a":1}` {
		t.Errorf("got %s", event)
	}
	for key, want := range source.Spec.CloudEventOverrides.Extensions {
		if got := event.Extensions()[key]; got != want {
			t.Errorf("extension %s is %v, want %s", key, got, want)
		}
	}
}

func pingSource(name, schedule string) *sourcesv1.PingSource {
	source := &sourcesv1.PingSource{ObjectMeta: metav1.ObjectMeta{Name: name}}
	source.Spec.Schedule = schedule
	source.Spec.Sink.Ref = &duckv1.KReference{APIVersion: "eventing.knative.dev/v1", Kind: "Broker", Name: "updraft", Namespace: "updraft-system"}
	return source
}

func create(t *testing.T, objects sources.PingSourceInterface, source *sourcesv1.PingSource) *sourcesv1.PingSource {
	t.Helper()
	made, err := objects.Create(t.Context(), source, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func update(t *testing.T, objects sources.PingSourceInterface, source *sourcesv1.PingSource) *sourcesv1.PingSource {
	t.Helper()
	made, err := objects.Update(t.Context(), source, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// sink keeps events by the name of the PingSource that they are from.
type sink struct {
	url    *apis.URL
	mu     sync.Mutex
	events map[string][]cloudevents.Event
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{events: map[string][]cloudevents.Event{}}
	s.url = serve(t, s)
	return s
}

func newRefusal(t *testing.T) *apis.URL {
	t.Helper()
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
}

func serve(t *testing.T, handler http.Handler) *apis.URL {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	url, err := apis.ParseURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, err := binding.ToEvent(r.Context(), cehttp.NewMessageFromHttpRequest(r))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, name, _ := strings.Cut(event.Source(), "/pingsources/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events[name] = append(s.events[name], *event)
	w.WriteHeader(http.StatusAccepted)
}

func (s *sink) wait(t *testing.T, name string, rings int) {
	t.Helper()
	planetest.Eventually(t, "the ring of "+name, func() error {
		if got := s.count(name); got < rings {
			return fmt.Errorf("it rang %d times, want %d", got, rings)
		}
		return nil
	})
}

func (s *sink) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events[name])
}

func (s *sink) last(name string) cloudevents.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[name][len(s.events[name])-1]
}

// lines keeps what was logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(line))
	return len(line), nil
}

// wait waits for a line with all the texts.
func (l *lines) wait(t *testing.T, texts ...string) {
	t.Helper()
	planetest.Eventually(t, "a line in the log", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, line := range l.all {
			found := true
			for _, text := range texts {
				found = found && strings.Contains(line, text)
			}
			if found {
				return nil
			}
		}
		return fmt.Errorf("none of %q has %q", l.all, texts)
	})
}
