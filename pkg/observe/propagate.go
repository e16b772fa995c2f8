package observe

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// traceContext is W3C's. The process's global one is not touched.
var traceContext propagation.TextMapPropagator = propagation.TraceContext{}

const header = "traceparent"

// Extract continues the trace that a request's headers name.
func Extract(ctx context.Context, h http.Header) context.Context {
	return traceContext.Extract(ctx, propagation.HeaderCarrier(h))
}

// Inject names the trace in a request's headers.
func Inject(ctx context.Context, h http.Header) {
	traceContext.Inject(WithSpan(ctx), propagation.HeaderCarrier(h))
}

// Continue continues the trace of a traceparent; one that is none changes nothing.
func Continue(ctx context.Context, traceparent string) context.Context {
	return traceContext.Extract(ctx, propagation.MapCarrier{header: traceparent})
}

// Traceparent names the span that ctx is in, "" if there is none.
func Traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	traceContext.Inject(WithSpan(ctx), carrier)
	return carrier[header]
}

// Kept is the traceparent to keep with what is written, to be continued by another
// look: "" where tracing is off.
func Kept(ctx context.Context) string {
	if telemetryOf(ctx) == nil {
		return ""
	}
	return Traceparent(ctx)
}

// TraceID is that of the trace that ctx is in, "" if there is none.
func TraceID(ctx context.Context) string {
	if sc := spanContext(ctx); sc.HasTraceID() {
		return sc.TraceID().String()
	}
	return ""
}

// Stamp puts the trace onto an object that is about to be written, unless it has
// one. Where tracing is off it does nothing.
func Stamp(ctx context.Context, object metav1.Object) {
	annotations := object.GetAnnotations()
	traceparent := Kept(ctx)
	if traceparent == "" || annotations[pulumiv1.AnnotationTraceparent] != "" {
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[pulumiv1.AnnotationTraceparent] = traceparent
	object.SetAnnotations(annotations)
}

func spanContextOf(traceparent string) trace.SpanContext {
	return trace.SpanContextFromContext(Continue(context.Background(), traceparent))
}
