package observe

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// Look is what a function does on one event: a span, and a line of the log if it
// did something.
//
// The span begins late, when there is a reason for it: only once the object is
// read is it known of which trace it is. One that did nothing, and belongs to no
// trace, has none.
type Look struct {
	telemetry *Telemetry
	log       *slog.Logger
	event     cloudevents.Event
	began     time.Time
	ctx       context.Context //nolint:containedctx // what the span begins with

	mu     sync.Mutex
	span   trace.Span
	joined trace.SpanContext
	// did are the function's own lines, writes how often it wrote.
	did        []string
	reason     string
	generation int64
	writes     int
}

type lookKey struct{}

// Begin begins a look that an event is the reason for. The logger is the
// function's.
func Begin(ctx context.Context, log *slog.Logger, e cloudevents.Event) (context.Context, *Look) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		if s, ok := e.Extensions()[header].(string); ok {
			ctx = Continue(ctx, s)
		}
	}
	l := &Look{telemetry: telemetryOf(ctx), log: log, event: e, began: time.Now(), ctx: ctx}
	return context.WithValue(ctx, lookKey{}, l), l
}

func lookOf(ctx context.Context) *Look {
	l, _ := ctx.Value(lookKey{}).(*Look)
	return l
}

// Saw tells a look of an object that it read: the generation, and, of an Update or of
// a Stack that was asked from outside, the trace to which the look then belongs.
func Saw(ctx context.Context, object metav1.Object) {
	l := lookOf(ctx)
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if object.GetName() == l.about("name") {
		l.generation = object.GetGeneration()
	}
	l.join(spanContextOf(traceOf(object)))
}

// Join makes a look a part of the trace of a traceparent, unless it is of one
// already. What is no traceparent changes nothing.
func Join(ctx context.Context, traceparent string) {
	l := lookOf(ctx)
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.join(spanContextOf(traceparent))
}

func (l *Look) join(of trace.SpanContext) {
	if !of.IsValid() || l.joined.IsValid() {
		return
	}
	l.joined = of
	if l.span != nil && l.span.SpanContext().TraceID() != of.TraceID() {
		l.span.AddLink(trace.Link{SpanContext: of})
	}
}

// traceOf is the traceparent of an object: an Update's, or that of the request from
// outside that a Stack has yet to answer. What came later, by other ways, is not in
// that request's trace.
func traceOf(object metav1.Object) string {
	value := object.GetAnnotations()[pulumiv1.AnnotationTraceparent]
	s, ok := object.(*pulumiv1.Stack)
	if !ok {
		return value
	}
	traceparent, of, _ := strings.Cut(value, " ")
	request := s.Annotations[pulumiv1.AnnotationReconcileRequest]
	current := s.Status.CurrentUpdate
	open := s.Status.ObservedReconcileRequest != request || current != nil && current.ReconcileRequest == request
	if of == "" || !strings.HasPrefix(request, of+" ") || !open {
		return ""
	}
	return traceparent
}

// OfRequest is what a Stack's annotation says of the span that ctx is in, and of the
// request that it stands for; "" if there is no span.
func OfRequest(ctx context.Context, request string) string {
	traceparent := Traceparent(ctx)
	of, _, found := strings.Cut(request, " ")
	if telemetryOf(ctx) == nil || traceparent == "" || !found {
		return ""
	}
	return traceparent + " " + of
}

func (l *Look) about(extension string) string {
	s, _ := l.event.Extensions()[extension].(string)
	return s
}

// started is the look's span, which begins now if it has not.
func (l *Look) started() trace.Span {
	if l.telemetry == nil {
		return trace.SpanFromContext(l.ctx)
	}
	if l.span != nil {
		return l.span
	}
	ctx, options := l.ctx, []trace.SpanStartOption{
		trace.WithTimestamp(l.began), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(l.attributes()...),
	}
	came := trace.SpanContextFromContext(ctx)
	if l.joined.IsValid() && l.joined.TraceID() != came.TraceID() {
		if came.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: came}))
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, l.joined)
	}
	_, l.span = l.telemetry.tracer.Start(ctx, "look at "+l.about("kind"), options...) //nolint:spancheck // End ends it
	return l.span
}

func (l *Look) attributes() []attribute.KeyValue {
	e := l.event
	return []attribute.KeyValue{
		semconv.FaaSName(l.telemetry.identity.Service), semconv.FaaSInstance(l.telemetry.identity.Instance),
		semconv.FaaSTriggerPubSub, semconv.FaaSColdstart(!l.telemetry.warm.Swap(true)),
		semconv.CloudEventsEventType(e.Type()), semconv.CloudEventsEventSource(e.Source()),
		semconv.CloudEventsEventID(e.ID()), semconv.CloudEventsEventSubject(e.Subject()), semconv.CloudEventsEventSpecVersion(e.SpecVersion()),
		semconv.K8SNamespaceName(l.about("namespace")),
		attribute.String("updraft.kind", l.about("kind")), attribute.String("updraft.name", l.about("name")),
	}
}

// End ends a look that was answered with this HTTP status.
func (l *Look) End(ctx context.Context, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	idle := l.writes == 0 && len(l.did) == 0
	if l.telemetry != nil && (!idle || status >= 300 || l.joined.IsValid() || trace.SpanContextFromContext(l.ctx).IsValid()) {
		l.started()
	}
	looked(ctx, l.about("kind"), idle, status)
	level := slog.LevelInfo
	if idle {
		level = slog.LevelDebug
	}
	l.log.Log(context.WithValue(ctx, ended{}, l), level, "Looked at "+l.about("kind"), l.line(status)...)
	if l.span == nil {
		return
	}
	l.span.SetAttributes(semconv.HTTPResponseStatusCode(status), attribute.Int("updraft.writes", l.writes))
	if l.generation != 0 {
		l.span.SetAttributes(attribute.Int64("updraft.generation", l.generation))
	}
	if l.reason != "" {
		l.span.SetAttributes(attribute.String("updraft.reason", l.reason))
	}
	if status >= 500 {
		l.span.SetStatus(codes.Error, "") // the words are in the log: they may hold what a span must not
	}
	l.span.End()
}

// line is what the log says of the look.
func (l *Look) line(status int) []any {
	line := []any{"namespace", l.about("namespace"), "name", l.about("name")}
	if l.generation != 0 {
		line = append(line, "generation", l.generation)
	}
	if l.reason != "" {
		line = append(line, "reason", l.reason)
	}
	if len(l.did) > 0 {
		line = append(line, "did", slices.Clone(l.did))
	}
	if l.writes > 0 {
		line = append(line, "writes", l.writes)
	}
	return append(line, "event", l.event.Type(), "status", status)
}

// note takes a line of the function into that of the look.
func (l *Look) note(r slog.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var words []string
	r.Attrs(func(a slog.Attr) bool {
		value := a.Value.String()
		switch {
		case a.Key == "reason":
			if value != "" {
				l.reason = value
			}
		case a.Key == "generation", a.Key == "namespace", a.Key == "name" && value == l.about("name"), value == "":
		default:
			words = append(words, fmt.Sprintf("%s=%s", a.Key, value))
		}
		return true
	})
	text := r.Message
	if len(words) > 0 {
		text += ": " + strings.Join(words, " ")
	}
	l.did = append(l.did, text)
}

// wrote counts a write.
func (l *Look) wrote() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
}

// WithSpan is ctx with the span of its look, to begin another below it.
func WithSpan(ctx context.Context) context.Context {
	l := lookOf(ctx)
	if l == nil || !trace.SpanContextFromContext(ctx).Equal(trace.SpanContextFromContext(l.ctx)) {
		return ctx // no look, or a span below it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return trace.ContextWithSpan(ctx, l.started())
}

// spanContext is that of ctx, or the one that its look belongs to. It begins no
// span.
func spanContext(ctx context.Context) trace.SpanContext {
	l := lookOf(ctx)
	if l == nil {
		return trace.SpanContextFromContext(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.context()
}

func (l *Look) context() trace.SpanContext {
	switch {
	case l.span != nil:
		return l.span.SpanContext()
	case l.joined.IsValid():
		return l.joined
	default:
		return trace.SpanContextFromContext(l.ctx)
	}
}
