// Package samples runs the samples of subscribers as they stand: their own programs,
// built from the source that their image names, woken through their own Triggers by
// Knative's filters and dispatcher, with the token and the rights of their
// ServiceAccounts at a real API server. Only where they are served is the test's.
package samples

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/pkg/local/broker"
	"github.com/updraft-dev/updraft/test/leak"
	"github.com/updraft-dev/updraft/test/programs"
	"github.com/updraft-dev/updraft/test/suite"
)

// lab is what all tests share.
var lab struct {
	root, bin, folder string
	env               *dev.Environment
	// broker brings to the samples' Triggers what is sent to the environment's own.
	broker *broker.Broker
	// served are the subscribers' addresses by name.
	served map[string]string
}

func TestMain(m *testing.M) { suite.Main(m, runAll) }

func runAll(m *testing.M) (code int, err error) {
	if lab.root, lab.bin, err = programs.Find(); err != nil {
		return 1, err
	}
	if lab.folder, err = os.MkdirTemp("", "updraft-samples-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(lab.folder)) }()
	agent := filepath.Join(lab.folder, "agent")
	if err := programs.BuildAgent(lab.root, agent); err != nil {
		return 1, err
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	klog.SetSlogLogger(logger)
	if err := startBroker(logger); err != nil {
		return 1, err
	}
	ctx := context.Background()
	start, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	lab.env, err = dev.Start(start, dev.Options{Bin: lab.bin, Agent: agent, Dir: filepath.Join(lab.folder, "state"), Log: logger, Wrap: overhear})
	if err != nil {
		return 1, err
	}
	code = m.Run()
	err = errors.Join(leak.InObjects(ctx, lab.env.Config, "correct-horse-battery-staple"), lab.broker.Drain(start), lab.env.Stop())
	if code != 0 {
		fmt.Fprintf(os.Stderr, "The end of the functions' log:\n%s\n", log.Bytes()[max(0, log.Len()-8000):])
	}
	return code, err
}

// startBroker reads the Triggers of all samples.
func startBroker(log *slog.Logger) error {
	files, err := filepath.Glob(filepath.Join(lab.root, "samples", "*", "*.yaml"))
	if err != nil {
		return err
	}
	triggers, err := broker.LoadTriggers(files...)
	if err != nil {
		return err
	}
	lab.served = map[string]string{}
	for _, trigger := range triggers {
		if lab.served[trigger.Spec.Subscriber.Ref.Name], err = freeAddress(); err != nil {
			return err
		}
	}
	lab.broker, err = broker.New(broker.Options{Triggers: triggers, Log: log, Resolve: func(ref duckv1.KReference) (*apis.URL, error) {
		return apis.ParseURL("http://" + lab.served[ref.Name])
	}})
	return err
}

// overhear sends on what the environment's Broker takes.
func overhear(name string, handler http.Handler) http.Handler {
	if name != "broker" {
		return handler
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		copied := r.Clone(r.Context())
		r.Body, copied.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(rw, r)
		lab.broker.ServeHTTP(httptest.NewRecorder(), copied)
	})
}
