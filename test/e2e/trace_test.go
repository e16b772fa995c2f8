//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/test/leak"
	"github.com/updraft-dev/updraft/test/spans"
)

// tracesNamespace is where hack/e2e.sh has all spans sent to.
const tracesNamespace = "updraft-e2e-traces"

// collectorManifest is a real OpenTelemetry collector, which sends what it gets on to
// test/e2e/outside, since a test cannot read a pod's files.
func collectorManifest() string {
	return `
apiVersion: v1
kind: Namespace
metadata: {name: ` + tracesNamespace + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: collector, namespace: ` + tracesNamespace + `}
data:
  collector.yaml: |
    receivers: {otlp: {protocols: {http: {endpoint: "0.0.0.0:4318"}}}}
    exporters:
      otlp_http:
        traces_endpoint: "` + outsideURL(tracesNamespace) + `/spans"
        metrics_endpoint: "` + outsideURL(tracesNamespace) + `/metrics"
        encoding: json
        compression: none
    service:
      telemetry: {metrics: {level: none}}
      pipelines:
        traces: {receivers: [otlp], exporters: [otlp_http]}
        metrics: {receivers: [otlp], exporters: [otlp_http]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: collector, namespace: ` + tracesNamespace + `}
spec:
  selector: {matchLabels: {app: collector}}
  template:
    metadata: {labels: {app: collector}}
    spec:
      containers:
      - name: collector
        image: ` + os.Getenv("COLLECTOR_IMAGE") + `
        args: [--config, /etc/collector/collector.yaml]
        ports: [{containerPort: 4318}]
        readinessProbe: {tcpSocket: {port: 4318}}
        volumeMounts: [{name: config, mountPath: /etc/collector}]
      volumes: [{name: config, configMap: {name: collector}}]
---
apiVersion: v1
kind: Service
metadata: {name: collector, namespace: ` + tracesNamespace + `}
spec:
  selector: {app: collector}
  ports: [{port: 4318}]
`
}

// startCollector brings it up, if there is an image of one.
func startCollector(ctx context.Context) error {
	if os.Getenv("COLLECTOR_IMAGE") == "" {
		return nil
	}
	limit := "--timeout=" + patience.String()
	return inTurn(ctx, []step{
		{collectorManifest(), []string{"apply", "-f", "-"}},
		{outsideManifest(), []string{"apply", "-n", tracesNamespace, "-f", "-"}},
		{"", []string{"rollout", "status", "-n", tracesNamespace, "deployment/outside", "deployment/collector", limit}},
	})
}

func stopCollector() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = exec.CommandContext(ctx, kubectlPath(), "delete", "namespace", tracesNamespace, "--ignore-not-found", "--wait=false").Run()
}

// collected are the spans or metrics that the collector got, with a text in them.
func collected(ctx context.Context, what, with string) (string, error) {
	lines, err := atOutside(cluster.clients.Core.RESTClient().Get(), tracesNamespace, what).Param("with", with).DoRaw(ctx)
	return string(lines), err
}

// changed are spans of each change, each with one that it is below.
var changed = []struct{ span, below string }{
	{"updraft-stack: create updates", "updraft-stack: look at Stack"},
	{"updraft-update: look at Update", "updraft-stack: look at Stack"},
	{"updraft-update: create jobs", "updraft-update: look at Update"},
	{"updraft-agent: fetch", "updraft-update: look at Update"},
	{"updraft-agent: run", "updraft-update: look at Update"},
	{"updraft-agent: operation", "updraft-agent: run"},
	{"pulumi-cli: pulumi", "updraft-agent: operation"},
	{"updraft-status: look at Update", "updraft-agent: report taken"},
	{"updraft-status: update stacks/status", "updraft-agent: report finished"},
}

// attempts is how many changes may have a trace that lacks a span: one that cannot be
// sent at once is lost, so that no change waits for a collector.
const attempts = 3

// TestAChangeIsOneTrace reads the trace of a Stack that is applied, and of an event
// from outside.
func TestAChangeIsOneTrace(t *testing.T) {
	if os.Getenv("COLLECTOR_IMAGE") == "" {
		t.Skip("COLLECTOR_IMAGE is not set")
	}
	s := newSpace(t)
	s.outside()
	s.program()
	s.wholeTrace(func(attempt int) *pulumiv1.Stack {
		name := fmt.Sprint("app-", attempt)
		s.apply(s.stackOf(name, ""))
		return s.awaitReady(name)
	}, "apiserversource: ", "broker.ingress", "inmemorychannel-dispatcher", "broker.filter", "updraft-stack: look at Stack")

	s.kubectl("create", "serviceaccount", "ci")
	s.kubectl("create", "rolebinding", "ci", "--clusterrole=updraft-edit", "--serviceaccount="+s.namespace+":ci")
	token := s.kubectl("create", "token", "ci", "--audience", "updraft-gateway")
	const sender = "00f067aa0ba902b7"
	trace := s.wholeTrace(func(attempt int) *pulumiv1.Stack {
		before := s.stack("app-1")
		got := s.send("http://updraft-gateway."+systemNamespace+".svc.cluster.local", map[string]string{
			"Ce-Specversion": "1.0", "Ce-Type": "dev.updraft.request.update", "Ce-Source": "/e2e", "Ce-Id": fmt.Sprint("traced-", attempt), "Ce-Subject": s.namespace + "/app-1",
			"Authorization": "Bearer " + token,
			"Traceparent":   fmt.Sprintf("00-4bf92f3577b34da6a3ce929d0e0e473%d-%s-01", attempt, sender),
		}, "")
		if got.Status != 202 {
			t.Fatalf("the gateway answers %+v", got)
		}
		return s.await(patience, "app-1", "has run once more", func(stack *pulumiv1.Stack) bool {
			return isReady(stack) && stack.Status.LastUpdate.Name != before.Status.LastUpdate.Name
		})
	}, "updraft-gateway: look at Stack", "updraft-stack: look at Stack")
	for _, span := range trace {
		if span.Service == "updraft-gateway" && span.Name == "look at Stack" && span.Parent != sender {
			t.Errorf("the gateway's span is below %s, not below the sender's", span.Parent)
		}
		if !strings.HasPrefix(span.TraceID, "4bf92f3577b34da6a3ce929d0e0e473") {
			t.Errorf("%v is in the trace %s", span, span.TraceID)
		}
	}
}

// wholeTrace makes changes until the trace of one holds what each change has, and
// spans whose service and name begin so.
func (s *space) wholeTrace(change func(attempt int) *pulumiv1.Stack, names ...string) spans.Trace {
	s.Helper()
	for attempt := 1; ; attempt++ {
		update := change(attempt).Status.LastUpdate.Name
		var trace spans.Trace
		var err error
		for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Second) {
			if trace, err = s.traceOf(update, names); err == nil {
				s.Logf("the trace of %s has %d spans", update, len(trace))
				return trace
			}
		}
		if attempt == attempts {
			s.Fatalf("no trace is whole: %v", err)
		}
		s.Logf("the trace of %s is not whole: %v", update, err)
	}
}

// traceOf fails if the trace of an Update is not whole.
func (s *space) traceOf(update string, names []string) (spans.Trace, error) {
	u, err := cluster.clients.Pulumi.AutoV1alpha1().Updates(s.namespace).Get(s.Context(), update, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	parts := strings.Split(u.Annotations[pulumiv1.AnnotationTraceparent], "-")
	if len(parts) != 4 {
		return nil, fmt.Errorf("Update %s has no trace: %v", u.Name, u.Annotations)
	}
	lines, err := collected(s.Context(), "spans", parts[1])
	if err != nil {
		return nil, err
	}
	trace, err := spans.Read(lines, parts[1])
	if err != nil {
		return nil, err
	}
	var lacks []error
	for _, want := range changed {
		if !trace.Has(want.span, want.below) {
			lacks = append(lacks, fmt.Errorf("it lacks %s below %s", want.span, want.below))
		}
	}
	tree := trace.Tree()
	for _, name := range names {
		if !strings.Contains(tree, name) {
			lacks = append(lacks, fmt.Errorf("it lacks %s", name))
		}
	}
	if err := errors.Join(lacks...); err != nil {
		return nil, fmt.Errorf("%w\nit has\n%s", err, tree)
	}
	return trace, nil
}

// checkCollected looks for what must not be in any span or metric of the whole suite.
func checkCollected(ctx context.Context) error {
	if os.Getenv("COLLECTOR_IMAGE") == "" {
		return nil
	}
	var leaks []error
	for _, what := range []string{"spans", "metrics"} {
		lines, err := collected(ctx, what, "")
		if err != nil {
			return err
		}
		fmt.Printf("The collector got %d kB of %s\n", len(lines)>>10, what)
		leaks = append(leaks, leak.InText("the "+what, lines, toldNever...))
	}
	return errors.Join(leaks...)
}
