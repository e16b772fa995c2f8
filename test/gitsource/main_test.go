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
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/pkg/local/pods"
	"github.com/updraft-dev/updraft/test/leak"
)

// lab is what all tests share.
var lab struct {
	root, bin, folder string
	env               *dev.Environment
}

func TestMain(m *testing.M) {
	// Before all else: each container of a local pod starts this program so.
	if len(os.Args) > 1 && os.Args[1] == dev.PodSupervisor {
		os.Exit(pods.Supervise(os.Args[2:]))
	}
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	if err := find(); err != nil {
		return 1, err
	}
	if lab.folder, err = os.MkdirTemp("", "updraft-gitsource-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(lab.folder)) }()
	agent := filepath.Join(lab.folder, "agent")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", agent, "./cmd/agent")
	build.Dir = lab.root
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("cannot build the agent: %w\n%s", err, out)
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

// find finds the repository and the programs of others.
func find() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for lab.root = dir; ; lab.root = filepath.Dir(lab.root) {
		if _, err := os.Stat(filepath.Join(lab.root, "go.mod")); err == nil {
			break
		}
		if lab.root == filepath.Dir(lab.root) {
			return errors.New("no go.mod above the tests")
		}
	}
	if lab.bin = os.Getenv("UPDRAFT_BIN"); lab.bin == "" {
		lab.bin = filepath.Join(lab.root, ".bin")
	}
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "pulumi", "pulumi-language-yaml"} {
		if _, err := os.Stat(filepath.Join(lab.bin, program)); err != nil {
			return fmt.Errorf("no program %s in %s: run make tools", program, lab.bin)
		}
	}
	return nil
}
