package observe

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const (
	// scope names this instrumentation.
	scope = "github.com/updraft-dev/updraft/pkg/observe"
	// patience is how long one request, or one run, waits for the collector.
	patience = 200 * time.Millisecond
	// background is how long a collector may take to which nobody waits.
	background = 2 * time.Second
	// every is how often spans are sent that nobody waits for.
	every = 5 * time.Second
)

// Identity is who makes the spans.
type Identity struct {
	// Service is the function's name, or updraft-agent.
	Service string
	// Instance tells its processes apart: the pod's name.
	Instance string
}

// Telemetry sends spans. A nil Telemetry is one that is off.
type Telemetry struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	exporter *watched
	identity Identity
	// warm says that a look has been before.
	warm atomic.Bool
}

// New sets up what the configuration asks for. It is nil if that is nothing. No
// connection is made before there is a span.
func New(ctx context.Context, t Tracing, who Identity, log *slog.Logger) (*Telemetry, error) {
	if !t.On() {
		return nil, nil //nolint:nilnil // off is nil, and each method takes that
	}
	exporter, err := newExporter(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("cannot set up tracing: %w", err)
	}
	w := &watched{SpanExporter: exporter, log: log, endpoint: t.Endpoint}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sampler(t.Rate)),
		sdktrace.WithBatcher(w, sdktrace.WithExportTimeout(background), sdktrace.WithBatchTimeout(every)),
		sdktrace.WithResource(resource.NewWithAttributes(semconv.SchemaURL,
			semconv.ServiceName(who.Service), semconv.ServiceNamespace("updraft"), semconv.ServiceInstanceID(who.Instance))),
	)
	return &Telemetry{provider: provider, tracer: provider.Tracer(scope), exporter: w, identity: who}, nil
}

func newExporter(ctx context.Context, t Tracing) (sdktrace.SpanExporter, error) {
	if t.Protocol == ProtocolStdout {
		return stdouttrace.New()
	}
	return otlptrace.New(ctx, NewClient(t))
}

// NewClient makes a client of an OTLP receiver. It does not repeat what failed:
// nobody waits for that long.
func NewClient(t Tracing) otlptrace.Client {
	if t.Protocol == ProtocolGRPC {
		return otlptracegrpc.NewClient(otlptracegrpc.WithEndpointURL(t.Endpoint), otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}))
	}
	return otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(t.Endpoint), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
}

// sampler is as Knative's.
func sampler(rate float64) sdktrace.Sampler {
	switch {
	case rate >= 1:
		return sdktrace.AlwaysSample()
	case rate <= 0:
		return sdktrace.NeverSample()
	default:
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(rate))
	}
}

// watched knows whether the collector answered the last time.
type watched struct {
	sdktrace.SpanExporter
	log      *slog.Logger
	endpoint string
	down     atomic.Bool
}

// ExportSpans never fails: that it cannot is said once, and spans are lost.
func (w *watched) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := w.SpanExporter.ExportSpans(ctx, spans); err != nil {
		w.failed(err)
	} else {
		w.down.Store(false)
	}
	return nil
}

func (w *watched) failed(err error) {
	if !w.down.Swap(true) {
		w.log.Warn("Spans cannot be sent and are lost", "endpoint", w.endpoint, "error", err.Error())
	}
}

// Flush sends what there is, and waits for it a moment; if the collector did not
// answer the last time, not at all.
func (t *Telemetry) Flush() {
	if t == nil || t.exporter.down.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := t.provider.ForceFlush(ctx); err != nil {
		t.exporter.failed(err)
	}
}

// reached says whether the collector took what was sent last.
func (t *Telemetry) reached() bool { return t != nil && !t.exporter.down.Load() }

// Stop sends what is left.
func (t *Telemetry) Stop() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // what is left is lost, and nothing else
}

// Provider makes spans for a library that asks for one.
func (t *Telemetry) Provider() trace.TracerProvider {
	if t == nil {
		return noop.NewTracerProvider()
	}
	return t.provider
}

// Start begins a span. That of a Telemetry that is off is none.
func (t *Telemetry) Start(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	if t == nil {
		return ctx, noop.Span{}
	}
	return t.tracer.Start(ctx, name, trace.WithAttributes(attributes...)) //nolint:spancheck // the caller ends it
}

type telemetryKey struct{}

// Serve makes what a handler does visible: its looks (Begin) are in the trace
// that a request comes with, and their spans are sent before it is answered.
func (t *Telemetry) Serve(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := Extract(r.Context(), r.Header)
		if t != nil {
			ctx = context.WithValue(ctx, telemetryKey{}, t)
			defer t.Flush() // an answer without a body leaves when the handler has returned
		}
		handler.ServeHTTP(w, r.WithContext(ctx))
	})
}

func telemetryOf(ctx context.Context) *Telemetry {
	t, _ := ctx.Value(telemetryKey{}).(*Telemetry)
	return t
}
