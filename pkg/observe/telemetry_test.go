package observe

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// fakeCollector counts the spans that it is sent. While it is dead it takes
// connections and does not answer.
type fakeCollector struct {
	server *httptest.Server
	dead   atomic.Bool
	ended  chan struct{}

	mu    sync.Mutex
	names []string
}

func newFakeCollector(t *testing.T) *fakeCollector {
	c := &fakeCollector{ended: make(chan struct{})}
	c.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if c.dead.Load() {
			select {
			case <-c.ended:
			case <-r.Context().Done():
			}
			return
		}
		var request collectorpb.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil {
			t.Errorf("what was sent is no OTLP: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range request.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				for _, s := range scope.GetSpans() {
					c.names = append(c.names, s.GetName())
				}
			}
		}
	}))
	t.Cleanup(func() { close(c.ended); c.server.Close() })
	return c
}

func (c *fakeCollector) received() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.names)
}

func (c *fakeCollector) tracing() Tracing {
	return Tracing{Protocol: ProtocolHTTP, Endpoint: c.server.URL + "/v1/traces", Rate: 1}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// serve answers one request, in which there is one span, and says how long it took.
func serve(telemetry *Telemetry) time.Duration {
	handler := telemetry.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, span := telemetryOf(r.Context()).Start(r.Context(), "work")
		span.End()
		w.WriteHeader(http.StatusNoContent)
	}))
	began := time.Now()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	return time.Since(began)
}

func TestOffCostsNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, off := range []Tracing{{}, {Protocol: ProtocolNone, Rate: 1}, {Protocol: ProtocolHTTP, Endpoint: "http://c/v1/traces"}} {
		telemetry, err := New(t.Context(), off, Identity{}, quiet())
		if err != nil || telemetry != nil {
			t.Errorf("%+v is %v, %v", off, telemetry, err)
		}
		serve(telemetry)
		telemetry.Flush()
		telemetry.Stop()
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("there are %d goroutines more", after-before)
	}
	handler := (*Telemetry)(nil).Serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	request := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	if allocs := testing.AllocsPerRun(100, func() { handler.ServeHTTP(nil, request) }); allocs > 10 {
		t.Errorf("a request that is not traced costs %v allocations", allocs)
	}
}

func TestSpansAreSentBeforeTheAnswer(t *testing.T) {
	c := newFakeCollector(t)
	telemetry, err := New(t.Context(), c.tracing(), Identity{Service: "test", Instance: "1"}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer telemetry.Stop()
	handler := telemetry.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, span := telemetry.Start(r.Context(), "work")
		span.End()
		w.WriteHeader(http.StatusNoContent)
	}))
	server := httptest.NewServer(handler)
	defer server.Close()
	for i := range 3 {
		answer, err := http.Post(server.URL, "", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := c.received(); got != i+1 {
			t.Errorf("after answer %d there are %d spans", i+1, got)
		}
	}
}

// A collector that takes connections and does not answer is the worst: nothing
// fails, all wait.
func TestADeadCollectorHoldsUpOneRequestForAMoment(t *testing.T) {
	c := newFakeCollector(t)
	c.dead.Store(true)
	var said lockedBuffer
	telemetry, err := New(t.Context(), c.tracing(), Identity{Service: "test", Instance: "1"}, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer telemetry.Stop()
	if took := serve(telemetry); took > patience+500*time.Millisecond {
		t.Errorf("the first request was held up for %v", took)
	}
	began := time.Now()
	for range 20 {
		serve(telemetry)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("20 more were held up for %v", took)
	}
	if telemetry.reached() {
		t.Error("the collector is said to answer")
	}
	c.dead.Store(false)
	for deadline := time.Now().Add(30 * time.Second); !telemetry.reached(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("that it is back is not noticed")
		}
	}
	before := c.received()
	serve(telemetry)
	if c.received() != before+1 {
		t.Error("once it is back a span is not sent")
	}
	if n := strings.Count(said.String(), "Spans cannot be sent"); n != 1 {
		t.Errorf("it was said %d times:\n%s", n, said.String())
	}
}

func TestACollectorThatIsNotThereHoldsUpNothing(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	for _, protocol := range []string{ProtocolHTTP, ProtocolGRPC} {
		telemetry, err := New(t.Context(), Tracing{Protocol: protocol, Endpoint: "http://" + address, Rate: 1}, Identity{}, quiet())
		if err != nil {
			t.Fatal(err)
		}
		if took := serve(telemetry) + serve(telemetry); took > 2*patience+500*time.Millisecond {
			t.Errorf("%s: two requests took %v", protocol, took)
		}
		telemetry.Stop()
	}
}

// grpcCollector counts what it is sent by gRPC.
type grpcCollector struct {
	collectorpb.UnimplementedTraceServiceServer
	spans atomic.Int32
}

func (c *grpcCollector) Export(_ context.Context, r *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.spans.Add(int32(len(r.GetResourceSpans())))
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func TestSpansAreSentByGRPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	collector, server := &grpcCollector{}, grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(server, collector)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	telemetry, err := New(t.Context(), Tracing{Protocol: ProtocolGRPC, Endpoint: "http://" + listener.Addr().String(), Rate: 1}, Identity{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer telemetry.Stop()
	for deadline := time.Now().Add(30 * time.Second); collector.spans.Load() == 0; serve(telemetry) {
		if time.Now().After(deadline) {
			t.Fatal("no span arrived")
		}
	}
}

func TestARateOfZeroKeepsNothingAndAHalfFollowsTheSender(t *testing.T) {
	c := newFakeCollector(t)
	half := c.tracing()
	half.Rate = 0.5
	telemetry, err := New(t.Context(), half, Identity{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer telemetry.Stop()
	for flag, want := range map[string]bool{"01": true, "00": false} {
		ctx := Continue(context.Background(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"+flag)
		_, span := telemetry.Start(ctx, "work")
		if Sampled(span) != want {
			t.Errorf("with the flag %s it is %v that it is kept", flag, !want)
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
