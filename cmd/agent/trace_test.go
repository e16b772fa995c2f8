package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/run"
)

// fakeCollector keeps the spans that it is sent; a dead one takes requests and
// does not answer.
type fakeCollector struct {
	server *httptest.Server
	mu     sync.Mutex
	spans  []*tracepb.Span
	text   string
}

func newFakeCollector(t *testing.T, dead bool) *fakeCollector {
	c, ended := &fakeCollector{}, make(chan struct{})
	c.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if dead {
			select {
			case <-ended:
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
		c.text += protojson.Format(&request)
		for _, of := range request.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(func() { close(ended); c.server.Close() })
	return c
}

// traced makes a pod's Job one that is told of a trace.
func (p *pod) traced(c *fakeCollector) {
	p.more = append(p.more, run.EnvTraceparent+"=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		run.EnvTracesEndpoint+"="+c.server.URL+"/v1/traces", run.EnvTracesProtocol+"=http/protobuf")
}

// An error of the CLI quotes what it could not read, and so what a variable or a
// configuration value is.
const quoting = `name: app
runtime: yaml
config:
  word: {type: string}
  password: {type: string}
variables:
  text:
    fn::readFile: ./${word}
outputs:
  text: ${text}
  password: ${password}
`

func TestASpanTellsNoValue(t *testing.T) {
	t.Parallel()
	c := newFakeCollector(t, false)
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, quoting)
	p.traced(c)
	yes := true
	p.write("secrets/app/password", "hunter2hunter2", 0o644)
	p.spec.Stack.Config = []autov1alpha1.ConfigItem{
		{Key: "app:word", ValueFrom: &autov1alpha1.ConfigValueFrom{Path: "secrets/app/word"}},
		{Key: "app:password", Secret: &yes, ValueFrom: &autov1alpha1.ConfigValueFrom{Path: "secrets/app/password"}},
	}
	p.write("secrets/app/word", "plain-and-private", 0o644)
	if got := p.run(); got.code == 0 {
		t.Fatalf("the run did not fail: %+v\n%s", p.receiver.finished(), got.log)
	}
	if finished := p.receiver.finished(); !strings.Contains(finished.Message, "plain-and-private") {
		t.Fatalf("the CLI's error does not quote the value, so that this test holds nothing: %s", finished.Message)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, value := range []string{"hunter2hunter2", "plain-and-private", passphrase, token} {
		if strings.Contains(c.text, value) {
			t.Errorf("a span holds %q", value)
		}
	}
	names := map[string]*tracepb.Span{}
	for _, s := range c.spans {
		names[s.GetName()] = s
	}
	for _, name := range []string{"fetch", "run", "select", "config", "operation", "report finished", "pulumi"} {
		if names[name] == nil {
			t.Errorf("there is no span %q", name)
		}
	}
	for _, name := range []string{"run", "operation"} {
		if got := names[name].GetStatus().GetCode(); got != tracepb.Status_STATUS_CODE_ERROR {
			t.Errorf("%s ended with %v", name, got)
		}
	}
}

// The CLI alone would wait for ten seconds at the end of each of its processes.
func TestADeadCollectorDoesNotHoldUpARun(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	run := func(c *fakeCollector) time.Duration {
		p := newPod(t, state, autov1alpha1.UpType, hello)
		if c != nil {
			p.traced(c)
		}
		began := time.Now()
		if got := p.run(); got.code != 0 {
			t.Errorf("exit code %d", got.code)
		}
		return time.Since(began)
	}
	run(nil) // makes the stack
	usual := run(nil)
	if took := run(newFakeCollector(t, true)); took > 2*usual+3*time.Second {
		t.Errorf("it took %v, and %v without", took, usual)
	}
}

func TestARunThatIsNotTracedAsksNoCollector(t *testing.T) {
	t.Parallel()
	c := newFakeCollector(t, false)
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, hello)
	p.traced(c)
	p.more = append(p.more, "OTEL_SDK_DISABLED=true")
	if got := p.run(); got.code != 0 {
		t.Errorf("exit code %d", got.code)
	}
	if len(c.spans) != 0 {
		t.Errorf("there are spans: %v", c.spans)
	}
}
