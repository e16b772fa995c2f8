package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/test/spans"
)

// collector is a real OpenTelemetry collector, which writes what it receives to a
// file.
type collector struct {
	process *exec.Cmd
	address string
	file    string
}

func startCollector(ctx context.Context, program, dir string) (*collector, error) {
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &collector{address: free.Addr().String(), file: filepath.Join(dir, "spans.jsonl")}
	sample, err := os.ReadFile(filepath.Join(root, "samples", "tracing", "collector.yaml"))
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer("127.0.0.1:4318", c.address, "spans.jsonl", c.file).Replace(string(sample))
	config := filepath.Join(dir, "collector.yaml")
	if err := errors.Join(free.Close(), os.WriteFile(config, []byte(text), 0o600)); err != nil {
		return nil, err
	}
	var said bytes.Buffer
	c.process = exec.CommandContext(ctx, program, "--config", config)
	c.process.Stdout, c.process.Stderr = &said, &said
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.address)
		if err == nil {
			return c, connection.Close()
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("the collector does not start: %w\n%s", err, said.String()), c.stop())
		}
	}
}

func (c *collector) stop() error {
	if err := c.process.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return c.process.Wait()
}

func (c *collector) tracing() observe.Tracing {
	return observe.Tracing{Protocol: observe.ProtocolHTTP, Endpoint: "http://" + c.address + "/v1/traces", Rate: 1}
}

// spans are those of a trace.
func (c *collector) spans(trace string) (spans.Trace, error) {
	content, err := os.ReadFile(c.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return spans.Read(string(content), trace)
}
