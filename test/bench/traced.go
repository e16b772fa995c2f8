package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/pkg/client/clientset/versioned"
	"github.com/updraft-dev/updraft/pkg/observe"
)

// observedTries of Stacks with and without tracing, of which the medians count.
const observedTries = 12

// traced measures what it costs to trace and measure all, by Stacks in turn in an
// environment that does and in one that does not.
func traced(ctx context.Context, plain *dev.Environment, bin, dir string) (rows []row, err error) {
	to, stop, err := collector(ctx, bin, dir)
	if err != nil {
		return nil, err
	}
	defer stop()
	tracing := observe.Tracing{Protocol: observe.ProtocolHTTP, Endpoint: to + "/v1/traces", Rate: 1}
	observed, err := dev.Start(ctx, dev.Options{Bin: bin, Dir: filepath.Join(dir, "observed"), Observe: observe.Config{
		Tracing: tracing, Runs: tracing,
	}})
	if err != nil {
		return nil, err
	}
	defer func() { _ = observed.Stop() }() // the figures are had
	took := map[*dev.Environment][]time.Duration{}
	for i := range observedTries + 1 {
		for _, e := range []*dev.Environment{plain, observed} {
			client, err := versioned.NewForConfig(e.Config)
			if err != nil {
				return nil, err
			}
			if i == 0 && e == observed {
				if err := program(ctx, client); err != nil {
					return nil, err
				}
			}
			d, err := oneStack(ctx, client, fmt.Sprintf("observed-%d", i))
			if err != nil {
				return nil, err
			}
			if i > 0 { // the first wakes all
				took[e] = append(took[e], d)
			}
		}
	}
	with, without := median(took[observed]), median(took[plain])
	return []row{{
		"the same with all traced", seconds(with),
		fmt.Sprintf("median of %d, and %s without, in turn, with two environments: %+.0f %%", observedTries, seconds(without), 100*(with.Seconds()/without.Seconds()-1)),
	}}, nil
}

// collector starts an OpenTelemetry collector by the configuration of samples/tracing.
func collector(ctx context.Context, bin, dir string) (url string, stop func(), err error) {
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return "", nil, err
	}
	sample, err := os.ReadFile("samples/tracing/collector.yaml")
	if err != nil {
		return "", nil, err
	}
	config := filepath.Join(dir, "collector.yaml")
	text := strings.NewReplacer("127.0.0.1:4318", address, "spans.jsonl", filepath.Join(dir, "spans.jsonl")).Replace(string(sample))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", nil, err
	}
	c := exec.CommandContext(ctx, filepath.Join(bin, "collector"), "--config", config)
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	return "http://" + address, func() {
		_ = c.Process.Kill() // it is not asked for anything any more
		_ = c.Wait()
	}, nil
}
