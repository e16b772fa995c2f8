package observe

import (
	"context"
	"net/http"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// Sending gives an event that is about to be sent the trace that it is sent in,
// in the request's headers and, for Brokers that carry events by other means, in
// the event's own extension for it. The function that is returned is told whether
// the event was accepted.
func Sending(ctx context.Context, e *cloudevents.Event) (context.Context, func(accepted bool)) {
	done := func(bool) {}
	ctx = WithSpan(ctx)
	if t := telemetryOf(ctx); t != nil {
		var span trace.Span
		ctx, span = t.tracer.Start(ctx, "send "+e.Type(), trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
			semconv.CloudEventsEventType(e.Type()), semconv.CloudEventsEventSource(e.Source()),
			semconv.CloudEventsEventID(e.ID()), semconv.CloudEventsEventSubject(e.Subject()),
		))
		done = func(accepted bool) {
			if !accepted {
				span.SetStatus(codes.Error, "")
			}
			span.End()
		}
		own := e.Clone() // the caller's is as it was
		own.SetExtension(header, Traceparent(ctx))
		*e = own
	}
	headers := http.Header{}
	Inject(ctx, headers)
	if len(headers) == 0 {
		return ctx, done
	}
	return cehttp.WithCustomHeader(ctx, headers), done
}
