package observe

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"

	"github.com/updraft-dev/updraft/pkg/event"
)

// Metric is something that functions measure, by its OpenTelemetry name.
type Metric string

// What is measured. docs/metrics.md tells the labels of each.
const (
	Updates        Metric = "updraft.updates"
	UpdateDuration Metric = "updraft.update.duration"
	PhaseDuration  Metric = "updraft.run.phase.duration"
	QueueTime      Metric = "updraft.queue.time"
	Retries        Metric = "updraft.retries"
	Stalls         Metric = "updraft.stalls"
	Drift          Metric = "updraft.drift"
	Looks          Metric = "updraft.looks"
	EventsDropped  Metric = "updraft.events.dropped"
)

// Instrument tells how a Metric is kept.
type Instrument struct {
	Metric Metric
	// Unit in the notation of UCUM: "s" for a histogram of seconds, else a
	// counter of what is in braces.
	Unit        string
	Description string
}

// Instruments are all that functions push.
var Instruments = []Instrument{
	{Updates, "{update}", "Updates that ended."},
	{UpdateDuration, "s", "Time from when a pod took a run to its end."},
	{PhaseDuration, "s", "Time that a phase of a run took."},
	{QueueTime, "s", "Time from when an Update was made, which is when the event was seen, to when a pod took its run."},
	{Retries, "{retry}", "Runs that were started because the one before failed."},
	{Stalls, "{stall}", "Times that a Stack came to need a person."},
	{Drift, "{update}", "Updates that found resources other than they were left."},
	{Looks, "{look}", "Events that functions looked into."},
	{EventsDropped, "{event}", "Events that were refused since they are malformed."},
}

// bounds of histograms, in seconds: from a warm start to a run of an hour.
var bounds = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}

// Measurement is one value of a Metric: how many, or how many seconds.
type Measurement struct {
	Metric Metric
	Value  float64
	Labels []attribute.KeyValue
}

// Meter pushes metrics. A nil Meter is one that is off.
//
// It pushes what was added since the last push (OpenTelemetry's delta
// temporality), and no name of a pod: a pod lives a minute or two, and a series for
// each would say nothing and never end. A collector adds up.
type Meter struct {
	provider   *sdkmetric.MeterProvider
	counters   map[Metric]metric.Int64Counter
	histograms map[Metric]metric.Float64Histogram
	function   string
}

// NewMeter sets up what the configuration asks for. It is nil if that is nothing.
func NewMeter(ctx context.Context, m Metrics, function string, log *slog.Logger) (*Meter, error) {
	if !m.On() {
		return nil, nil //nolint:nilnil // off is nil, and each method takes that
	}
	exporter, err := newMetricExporter(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("cannot set up metrics: %w", err)
	}
	options := []sdkmetric.PeriodicReaderOption{sdkmetric.WithTimeout(background)}
	if m.Interval > 0 {
		options = append(options, sdkmetric.WithInterval(m.Interval))
	}
	reader := sdkmetric.NewPeriodicReader(&watchedMetrics{Exporter: exporter, log: log, endpoint: m.Endpoint}, options...)
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(
		resource.NewWithAttributes(semconv.SchemaURL, semconv.ServiceName(function), semconv.ServiceNamespace("updraft"))))
	meter := &Meter{
		provider: provider, function: function,
		counters: map[Metric]metric.Int64Counter{}, histograms: map[Metric]metric.Float64Histogram{},
	}
	of := provider.Meter(scope)
	for _, i := range Instruments {
		if i.Unit == "s" {
			meter.histograms[i.Metric], err = of.Float64Histogram(string(i.Metric), metric.WithUnit(i.Unit),
				metric.WithDescription(i.Description), metric.WithExplicitBucketBoundaries(bounds...))
		} else {
			meter.counters[i.Metric], err = of.Int64Counter(string(i.Metric), metric.WithUnit(i.Unit), metric.WithDescription(i.Description))
		}
		if err != nil {
			return nil, fmt.Errorf("cannot make the metric %s: %w", i.Metric, err)
		}
	}
	return meter, nil
}

// newMetricExporter makes a client of an OTLP receiver, which does not repeat what
// failed: a receiver may have taken it, and would count it twice.
func newMetricExporter(ctx context.Context, m Metrics) (sdkmetric.Exporter, error) {
	delta := sdkmetric.DeltaTemporalitySelector
	if m.Protocol == ProtocolGRPC {
		return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpointURL(m.Endpoint),
			otlpmetricgrpc.WithTemporalitySelector(delta), otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{}))
	}
	return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(m.Endpoint),
		otlpmetrichttp.WithTemporalitySelector(delta), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
}

// watchedMetrics says once that the collector does not answer.
type watchedMetrics struct {
	sdkmetric.Exporter
	log      *slog.Logger
	endpoint string
	down     atomic.Bool
}

// Export never fails: that it cannot is said once, and what was measured is lost.
func (w *watchedMetrics) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	err := w.Exporter.Export(ctx, data)
	if down := w.down.Swap(err != nil); err != nil && !down {
		w.log.Warn("Metrics cannot be pushed and are lost", "endpoint", w.endpoint, "error", err.Error())
	}
	return nil
}

// Stop pushes what is left. It waits for that a moment: the pod is about to go, and
// nobody waits for it.
func (m *Meter) Stop() {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), background)
	defer cancel()
	// Shutdown alone would cut off a push that is under way. What is left is lost,
	// and nothing else.
	_ = m.provider.ForceFlush(ctx)
	_ = m.provider.Shutdown(ctx)
}

type meterKey struct{}

// Serve makes what a handler measures (Measured) count.
func (m *Meter) Serve(handler http.Handler) http.Handler {
	if m == nil {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), meterKey{}, m)))
	})
}

// Measured takes measurements in, if anybody is to know them.
func Measured(ctx context.Context, all ...Measurement) {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	if m == nil {
		return
	}
	for _, one := range all {
		labels := metric.WithAttributes(one.Labels...)
		if h, is := m.histograms[one.Metric]; is {
			h.Record(ctx, one.Value, labels)
		} else if c, is := m.counters[one.Metric]; is {
			c.Add(ctx, int64(one.Value), labels)
		}
	}
}

// Dropped counts an event that is refused since it is malformed.
func Dropped(ctx context.Context) {
	if m, _ := ctx.Value(meterKey{}).(*Meter); m != nil {
		Measured(ctx, Measurement{EventsDropped, 1, []attribute.KeyValue{attribute.String("function", m.function)}})
	}
}

// looked counts a look.
func looked(ctx context.Context, kind string, idle bool, status int) {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	if m == nil {
		return
	}
	outcome := "acted"
	switch {
	case status >= http.StatusInternalServerError:
		outcome = "later"
	case status >= http.StatusBadRequest:
		outcome = "refused"
	case idle:
		outcome = "idle"
	}
	switch kind {
	case event.KindStack, event.KindWorkspace, event.KindUpdate, event.KindProgram, event.KindJob, event.KindPod,
		event.KindDeployment, event.KindPoll, event.KindPush, event.KindSweep:
	default: // what somebody calls it who may send anything
		kind = "other"
	}
	Measured(ctx, Measurement{Looks, 1, []attribute.KeyValue{
		attribute.String("function", m.function), attribute.String("kind", kind), attribute.String("outcome", outcome)}})
}
