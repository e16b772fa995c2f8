package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/trace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// relayQueue is how many uploads of the CLI may wait; what is more is lost.
	relayQueue = 256
	// relayBody is the largest upload of the CLI, in bytes.
	relayBody = 16 << 20
	// uploadTime is how long the collector may take, while nobody waits for it,
	// and relayPatience how long the run's end waits for what is left.
	uploadTime    = 2 * time.Second
	relayPatience = 200 * time.Millisecond
)

// relay stands between the CLI and the collector. The CLI waits for ten seconds
// at the end of each of its processes for a collector that does not answer: the
// relay always answers. And the CLI, its language hosts and its providers put into
// spans what they like: the relay passes on only what is of the run's trace, with
// no words of an error in it and with no secret that it knows.
type relay struct {
	// url that the CLI sends to.
	url    string
	server *http.Server
	client otlptrace.Client
	trace  trace.TraceID
	scrub  func(string) string
	queue  chan []*tracepb.ResourceSpans
	done   chan struct{}
	cancel context.CancelFunc
}

// newRelay listens on loopback until close.
func newRelay(client otlptrace.Client, of trace.TraceID, scrub func(string) string) (*relay, error) {
	ctx, cancel := context.WithCancel(context.Background())
	if err := client.Start(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("cannot reach the collector: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cannot listen for the CLI's spans: %w", err)
	}
	r := &relay{
		url: "http://" + listener.Addr().String() + "/v1/traces", client: client, trace: of, scrub: scrub,
		queue: make(chan []*tracepb.ResourceSpans, relayQueue), done: make(chan struct{}), cancel: cancel,
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: uploadTime}
	go func() { _ = r.server.Serve(listener) }() // it ends with close
	go r.upload(ctx)
	return r, nil
}

// ServeHTTP takes an upload and answers at once.
func (r *relay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, relayBody))
	var upload collectorpb.ExportTraceServiceRequest
	if err = errors.Join(err, proto.Unmarshal(body, &upload)); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if spans := r.clean(upload.GetResourceSpans()); len(spans) > 0 {
		select {
		case r.queue <- spans:
		default:
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(http.StatusOK)
}

// upload sends what is taken, until the queue is closed or ctx ends.
func (r *relay) upload(ctx context.Context) {
	defer close(r.done)
	defer func() { _ = r.client.Stop(ctx) }()
	for spans := range r.queue {
		limited, cancel := context.WithTimeout(ctx, uploadTime)
		_ = r.client.UploadTraces(limited, spans) // that the collector is away is said of the agent's own spans
		cancel()
		if ctx.Err() != nil {
			return
		}
	}
}

// close waits a moment for what is left to be sent. No process of the CLI runs
// any more.
func (r *relay) close() {
	_ = r.server.Close()
	close(r.queue)
	select {
	case <-r.done:
	case <-time.After(relayPatience):
	}
	r.cancel()
}

// clean leaves what may be sent on.
func (r *relay) clean(all []*tracepb.ResourceSpans) []*tracepb.ResourceSpans {
	var kept []*tracepb.ResourceSpans
	for _, of := range all {
		if of.GetResource() != nil {
			r.cleanAttributes(&of.Resource.Attributes)
		}
		some := false
		for _, scope := range of.GetScopeSpans() {
			scope.Spans = slices.DeleteFunc(scope.GetSpans(), func(s *tracepb.Span) bool { return string(s.GetTraceId()) != string(r.trace[:]) })
			for _, s := range scope.GetSpans() {
				r.cleanSpan(s)
				some = true
			}
		}
		if some {
			kept = append(kept, of)
		}
	}
	return kept
}

func (r *relay) cleanSpan(s *tracepb.Span) {
	s.Name = r.scrub(s.GetName())
	r.cleanAttributes(&s.Attributes)
	if s.GetStatus() != nil {
		s.Status.Message = ""
	}
	for _, e := range s.GetEvents() {
		e.Name = r.scrub(e.GetName())
		r.cleanAttributes(&e.Attributes)
	}
	for _, l := range s.GetLinks() {
		r.cleanAttributes(&l.Attributes)
	}
}

// words end the names of attributes that hold free text: an error's may quote a
// value of the configuration or of a resource.
var words = []string{"message", "stacktrace", "error", "description", "body", "statement"}

func (r *relay) cleanAttributes(attributes *[]*commonpb.KeyValue) {
	*attributes = slices.DeleteFunc(*attributes, func(a *commonpb.KeyValue) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(strings.ToLower(a.GetKey()), w) })
	})
	for _, a := range *attributes {
		r.cleanValue(a.GetValue())
	}
}

func (r *relay) cleanValue(v *commonpb.AnyValue) {
	switch of := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		of.StringValue = r.scrub(of.StringValue)
	case *commonpb.AnyValue_BytesValue:
		of.BytesValue = nil
	case *commonpb.AnyValue_ArrayValue:
		for _, element := range of.ArrayValue.GetValues() {
			r.cleanValue(element)
		}
	case *commonpb.AnyValue_KvlistValue:
		r.cleanAttributes(&of.KvlistValue.Values)
	}
}
