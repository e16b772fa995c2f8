package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/test/suite"
)

// collector is a real OpenTelemetry collector.
type collector struct {
	process  *exec.Cmd
	received string // address that is pushed to
	scraped  string // address of what it adds up to
	itself   string // address of its own metrics
	said     *suite.Text
}

// startCollector starts one by a configuration that takes its addresses from the
// environment, as monitoring's does.
func startCollector(ctx context.Context, dir, config string) (*collector, error) {
	c := &collector{said: &suite.Text{}}
	grpc := ""
	for _, address := range []*string{&c.received, &grpc, &c.scraped, &c.itself} {
		var err error
		if *address, err = freePort(ctx); err != nil {
			return nil, err
		}
	}
	host, port, err := net.SplitHostPort(c.itself)
	if err != nil {
		return nil, err
	}
	c.process = exec.CommandContext(ctx, lab.bin+"/collector", "--config", config)
	c.process.Dir = dir
	c.process.Env = append(os.Environ(), "UPDRAFT_OTLP_HTTP="+c.received, "UPDRAFT_OTLP_GRPC="+grpc,
		"UPDRAFT_PROMETHEUS="+c.scraped, "UPDRAFT_COLLECTOR_HOST="+host, "UPDRAFT_COLLECTOR_PORT="+port)
	c.process.Stdout, c.process.Stderr = c.said, c.said
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	for _, address := range []string{c.received, c.scraped} {
		if err := listens(ctx, address); err != nil {
			return nil, errors.Join(fmt.Errorf("the collector does not start: %w\n%s", err, c.said), c.stop())
		}
	}
	return c, nil
}

// listens waits until an address takes connections.
func listens(ctx context.Context, address string) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return connection.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

func (c *collector) stop() error {
	if err := c.process.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return c.process.Wait()
}

func (c *collector) metrics(interval time.Duration) observe.Metrics {
	return observe.Metrics{Protocol: observe.ProtocolHTTP, Endpoint: "http://" + c.received + "/v1/metrics", Interval: interval}
}

// get is the body of a page.
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return string(body)
}

var sample = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? (\S+)$`)

// total is the sum of the samples of this name whose labels contain all of these.
func total(t *testing.T, page, name string, labels ...string) (sum float64, series int) {
	t.Helper()
	for _, match := range sample.FindAllStringSubmatch(page, -1) {
		if match[1] != name || !containsAll(match[2], labels) {
			continue
		}
		value, err := strconv.ParseFloat(match[3], 64)
		must(t, err)
		sum += value
		series++
	}
	return sum, series
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// pod is the metrics' part of a function's pod: the real one, with no function
// behind it.
type pod struct{ meter *observe.Meter }

func newPod(t *testing.T, function string, to *collector, interval time.Duration) pod {
	t.Helper()
	meter, err := observe.NewMeter(t.Context(), to.metrics(interval), function, slog.New(slog.DiscardHandler))
	must(t, err)
	return pod{meter}
}

func (p pod) measures(all ...observe.Measurement) {
	p.meter.Serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		observe.Measured(r.Context(), all...)
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", http.NoBody))
}

// Pods of a function push the same series at the same time, each since a beginning
// of its own. What adds up drops what comes out of order: nothing may.
func TestNothingIsLostOfPodsThatPushTheSameSeries(t *testing.T) {
	const pods, times = 6, 400
	label := attribute.String("reason", "NothingIsLost")
	var running sync.WaitGroup
	for i := range pods {
		running.Go(func() {
			time.Sleep(time.Duration(i*37) * time.Millisecond) // pods do not begin together
			p := newPod(t, "updraft-status", lab.collector, 5*time.Millisecond)
			for range times {
				p.measures(observe.Measurement{Metric: observe.Retries, Value: 1, Labels: []attribute.KeyValue{label}},
					observe.Measurement{Metric: observe.QueueTime, Value: 2, Labels: []attribute.KeyValue{label}})
				time.Sleep(3 * time.Millisecond)
			}
			// The SDK cuts off a push that is under way when it is told to end, so
			// let all be pushed before.
			time.Sleep(200 * time.Millisecond)
			p.meter.Stop()
		})
	}
	running.Wait()
	eventually(t, "all is counted", func() (bool, string) {
		page := get(t, "http://"+lab.collector.scraped+"/metrics")
		retries, series := total(t, page, "updraft_retries_total", `reason="NothingIsLost"`)
		queued, _ := total(t, page, "updraft_queue_time_seconds_count", `reason="NothingIsLost"`)
		waited, _ := total(t, page, "updraft_queue_time_seconds_sum", `reason="NothingIsLost"`)
		lost, _ := total(t, get(t, "http://"+lab.collector.itself+"/metrics"), "otelcol_deltatocumulative_datapoints_total", `error="`)
		return retries == pods*times && series == 1 && queued == pods*times && waited == 2*pods*times && lost == 0,
			fmt.Sprintf("%v retries in %d series, %v times in a queue that come to %v s, %v points lost; want %d, %d, %d, none\n%s",
				retries, series, queued, waited, lost, pods*times, pods*times, 2*pods*times, lab.collector.said)
	})
}
