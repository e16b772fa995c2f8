package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/updraft-dev/updraft/functions/gateway"
	"github.com/updraft-dev/updraft/pkg/observe"
)

// startTime is how long everything may take to come up.
const startTime = 3 * time.Minute

type flags struct {
	bin, dir, log string
	traces        string
	metrics       string
}

// Command is updraft dev.
func Command() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   "dev",
		Short: "Run Updraft on this machine, with a Kubernetes API server of its own",
		Long: `Runs everything on this machine until Ctrl-C: a real Kubernetes API server,
Knative's own source, filters and cron, all functions of Updraft, and pods as
local processes. It needs no cluster, no root and no container engine.

What differs from a cluster: images are not pulled (the pulumi CLI beside this
program runs, whatever image a Stack names), a user's own init and side
containers are refused, and a PersistentVolumeClaim is a folder.`,
		Example: `  updraft dev
  updraft dev --traces http://localhost:4318/v1/traces    # see samples/tracing
  updraft dev --metrics http://localhost:4318/v1/metrics  # see docs/metrics.md
  updraft dev --dir ./state    # keep Stacks and their state from one run to the next`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runDev(c.Context(), c.OutOrStdout(), f) },
	}
	command.Flags().StringVar(&f.bin, "bin", "", "folder of the programs that run (default: the folder of this one)")
	command.Flags().StringVar(&f.dir, "dir", "", "folder that keeps all state (default: a temporary one that is removed at the end)")
	command.Flags().StringVar(&f.log, "log", "", "file for the functions' logs, as JSON lines (default: none)")
	command.Flags().StringVar(&f.traces, "traces", "", "URL to which spans are posted by OTLP, such as http://localhost:4318/v1/traces (default: nothing is traced)")
	command.Flags().StringVar(&f.metrics, "metrics", "", "URL to which metrics are posted by OTLP, such as http://localhost:4318/v1/metrics (default: nothing is measured)")
	return command
}

func runDev(ctx context.Context, out io.Writer, f flags) (err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	screen := newScreen(out)
	options, cleanUp, err := f.options(screen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanUp()) }()
	began := time.Now()
	e, err := startWithin(ctx, options)
	if err != nil {
		return err
	}
	screen.say("Ready after %.1f s. In another terminal:", time.Since(began).Seconds())
	screen.say("")
	screen.say("  export KUBECONFIG=%s", e.Kubeconfig)
	screen.say("  kubectl apply -f samples/hello && kubectl get stacks --watch")
	screen.say("")
	screen.say("It takes events from outside (docs/events-in.md) at")
	screen.say("")
	screen.say("  export GATEWAY=%s", e.Functions[gateway.Name])
	screen.say("")
	screen.say("Ctrl-C stops everything.")
	watched := make(chan struct{})
	go func() { defer close(watched); screen.watch(ctx, e.Config) }()
	<-ctx.Done()
	<-watched
	stop() // a second Ctrl-C ends this program at once
	screen.say("Stopping")
	return e.Stop()
}

func startWithin(ctx context.Context, options Options) (*Environment, error) {
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return Start(limited, options)
}

func (f flags) options(s *screen) (Options, func() error, error) {
	o := Options{Bin: f.bin, Dir: f.dir, Progress: func(m string) { s.say("%s", m) }, Notice: func(m string) { s.say("Note: %s", m) }}
	observed := map[string]string{}
	if f.traces != "" {
		observed["tracing-protocol"], observed["tracing-endpoint"], observed["tracing-sampling-rate"] = observe.ProtocolHTTP, f.traces, "1"
	}
	if f.metrics != "" {
		observed["metrics-protocol"], observed["metrics-endpoint"], observed["metrics-export-interval"] = observe.ProtocolHTTP, f.metrics, "5s"
	}
	var err error
	if o.Observe, err = observe.Parse(observed, nil, ""); err != nil {
		return o, nil, fmt.Errorf("--traces or --metrics: %w", err)
	}
	cleanUp := func() error { return nil }
	if o.Bin == "" {
		program, err := os.Executable()
		if err != nil {
			return o, nil, fmt.Errorf("cannot find the folder of the programs; give it with --bin: %w", err)
		}
		o.Bin = filepath.Dir(program)
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "updraft-")
		if err != nil {
			return o, nil, fmt.Errorf("cannot make a folder for the state: %w", err)
		}
		o.Dir, cleanUp = dir, func() error { return os.RemoveAll(dir) }
	}
	log, closeLog, err := openLog(f.log)
	if err != nil {
		return o, nil, errors.Join(err, cleanUp())
	}
	o.Log = log
	klog.SetSlogLogger(log)
	remove := cleanUp
	return o, func() error { return errors.Join(remove(), closeLog()) }, nil
}

func openLog(path string) (*slog.Logger, func() error, error) {
	if path == "" {
		return slog.New(slog.DiscardHandler), func() error { return nil }, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open the log: %w", err)
	}
	return slog.New(slog.NewJSONHandler(file, nil)), file.Close, nil
}
