package observe

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// Writes makes the writes of a client of the API server visible: it counts them
// for the look that they are part of, and gives each a span.
func Writes(next http.RoundTripper) http.RoundTripper { return writes{next} }

type writes struct{ next http.RoundTripper }

// RoundTrip passes the request on.
func (w writes) RoundTrip(r *http.Request) (*http.Response, error) {
	l := lookOf(r.Context())
	if l == nil || r.Method == http.MethodGet {
		return w.next.RoundTrip(r)
	}
	at := placeOf(r.Method, r.URL.Path)
	if strings.HasSuffix(at.resource, "reviews") {
		return w.next.RoundTrip(r) // a question
	}
	l.wrote()
	if l.telemetry == nil {
		return w.next.RoundTrip(r)
	}
	ctx, span := l.telemetry.tracer.Start(WithSpan(r.Context()), at.verb+" "+at.resource, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	if span.IsRecording() {
		if at.name == "" {
			at.name = nameIn(r)
		}
		span.SetAttributes(semconv.K8SNamespaceName(at.namespace), attribute.String("updraft.verb", at.verb),
			attribute.String("updraft.resource", at.resource), attribute.String("updraft.name", at.name))
	}
	answer, err := w.next.RoundTrip(r.WithContext(ctx))
	switch {
	case err != nil:
		span.SetStatus(codes.Error, "")
	default:
		span.SetAttributes(semconv.HTTPResponseStatusCode(answer.StatusCode))
		// A conflict is how two who write at once find out: the look looks again.
		if answer.StatusCode >= 400 && answer.StatusCode != http.StatusConflict {
			span.SetStatus(codes.Error, "")
		}
	}
	return answer, err
}

// place is what a request to the API server is about.
type place struct{ verb, namespace, resource, name string }

// placeOf reads /api/v1/... or /apis/<group>/<version>/..., then
// [namespaces/<namespace>/]<resource>[/<name>[/<subresource>]].
func placeOf(method, path string) place {
	at := place{verb: map[string]string{
		http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}[method]}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 3
	if parts[0] == "api" {
		skip = 2
	}
	if len(parts) <= skip {
		return at
	}
	parts = parts[skip:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		at.namespace, parts = parts[1], parts[2:]
	}
	at.resource = parts[0]
	if len(parts) > 1 {
		at.name = parts[1]
	}
	if len(parts) > 2 {
		at.resource += "/" + parts[2]
	}
	return at
}

// nameIn is the name of the object that is created.
func nameIn(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		return ""
	}
	if raw, ok := bytes.CutPrefix(content, []byte("k8s\x00")); ok {
		return nameInProtobuf(raw)
	}
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if json.Unmarshal(content, &object) != nil {
		return ""
	}
	return object.Metadata.Name
}

// nameInProtobuf is the name of an object in Kubernetes' envelope, runtime.Unknown:
// its field raw is the object, whose first field is its metadata, whose first
// field is the name.
func nameInProtobuf(message []byte) string {
	for _, wanted := range []protowire.Number{2, 1, 1} {
		if message = field(message, wanted); message == nil {
			return ""
		}
	}
	return string(message)
}

func field(message []byte, wanted protowire.Number) []byte {
	for len(message) > 0 {
		number, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return nil
		}
		message = message[length:]
		if number == wanted && kind == protowire.BytesType {
			value, length := protowire.ConsumeBytes(message)
			if length < 0 {
				return nil
			}
			return value
		}
		if length = protowire.ConsumeFieldValue(number, kind, message); length < 0 {
			return nil
		}
		message = message[length:]
	}
	return nil
}
