package agent

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// fakeClient keeps what is uploaded; a dead one holds it until it is told to end.
type fakeClient struct {
	dead bool
	mu   sync.Mutex
	got  []*tracepb.ResourceSpans
}

func (f *fakeClient) Start(context.Context) error { return nil }
func (f *fakeClient) Stop(context.Context) error  { return nil }
func (f *fakeClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	if f.dead {
		<-ctx.Done()
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, spans...)
	return nil
}

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func post(t *testing.T, r *relay, body []byte) int {
	t.Helper()
	answer, err := http.Post(r.url, "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func upload(t *testing.T, spans ...*tracepb.ResourceSpans) []byte {
	t.Helper()
	body, err := proto.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: spans})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestARelayPassesOnTheRunsOwnSpansWithoutWords(t *testing.T) {
	own := trace.TraceID{1, 2, 3}
	client := &fakeClient{}
	r, err := newRelay(client, own, func(s string) string { return strings.ReplaceAll(s, "hunter2", scrubbed) })
	if err != nil {
		t.Fatal(err)
	}
	of := func(spans ...*tracepb.Span) *tracepb.ResourceSpans {
		return &tracepb.ResourceSpans{
			Resource:   &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "pulumi-cli")}},
			ScopeSpans: []*tracepb.ScopeSpans{{Spans: spans}},
		}
	}
	list := &commonpb.KeyValue{Key: "list", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{
		Values: []*commonpb.AnyValue{text("", "a hunter2").Value},
	}}}}
	status := post(t, r, upload(t, of(
		&tracepb.Span{
			TraceId: own[:], Name: "hunter2 is said", Attributes: []*commonpb.KeyValue{text("cli.command", "pulumi up"), text("code.stacktrace", "main.go"), text("gocdk_error", "no blob"), list},
			Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: "plain is no greeting"},
			Events: []*tracepb.Span_Event{{Name: "exception", Attributes: []*commonpb.KeyValue{text("exception.type", "x"), text("exception.message", "plain")}}},
		},
		&tracepb.Span{TraceId: []byte("of another trace"), Name: "stray"},
	), of(&tracepb.Span{TraceId: []byte("of another trace"), Name: "stray"}), &tracepb.ResourceSpans{}))
	if status != http.StatusOK {
		t.Errorf("status = %d", status)
	}
	r.close()
	list = &commonpb.KeyValue{Key: "list", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{
		Values: []*commonpb.AnyValue{text("", "a "+scrubbed).Value},
	}}}}
	want := []*tracepb.ResourceSpans{of(&tracepb.Span{
		TraceId: own[:], Name: scrubbed + " is said", Attributes: []*commonpb.KeyValue{text("cli.command", "pulumi up"), list},
		Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR},
		Events: []*tracepb.Span_Event{{Name: "exception", Attributes: []*commonpb.KeyValue{text("exception.type", "x")}}},
	})}
	if diff := cmp.Diff(want, client.got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARelayAnswersWhateverTheCollectorDoes(t *testing.T) {
	client := &fakeClient{dead: true}
	r, err := newRelay(client, trace.TraceID{1}, func(s string) string { return s })
	if err != nil {
		t.Fatal(err)
	}
	id := trace.TraceID{1}
	body := upload(t, &tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{TraceId: id[:]}}}}})
	began := time.Now()
	for range 2 * relayQueue {
		if got := post(t, r, body); got != http.StatusOK {
			t.Fatalf("status = %d", got)
		}
	}
	if took := time.Since(began); took > uploadTime {
		t.Errorf("the CLI would have waited for %v", took)
	}
	if got := post(t, r, []byte("no protobuf")); got != http.StatusBadRequest {
		t.Errorf("what is no upload is answered %d", got)
	}
	began = time.Now()
	r.close()
	if took := time.Since(began); took > relayPatience+time.Second {
		t.Errorf("the end of the run was held up for %v", took)
	}
	select {
	case <-r.done:
	case <-time.After(10 * time.Second):
		t.Error("what sends goes on after the end")
	}
}

func TestTheCLIsOwnSettingWins(t *testing.T) {
	traced := tracing{relay: &relay{url: "http://relay"}}
	if got := traced.environment(t.Context(), environment{"A=b"}); len(got) != 2 || got[0] != "PULUMI_OPTION_OTEL_TRACES=http://relay" {
		t.Errorf("environment = %v", got)
	}
	if got := traced.environment(t.Context(), environment{"PULUMI_OPTION_OTEL_TRACES=grpc://mine"}); got != nil {
		t.Errorf("over the user's own: %v", got)
	}
	if got := (tracing{}).environment(t.Context(), nil); got != nil {
		t.Errorf("off: %v", got)
	}
	for _, c := range []struct {
		args []string
		want bool
	}{{[]string{"up", "--yes"}, true}, {[]string{"install"}, true}, {[]string{"config", "set-all"}, false}, {nil, false}} {
		if got := isTraced(c.args); got != c.want {
			t.Errorf("%v is traced: %v", c.args, got)
		}
	}
}
