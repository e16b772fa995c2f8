// Package tracing tests that a change has one trace, from the event that it began
// with to the write of its Stack's status: in the embedded mode, with a real
// OpenTelemetry collector, and with one that is dead.
package tracing

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/test/leak"
	"github.com/updraft-dev/updraft/test/programs"
	"github.com/updraft-dev/updraft/test/suite"
)

// What all tests of this package share: the embedded mode, where it logs, and the
// collector that it sends spans to.
var (
	environment *dev.Environment
	root, bin   string
	logged      suite.Text
	collected   *collector
)

// secrets of samples/hello: a configuration value, which is an output too, and a
// passphrase. values are the other values of its configuration and its outputs.
var (
	secrets = []string{"only-for-friends", "correct-horse-battery-staple"}
	values  = []string{"Hello, world!"}
)

func TestMain(m *testing.M) { suite.Main(m, runTests) }

func runTests(m *testing.M) (code int, err error) {
	if root, bin, err = programs.Find("collector"); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "updraft-tracing-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := programs.BuildAgent(root, filepath.Join(dir, "agent")); err != nil {
		return 0, err
	}
	ctx := context.Background()
	if collected, err = startCollector(ctx, filepath.Join(bin, "collector"), dir); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, collected.stop()) }()
	start, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	environment, err = dev.Start(start, dev.Options{
		Bin: bin, Agent: filepath.Join(dir, "agent"), Dir: dir, Log: slog.New(slog.NewJSONHandler(&logged, nil)),
		Observe: observe.Config{Tracing: collected.tracing(), Runs: collected.tracing()},
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	code = m.Run()
	spans, err := os.ReadFile(collected.file)
	return code, errors.Join(err, leak.InObjects(ctx, environment.Config, secrets...),
		leak.InText("a span", string(spans), append(values, secrets...)...),
		leak.InText("the log", logged.String(), append(values, secrets...)...))
}
