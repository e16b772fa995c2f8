package observe

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

const (
	ofUpdate = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ofEvent  = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// observed is a look at Update team/app with its spans and its log kept.
type observed struct {
	spans *tracetest.SpanRecorder
	log   lockedBuffer
	ctx   context.Context //nolint:containedctx // of the look
	look  *Look
	write func(method, path, body string, status int)
}

func begin(t *testing.T, on bool, traceparent string) *observed {
	t.Helper()
	o := &observed{spans: tracetest.NewSpanRecorder()}
	ctx := context.Background()
	if on {
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(o.spans))
		ctx = context.WithValue(ctx, telemetryKey{}, &Telemetry{provider: provider, tracer: provider.Tracer(scope)})
	}
	e := cloudevents.New()
	e.SetType("dev.updraft.due")
	e.SetID("1")
	e.SetSource("/test")
	for key, value := range map[string]string{"kind": "Update", "namespace": "team", "name": "app"} {
		e.SetExtension(key, value)
	}
	if traceparent != "" {
		ctx = Continue(ctx, traceparent)
	}
	o.ctx, o.look = Begin(ctx, NewLogger(&o.log, slog.LevelInfo), e)
	o.write = func(method, path, body string, status int) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		defer server.Close()
		request, err := http.NewRequestWithContext(o.ctx, method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := Writes(http.DefaultTransport).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	return o
}

// lines of the log, without their time.
func (o *observed) lines(t *testing.T) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(o.log.String()) {
		l := map[string]any{}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		delete(l, "time")
		lines = append(lines, l)
	}
	return lines
}

func update(traceparent string) metav1.Object {
	u := &metav1.ObjectMeta{Namespace: "team", Name: "app", Generation: 7}
	if traceparent != "" {
		u.Annotations = map[string]string{pulumiv1.AnnotationTraceparent: traceparent}
	}
	return u
}

func TestALookThatDidNothingLeavesNothing(t *testing.T) {
	for _, on := range []bool{true, false} {
		o := begin(t, on, "")
		Saw(o.ctx, update(""))
		o.write(http.MethodGet, "/apis/auto.pulumi.com/v1alpha1/namespaces/team/updates/app", "", http.StatusOK)
		o.write(http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", "{}", http.StatusCreated)
		o.look.End(o.ctx, http.StatusNoContent)
		if got := o.spans.Ended(); len(got) != 0 || o.log.String() != "" {
			t.Errorf("on %v: spans %v, log %s", on, got, o.log.String())
		}
	}
}

func TestALookThatDidSomethingIsOneLine(t *testing.T) {
	o := begin(t, false, "")
	log := slog.New(o.look.log.Handler())
	Saw(o.ctx, update(""))
	log.InfoContext(o.ctx, "Update needs a write", "namespace", "team", "name", "app", "action", "Wait", "reason", "WorkspaceBusy")
	log.WarnContext(o.ctx, "Something is odd")
	o.write(http.MethodPut, "/apis/auto.pulumi.com/v1alpha1/namespaces/team/updates/app/status", "{}", http.StatusOK)
	log.InfoContext(o.ctx, "Other", "name", "other", "reason", "")
	o.look.End(o.ctx, http.StatusNoContent)
	want := []map[string]any{
		{"level": "WARN", "msg": "Something is odd"},
		{
			"level": "INFO", "msg": "Looked at Update", "namespace": "team", "name": "app", "generation": 7.0, "reason": "WorkspaceBusy",
			"did": []any{"Update needs a write: action=Wait", "Other: name=other"}, "writes": 1.0, "event": "dev.updraft.due", "status": 204.0,
		},
	}
	if diff := cmp.Diff(want, o.lines(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheLevelOfTheLogChangesNothingElse(t *testing.T) {
	o := begin(t, true, "")
	o.look.log = NewLogger(&o.log, slog.LevelWarn)
	o.look.log.InfoContext(o.ctx, "Swept", "reason", "Missed")
	o.look.End(o.ctx, http.StatusNoContent)
	if o.log.String() != "" {
		t.Errorf("log: %s", o.log.String())
	}
	spans := o.spans.Ended()
	if len(spans) != 1 || !slices.Contains(spans[0].Attributes(), attribute.String("updraft.reason", "Missed")) {
		t.Errorf("spans: %+v", spans)
	}
}

func TestALookIsInTheTraceOfItsUpdate(t *testing.T) {
	const traceOfUpdate, spanOfUpdate = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	cases := map[string]struct {
		came, update          string
		trace, parent, linked string
	}{
		"An event of no trace":                 {update: ofUpdate, trace: traceOfUpdate, parent: spanOfUpdate},
		"An event of another trace":            {came: ofEvent, update: ofUpdate, trace: traceOfUpdate, parent: spanOfUpdate, linked: "0af7651916cd43dd8448eb211c80319c"},
		"An event of the same trace, its span": {came: strings.Replace(ofUpdate, "00f067aa0ba902b7", "00f067aa0ba902ff", 1), update: ofUpdate, trace: traceOfUpdate, parent: "00f067aa0ba902ff"},
		"An Update of no trace":                {came: ofEvent, trace: "0af7651916cd43dd8448eb211c80319c", parent: "b7ad6b7169203331"},
		"What is no traceparent":               {came: ofEvent, update: "hello", trace: "0af7651916cd43dd8448eb211c80319c", parent: "b7ad6b7169203331"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := begin(t, true, c.came)
			Saw(o.ctx, update(c.update))
			slog.New(o.look.log.Handler()).InfoContext(o.ctx, "Done")
			o.write(http.MethodPost, "/api/v1/namespaces/team/configmaps", `{"metadata":{"name":"app-run"},"data":{"a":"s3cr3t"}}`, http.StatusForbidden)
			o.look.End(o.ctx, http.StatusServiceUnavailable)
			ended := o.spans.Ended()
			if len(ended) != 2 {
				t.Fatalf("spans = %v", ended)
			}
			write, look := ended[0], ended[1]
			if look.Name() != "look at Update" || look.SpanContext().TraceID().String() != c.trace || look.Parent().SpanID().String() != c.parent {
				t.Errorf("the look is %s in %s below %s", look.Name(), look.SpanContext().TraceID(), look.Parent().SpanID())
			}
			linked := ""
			for _, l := range look.Links() {
				linked = l.SpanContext.TraceID().String()
			}
			if linked != c.linked {
				t.Errorf("linked = %q", linked)
			}
			if write.Name() != "create configmaps" || write.Parent().SpanID() != look.SpanContext().SpanID() {
				t.Errorf("the write is %s below %s", write.Name(), write.Parent().SpanID())
			}
			text, err := json.Marshal(tracetest.SpanStubsFromReadOnlySpans(ended))
			if err != nil || strings.Contains(string(text), "s3cr3t") || !strings.Contains(string(text), "app-run") {
				t.Errorf("the spans say %s (%v)", text, err)
			}
			if got := o.lines(t); len(got) != 1 || got[0]["trace_id"] != c.trace {
				t.Errorf("the log says %v", got)
			}
		})
	}
}

func TestStampNamesTheTraceOnce(t *testing.T) {
	o := begin(t, true, "")
	u := update("")
	Stamp(o.ctx, u)
	stamped := u.GetAnnotations()[pulumiv1.AnnotationTraceparent]
	if stamped == "" || stamped != Traceparent(o.ctx) {
		t.Errorf("stamped with %q in %q", stamped, Traceparent(o.ctx))
	}
	other := update(ofUpdate)
	Stamp(o.ctx, other)
	if got := other.GetAnnotations()[pulumiv1.AnnotationTraceparent]; got != ofUpdate {
		t.Errorf("stamped over: %q", got)
	}
	off := begin(t, false, ofEvent)
	u = update("")
	Stamp(off.ctx, u)
	if len(u.GetAnnotations()) != 0 {
		t.Errorf("off, it is stamped: %v", u.GetAnnotations())
	}
}

// A request's header is that of the last hop; where a Broker carries none the
// event's own extension has where it was sent.
func TestAnEventIsSentInItsTrace(t *testing.T) {
	o := begin(t, true, "")
	e := cloudevents.New()
	e.SetType("dev.updraft.due")
	sent := e
	_, done := Sending(o.ctx, &sent)
	done(true)
	own, _ := sent.Extensions()["traceparent"].(string)
	if own == "" || e.Extensions()["traceparent"] != nil {
		t.Errorf("sent with %v, the caller's has %v", sent.Extensions(), e.Extensions())
	}
	_, look := Begin(context.Background(), quiet(), sent)
	if got := Traceparent(look.ctx); got != own {
		t.Errorf("received as %q, sent as %q", got, own)
	}
	ctx, _ := Begin(Continue(context.Background(), ofEvent), quiet(), sent)
	if got := TraceID(ctx); got != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the header is not followed: %s", got)
	}
}

func TestPlaceOf(t *testing.T) {
	cases := map[string]place{
		"/api/v1/namespaces/team/pods/a/log":                       {"create", "team", "pods/log", "a"},
		"/api/v1/namespaces/team":                                  {"create", "", "namespaces", "team"},
		"/apis/pulumi.com/v1/namespaces/team/stacks/app/status":    {"create", "team", "stacks/status", "app"},
		"/apis/sources.knative.dev/v1/namespaces/team/pingsources": {"create", "team", "pingsources", ""},
		"/apis/authentication.k8s.io/v1/tokenreviews":              {"create", "", "tokenreviews", ""},
		"/":     {verb: "create"},
		"/apis": {verb: "create"},
		"/apis/auto.pulumi.com/v1alpha1/namespaces/team/updates/a/b/c": {"create", "team", "updates/b", "a"},
	}
	for path, want := range cases {
		if got := placeOf(http.MethodPost, path); got != want {
			t.Errorf("%s is %+v", path, got)
		}
	}
}

func TestNameInProtobuf(t *testing.T) {
	c := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "app-run", Namespace: "team"}}
	info, ok := runtimeInfo("application/vnd.kubernetes.protobuf")
	if !ok {
		t.Fatal("there is no encoding by protobuf")
	}
	var b strings.Builder
	if err := errors.Join(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion).Encode(c, &b)); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{b.String(): "app-run", b.String()[:20]: "", "k8s\x00": "", "{": "", `{"metadata":{"name":"x"}}`: "x"} {
		request, err := http.NewRequest(http.MethodPost, "http://x", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := nameIn(request); got != want {
			t.Errorf("the name in %q is %q", body, got)
		}
	}
}

func runtimeInfo(mediaType string) (runtime.SerializerInfo, bool) {
	return runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
}

func TestAStackIsInTheTraceOfARequestUntilThatIsAnswered(t *testing.T) {
	const request = "0123456789ab by ci: build 42"
	cases := map[string]struct {
		annotation, request, observed string
		current                       *pulumiv1.CurrentStackUpdate
		want                          string
	}{
		"Not seen yet":                     {annotation: ofUpdate + " 0123456789ab", request: request, want: ofUpdate},
		"Seen, and its Update is not over": {annotation: ofUpdate + " 0123456789ab", request: request, observed: request, current: &pulumiv1.CurrentStackUpdate{ReconcileRequest: request}, want: ofUpdate},
		"Seen, and another Update goes on": {annotation: ofUpdate + " 0123456789ab", request: request, observed: request, current: &pulumiv1.CurrentStackUpdate{ReconcileRequest: "other"}},
		"Answered":                         {annotation: ofUpdate + " 0123456789ab", request: request, observed: request},
		"Another request came by kubectl":  {annotation: ofUpdate + " 0123456789ab", request: "again", observed: request},
		"No request":                       {annotation: ofUpdate + " 0123456789ab", observed: "x"},
		"A traceparent of no request":      {annotation: ofUpdate, request: request},
		"None":                             {request: request},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &pulumiv1.Stack{}
			s.Annotations = map[string]string{pulumiv1.AnnotationReconcileRequest: c.request, pulumiv1.AnnotationTraceparent: c.annotation}
			s.Status.ObservedReconcileRequest, s.Status.CurrentUpdate = c.observed, c.current
			if got := traceOf(s); got != c.want {
				t.Errorf("traceOf = %q, want %q", got, c.want)
			}
		})
	}
	o := begin(t, true, ofEvent)
	if got := OfRequest(o.ctx, request); !strings.HasSuffix(got, " 0123456789ab") || !spanContextOf(strings.Fields(got)[0]).IsValid() {
		t.Errorf("OfRequest = %q", got)
	}
	if got := OfRequest(begin(t, false, ofEvent).ctx, request); got != "" {
		t.Errorf("where tracing is off OfRequest = %q", got)
	}
}
