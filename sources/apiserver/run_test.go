package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/pkg/apis"

	"github.com/updraft-dev/updraft/pkg/local/controlplane/planetest"
	"github.com/updraft-dev/updraft/sources/apiserver"
)

// sourceYAML watches one kind of each sort: plain, selected by label, custom, without a namespace.
const sourceYAML = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: other, namespace: updraft-system}
---
apiVersion: sources.knative.dev/v1
kind: ApiServerSource
metadata: {name: updraft, namespace: updraft-system}
spec:
  serviceAccountName: other
  resources:
    - {apiVersion: v1, kind: ConfigMap}
    - {apiVersion: v1, kind: Secret, selector: {matchLabels: {watched: "yes"}}}
    - {apiVersion: sources.knative.dev/v1, kind: PingSource}
    - {apiVersion: v1, kind: Namespace}
  namespaceSelector: {}
  ceOverrides: {extensions: {cluster: dev}}
  sink:
    ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: updraft}
`

func TestRun(t *testing.T) {
	plane := planetest.Start(t)
	client := kubernetes.NewForConfigOrDie(plane.Config)
	for i := range 100 { // so that one of the lists takes longer than the others
		large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("old-%d", i)}, Data: map[string]string{"large": strings.Repeat("x", 50_000)}}
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("what is created right after Ready yields an event", func(t *testing.T) { testReady(t, plane.Config) })
	t.Run("events bear references", func(t *testing.T) { testEvents(t, plane.Config) })
	t.Run("the own namespace is watched without a selector", func(t *testing.T) { testNamespaces(t, plane.Config, nil, "updraft-system") })
	t.Run("selected namespaces are watched", func(t *testing.T) {
		testNamespaces(t, plane.Config, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "yes"}}, "selected")
	})
	t.Run("a lost event is logged", func(t *testing.T) { testLost(t, plane.Config) })
	t.Run("a kind that is not served is an error", func(t *testing.T) {
		source := load(t, strings.ReplaceAll(sourceYAML, "kind: PingSource", "kind: Missing"))
		err := apiserver.Run(t.Context(), apiserver.Options{Source: source, Config: plane.Config, Sink: &apis.URL{Scheme: "http", Host: "127.0.0.1:1"}})
		if err == nil || !strings.Contains(err.Error(), "serves no missings in sources.knative.dev/v1") {
			t.Errorf("Run gave %v", err)
		}
	})
}

// testReady creates one object of each kind the moment the source says it is ready, many times over.
func testReady(t *testing.T, config *rest.Config) {
	const starts = 20
	client, objects := kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	sink := newSink(t, http.StatusAccepted)
	var all []string
	for i := range starts {
		name := fmt.Sprintf("new-%d", i)
		stop := start(t, load(t, sourceYAML), config, sink)
		configMap(t, client, "default", name)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"watched": "yes"}}}
		if _, err := client.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pingSource(t, objects, name)
		namespace(t, client, name, nil)
		wanted := []string{"add ConfigMap " + name, "add Secret " + name, "add PingSource " + name, "add Namespace " + name}
		sink.wait(t, wanted...)
		all = append(all, wanted...)
		stop()
	}
	t.Logf("%d of %d events came", sink.count(all...), len(all))
}

func testEvents(t *testing.T, config *rest.Config) {
	client := kubernetes.NewForConfigOrDie(config)
	sink := newSink(t, http.StatusAccepted)
	defer start(t, load(t, sourceYAML), config, sink)()
	made := configMap(t, client, "default", "shape")
	made.Data = map[string]string{"a": "secret"}
	if _, err := client.CoreV1().ConfigMaps("default").Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().ConfigMaps("default").Delete(t.Context(), "shape", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	unlabelled := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "unlabelled"}}
	if _, err := client.CoreV1().Secrets("default").Create(t.Context(), unlabelled, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labelled := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "labelled", Labels: map[string]string{"watched": "yes"}}}
	if _, err := client.CoreV1().Secrets("default").Create(t.Context(), labelled, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sink.wait(t, "add ConfigMap shape", "update ConfigMap shape", "delete ConfigMap shape", "add Secret labelled")
	if sink.count("add Secret unlabelled") != 0 {
		t.Error("a Secret that the selector leaves out yielded an event")
	}
	event := sink.get("update ConfigMap shape")
	want := map[string]any{"kind": "ConfigMap", "apiversion": "v1", "name": "shape", "namespace": "default", "cluster": "dev"}
	if diff := cmp.Diff(want, event.Extensions()); diff != "" {
		t.Errorf("extensions (-want +got):\n%s", diff)
	}
	if event.Source() != config.Host || event.Subject() != "/apis/v1/namespaces/default/configmaps/shape" {
		t.Errorf("source %q, subject %q", event.Source(), event.Subject())
	}
	var data map[string]any
	if err := json.Unmarshal(event.Data(), &data); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "shape", "namespace": "default"}, data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

// testNamespaces makes the same object in three namespaces, of which one is watched; the one in the watched namespace comes last, so
// that the others would have come before it.
func testNamespaces(t *testing.T, config *rest.Config, selector *metav1.LabelSelector, watched string) {
	client := kubernetes.NewForConfigOrDie(config)
	namespace(t, client, "updraft-system", nil)
	namespace(t, client, "selected", map[string]string{"team": "yes"})
	source := load(t, sourceYAML)
	source.Spec.NamespaceSelector = selector
	sink := newSink(t, http.StatusAccepted)
	defer start(t, source, config, sink)()
	for _, each := range []string{"default", "selected", "updraft-system"} {
		if each != watched {
			configMap(t, client, each, "in-"+each+"-not-"+watched)
		}
	}
	configMap(t, client, watched, "in-"+watched)
	namespace(t, client, "new-beside-"+watched, nil) // a kind without namespaces is watched whatever is selected
	sink.wait(t, "add ConfigMap in-"+watched, "add Namespace new-beside-"+watched)
	sink.mu.Lock()
	defer sink.mu.Unlock()
	for key := range sink.events {
		if strings.Contains(key, "-not-") {
			t.Errorf("got %q", key)
		}
	}
}

func testLost(t *testing.T, config *rest.Config) {
	sink := newSink(t, http.StatusInternalServerError) // which the adapter does not try again
	logged := &lines{}
	log := slog.New(slog.NewTextHandler(logged, nil))
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- apiserver.Run(ctx, apiserver.Options{Source: load(t, sourceYAML), Config: config, Sink: sink.url, Log: log, Ready: func() { close(ready) }})
	}()
	<-ready
	configMap(t, kubernetes.NewForConfigOrDie(config), "default", "unlucky")
	planetest.Eventually(t, "its line", func() error { // beside those of what the plane makes by itself
		if line := logged.with("configmaps/unlucky"); !strings.Contains(line, "500") {
			return fmt.Errorf("logged %q", line)
		}
		return nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// start runs the source until the returned function is called, and returns when it is ready.
func start(t *testing.T, source *sourcesv1.ApiServerSource, config *rest.Config, sink *sink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- apiserver.Run(ctx, apiserver.Options{Source: source, Config: config, Sink: sink.url, Ready: func() { close(ready) }, Log: planetest.Log(t)})
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("it ended before it was ready: %v", err)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// sink keeps events by what they are about.
type sink struct {
	url    *apis.URL
	status int

	mu     sync.Mutex
	events map[string]cloudevents.Event // "add ConfigMap name"
}

func newSink(t *testing.T, status int) *sink {
	t.Helper()
	s := &sink{status: status, events: map[string]cloudevents.Event{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	url, err := apis.ParseURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.url = url
	return s
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, err := binding.ToEvent(r.Context(), cehttp.NewMessageFromHttpRequest(r))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	verb := strings.TrimPrefix(event.Type(), "dev.knative.apiserver.ref.")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events[fmt.Sprintf("%s %s %s", verb, event.Extensions()["kind"], event.Extensions()["name"])] = *event
	w.WriteHeader(s.status)
}

func (s *sink) wait(t *testing.T, keys ...string) {
	t.Helper()
	planetest.Eventually(t, "the events", func() error {
		if got := s.count(keys...); got != len(keys) {
			return fmt.Errorf("%d of %q came", got, keys)
		}
		return nil
	})
}

func (s *sink) count(keys ...string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, key := range keys {
		if _, ok := s.events[key]; ok {
			count++
		}
	}
	return count
}

func (s *sink) get(key string) cloudevents.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[key]
}

// lines keeps what is logged.
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

// with is the first line that holds text, or none.
func (l *lines) with(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

func configMap(t *testing.T, client kubernetes.Interface, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	made, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func namespace(t *testing.T, client kubernetes.Interface, name string, labels map[string]string) {
	t.Helper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), made, metav1.CreateOptions{}); err != nil && !strings.Contains(err.Error(), "already exists") {
		t.Fatal(err)
	}
}

func pingSource(t *testing.T, objects dynamic.Interface, name string) {
	t.Helper()
	resource := schema.GroupVersionResource{Group: "sources.knative.dev", Version: "v1", Resource: "pingsources"}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sources.knative.dev/v1", "kind": "PingSource", "metadata": map[string]any{"name": name},
	}}
	if _, err := objects.Resource(resource).Namespace("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, content string) *sourcesv1.ApiServerSource {
	t.Helper()
	source, err := apiserver.LoadSource(file(t, content))
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
