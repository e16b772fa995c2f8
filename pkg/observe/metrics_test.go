package observe

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	metricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// receiver stands in for a collector: it takes metrics by OTLP and says what came.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		var body io.Reader = request.Body
		if request.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				t.Error(err)
				return
			}
		}
		content, err := io.ReadAll(body)
		var pushed collectorv1.ExportMetricsServiceRequest
		if err == nil {
			err = proto.Unmarshal(content, &pushed)
		}
		if err != nil {
			t.Error(err)
		}
		r.take(&pushed)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(pushed *collectorv1.ExportMetricsServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range pushed.GetResourceMetrics() {
		for _, scope := range of.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				for _, p := range m.GetSum().GetDataPoints() {
					r.got = append(r.got, fmt.Sprintf("%s %s%s %d %s", labelsOf(of.GetResource().GetAttributes()), m.GetName(), labelsOf(p.GetAttributes()), p.GetAsInt(), temporality(m.GetSum().GetAggregationTemporality())))
				}
				for _, p := range m.GetHistogram().GetDataPoints() {
					r.got = append(r.got, fmt.Sprintf("%s %s%s %v in %d %s", labelsOf(of.GetResource().GetAttributes()), m.GetName(), labelsOf(p.GetAttributes()), p.GetSum(), p.GetCount(), temporality(m.GetHistogram().GetAggregationTemporality())))
				}
			}
		}
	}
}

func temporality(t metricsv1.AggregationTemporality) string {
	return strings.ToLower(strings.TrimPrefix(t.String(), "AGGREGATION_TEMPORALITY_"))
}

func labelsOf(attributes []*commonv1.KeyValue) string {
	var all []string
	for _, a := range attributes {
		all = append(all, a.GetKey()+"="+a.GetValue().GetStringValue())
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ",") + "}"
}

func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.got)
	return r.got
}

func TestWhatIsMeasuredIsPushed(t *testing.T) {
	to := newReceiver(t)
	metrics := Metrics{Protocol: ProtocolHTTP, Endpoint: to.URL + "/v1/metrics", Interval: time.Hour}
	m, err := NewMeter(t.Context(), metrics, "updraft-stack", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	log := NewLogger(io.Discard, slog.LevelInfo)
	handler := m.Serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		e := cloudevents.New()
		e.SetType("x")
		e.SetExtension("kind", r.Header.Get("Kind"))
		ctx, look := Begin(r.Context(), log, e)
		if r.Header.Get("Acts") != "" {
			log.InfoContext(ctx, "Did something")
		}
		Measured(ctx, Measurement{Retries, 1, []attribute.KeyValue{attribute.String("reason", "Unknown")}}, Measurement{QueueTime, 1.5, nil})
		look.End(ctx, map[string]int{"later": 503, "refused": 409, "": 204}[r.Header.Get("Answer")])
		Dropped(ctx)
	}))
	for _, header := range []http.Header{{}, {"Kind": {"Stack"}}, {"Kind": {"Stack"}, "Acts": {"x"}}, {"Kind": {"Update"}, "Answer": {"later"}}, {"Kind": {"Update"}, "Answer": {"refused"}}} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.Header = header
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	if got := to.all(); got != nil {
		t.Errorf("pushed before it was time: %s", got)
	}
	m.Stop()
	want := []string{
		"updraft.events.dropped{function=updraft-stack} 5 delta",
		"updraft.looks{function=updraft-stack,kind=Stack,outcome=acted} 1 delta",
		"updraft.looks{function=updraft-stack,kind=Stack,outcome=idle} 1 delta",
		"updraft.looks{function=updraft-stack,kind=Update,outcome=later} 1 delta",
		"updraft.looks{function=updraft-stack,kind=Update,outcome=refused} 1 delta",
		"updraft.looks{function=updraft-stack,kind=other,outcome=idle} 1 delta",
		"updraft.queue.time{} 7.5 in 5 delta",
		"updraft.retries{reason=Unknown} 5 delta",
	}
	for i := range want {
		want[i] = "{service.name=updraft-stack,service.namespace=updraft} " + want[i]
	}
	if diff := cmp.Diff(want, to.all()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMetricsThatAreOffOrLostChangeNothing(t *testing.T) {
	off, err := NewMeter(t.Context(), Metrics{}, "x", nil)
	if off != nil || err != nil {
		t.Errorf("%v, %v", off, err)
	}
	off.Stop()
	Measured(context.Background(), Measurement{Retries, 1, nil})
	Dropped(context.Background())

	var said strings.Builder
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	metrics := Metrics{Protocol: ProtocolHTTP, Endpoint: dead.URL, Interval: 50 * time.Millisecond}
	m, err := NewMeter(t.Context(), metrics, "x", slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	answered := httptest.NewRecorder()
	m.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Measured(r.Context(), Measurement{Retries, 1, nil})
		time.Sleep(200 * time.Millisecond) // some pushes are tried meanwhile
		w.WriteHeader(http.StatusNoContent)
	})).ServeHTTP(answered, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
	m.Stop()
	if answered.Code != http.StatusNoContent || strings.Count(said.String(), "Metrics cannot be pushed and are lost") != 1 {
		t.Errorf("answered %d, said %s", answered.Code, said.String())
	}
}
