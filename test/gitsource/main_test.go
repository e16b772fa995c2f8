// Package gitsource tests git sources against a real API server, Knative's own
// source adapter and filters, the real CLI, and git's own HTTP server.
//
// All tests share one environment, each in a namespace of its own. Polls are sent
// to the Broker where a PingSource would ring, or the PingSource is made to ring
// each second: none waits for a minute.
package gitsource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/test/leak"
	"github.com/updraft-dev/updraft/test/programs"
	"github.com/updraft-dev/updraft/test/suite"
)

// lab is what all tests share.
var lab struct {
	root, bin, folder string
	env               *dev.Environment
}

func TestMain(m *testing.M) { suite.Main(m, runAll) }

func runAll(m *testing.M) (code int, err error) {
	if lab.root, lab.bin, err = programs.Find(); err != nil {
		return 1, err
	}
	if lab.folder, err = os.MkdirTemp("", "updraft-gitsource-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(lab.folder)) }()
	agent := filepath.Join(lab.folder, "agent")
	if err := programs.BuildAgent(lab.root, agent); err != nil {
		return 1, err
	}
	log, err := os.Create(filepath.Join(lab.folder, "log"))
	if err != nil {
		return 1, err
	}
	defer log.Close()
	logger := slog.New(slog.NewJSONHandler(log, nil))
	klog.SetSlogLogger(logger)
	ctx := context.Background()
	start, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	lab.env, err = dev.Start(start, dev.Options{Bin: lab.bin, Agent: agent, Dir: filepath.Join(lab.folder, "state"), Log: logger})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, lab.env.Stop()) }()
	code = m.Run()
	text, err := os.ReadFile(log.Name())
	if err != nil {
		return code, err
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "The end of the functions' log:\n%s\n", text[max(0, len(text)-8000):])
	}
	return code, errors.Join(leak.InText("a log", string(text), secretValues...), leak.InObjects(ctx, lab.env.Config, secretValues...))
}

// secretValues are in Secrets of the tests and of the sample, and may be nowhere
// else.
var secretValues = []string{token, "correct-horse-battery-staple"}

// token is what a repository is read with.
const token = "hush-this-is-a-token"
