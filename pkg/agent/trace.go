package agent

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/run"
)

// tracing makes the spans of a run, and takes the time of its phases. One that is
// off makes no spans.
type tracing struct {
	*observe.Telemetry
	// relay takes the CLI's spans; nil if there are none to take.
	relay *relay
	// took is how long each phase took, in seconds.
	took map[string]float64
}

// trace sets up the spans of a container of the run. What cannot be set up is
// said and left out: it fails no run.
func (c Config) trace(ctx context.Context) (context.Context, tracing) {
	telemetry, err := observe.New(ctx, c.Traces, observe.Identity{Service: "updraft-agent", Instance: c.Host}, c.Log)
	if err != nil {
		c.Log.Warn("the run is not traced", "error", err)
	}
	t := tracing{Telemetry: telemetry, took: map[string]float64{}}
	if telemetry == nil {
		return ctx, t
	}
	return observe.Continue(ctx, c.Traceparent), t
}

// ofRun are the attributes of a run's own span.
func ofRun(spec run.Spec) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.CICDPipelineName(spec.Stack.Name), semconv.CICDPipelineRunID(spec.UID),
		semconv.K8SNamespaceName(spec.Namespace), semconv.K8SJobName(spec.Name),
		attribute.String("updraft.name", spec.Name), attribute.String("updraft.type", string(spec.Operation.Type)),
	}
}

// phase does a part of a run in a span of its own.
func (t tracing) phase(ctx context.Context, name string, do func(context.Context) error) error {
	ctx, span := t.Start(ctx, name, semconv.CICDPipelineTaskName(name))
	defer span.End()
	began := time.Now()
	err := do(ctx)
	if t.took != nil {
		t.took[name] = time.Since(began).Seconds()
	}
	say(span, err, semconv.CICDPipelineTaskRunResultSuccess, semconv.CICDPipelineTaskRunResultFailure, semconv.CICDPipelineTaskRunResultCancellation)
	return err
}

// say says how what a span is about ended. Of an error it tells the reason and not the words,
// which may hold what a span must not.
func say(span trace.Span, err error, success, failure, cancellation attribute.KeyValue) {
	switch {
	case err == nil:
		span.SetAttributes(success)
	case errors.Is(err, errStopped):
		span.SetAttributes(cancellation)
	default:
		span.SetAttributes(failure, semconv.ErrorTypeKey.String(string(faultOf(err).reason)))
		span.SetStatus(codes.Error, "")
	}
}

// open begins to take the CLI's spans, if those of the run are kept.
func (t *tracing) open(ctx context.Context, c Config, scrub func(string) string) {
	span := trace.SpanFromContext(ctx)
	if t.Telemetry == nil || !observe.Sampled(span) {
		return
	}
	relay, err := newRelay(observe.NewClient(c.Traces), span.SpanContext().TraceID(), scrub)
	if err != nil {
		c.Log.Warn("the CLI is not traced", "error", err)
		return
	}
	t.relay = relay
}

// environment makes a process of the CLI a part of the trace.
func (t tracing) environment(ctx context.Context, env environment) environment {
	if t.relay == nil {
		return nil
	}
	if _, own := env.lookup(otelTracesOption); own {
		return nil
	}
	return environment{otelTracesOption + "=" + t.relay.url, run.EnvTraceparent + "=" + observe.Traceparent(ctx)}
}

// otelTracesOption is the CLI's flag --otel-traces, as an environment variable.
const otelTracesOption = "PULUMI_OPTION_OTEL_TRACES"

// close sends what is left.
func (t tracing) close() {
	t.Flush()
	if t.relay != nil {
		t.relay.close()
	}
}
