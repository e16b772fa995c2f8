package observe

import (
	"cmp"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// Names of OpenTelemetry's own variables, which are for the user to set.
const (
	otelEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otelTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	otelProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	otelTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	otelDisabled       = "OTEL_SDK_DISABLED"
	otelExporter       = "OTEL_TRACES_EXPORTER"
)

// OfRun says where a run sends its spans: below this traceparent, to the endpoint
// that its Job was given; or to where the user's own OpenTelemetry variables say.
// Without a trace that is kept it is off.
func OfRun(lookup func(string) string, traceparent, endpoint, protocol string) Tracing {
	sc := spanContextOf(traceparent)
	if !sc.IsValid() || !sc.IsSampled() || strings.EqualFold(lookup(otelDisabled), "true") || lookup(otelExporter) == ProtocolNone {
		return Tracing{}
	}
	t := Tracing{Protocol: protocol, Endpoint: endpoint, Rate: 1}
	user := lookup(otelTracesEndpoint)
	if user == "" && lookup(otelEndpoint) != "" {
		user = strings.TrimSuffix(lookup(otelEndpoint), "/") + "/v1/traces"
	}
	if user != "" {
		t.Endpoint, t.Protocol = user, cmp.Or(lookup(otelTracesProtocol), lookup(otelProtocol), ProtocolHTTP)
	}
	if t.Endpoint == "" || t.Protocol != ProtocolHTTP && t.Protocol != ProtocolGRPC {
		return Tracing{}
	}
	return t
}

// Sampled says whether the spans below this one are sent.
func Sampled(span trace.Span) bool { return span.IsRecording() && span.SpanContext().IsSampled() }
