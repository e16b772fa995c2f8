// Package metrics tests what monitoring/ ships, as it stands: its collector's
// configuration in a real OpenTelemetry collector that the real functions push to, its rules and the
// dashboard's expressions in a real Prometheus, and what a real kube-state-metrics
// tells of real Stacks on a real API server.
package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/test/programs"
	"github.com/updraft-dev/updraft/test/suite"
)

// lab is what all tests share.
var lab struct {
	root, bin string
	env       *dev.Environment
	collector *collector
	// prometheus is nil where there is none; without says why.
	prometheus *prometheus
	without    string
	// asleep says that functions swallow their events.
	asleep atomic.Bool
}

func TestMain(m *testing.M) { suite.Main(m, runTests) }

func runTests(m *testing.M) (code int, err error) {
	if lab.root, lab.bin, err = programs.Find("collector", "kube-state-metrics"); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "updraft-metrics-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := programs.BuildAgent(lab.root, filepath.Join(dir, "agent")); err != nil {
		return 1, err
	}
	ctx := context.Background()
	if lab.collector, err = startCollector(ctx, dir, shipped("collector.yaml")); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, lab.collector.stop()) }()
	var logged suite.Text
	logger := slog.New(slog.NewJSONHandler(&logged, nil))
	klog.SetSlogLogger(logger)
	start, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	lab.env, err = dev.Start(start, dev.Options{
		Bin: lab.bin, Agent: filepath.Join(dir, "agent"), Dir: dir, Log: logger,
		Observe: observe.Config{Metrics: lab.collector.metrics(500 * time.Millisecond)},
		Wrap:    swallow,
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, lab.env.Stop()) }()
	if !findPrometheus() {
		return m.Run(), nil
	}
	state, err := startState(ctx, dir, &logged)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, state.stop()) }()
	rules, err := hastened(dir)
	if err != nil {
		return 1, err
	}
	if lab.prometheus, err = startPrometheus(ctx, dir, rules, lab.collector.scraped, state.address); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, lab.prometheus.stop()) }()
	return m.Run(), nil
}

// swallow lets functions be asleep: an event is taken, and nothing comes of it.
func swallow(name string, h http.Handler) http.Handler {
	if name == "broker" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lab.asleep.Load() {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// findPrometheus says whether there is one. Where Debian's packages cannot be had,
// what needs it is left out.
func findPrometheus() bool {
	for _, program := range []string{"prometheus", "promtool"} {
		if _, err := os.Stat(filepath.Join(lab.bin, program)); err == nil {
			continue
		}
		lab.without = "no " + program + " in " + lab.bin + ": run make tools"
		if _, err := exec.LookPath("apt-get"); err != nil {
			lab.without = "no " + program + " in " + lab.bin + ", and no apt-get to have it from"
		}
		return false
	}
	return true
}

// needsPrometheus leaves a test out where there is no apt-get, and fails it where
// there is one.
func needsPrometheus(t *testing.T) {
	t.Helper()
	if lab.without == "" {
		return
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("LEFT OUT: " + lab.without)
	}
	t.Fatal(lab.without)
}

// shipped is a file of monitoring.
func shipped(name string) string { return filepath.Join(lab.root, "monitoring", name) }

// freePort is one of the loopback's that nobody listens on.
func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, condition func() (done bool, found string)) {
	t.Helper()
	var found string
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		var done bool
		if done, found = condition(); done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s\nlast: %s", what, found)
		}
	}
}
