// Package logs tests, from an applied Stack to what updraft logs prints, that
// what a run said is kept.
package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/pkg/local/pods"
	"github.com/updraft-dev/updraft/test/leak"
)

// environment is the embedded mode, which all tests of this package share.
var environment *dev.Environment

// The test binary is also the supervisor of the pods' processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == dev.PodSupervisor {
		os.Exit(pods.Supervise(os.Args[2:]))
	}
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "updraft-logs-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx := context.Background()
	start, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	environment, err = dev.Start(start, dev.Options{Bin: bin(), Dir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	code = m.Run()
	return code, leak.InObjects(ctx, environment.Config, "only-for-friends", "correct-horse-battery-staple")
}

// bin is the folder of the programs of others.
func bin() string {
	if dir := os.Getenv("UPDRAFT_BIN"); dir != "" {
		return dir
	}
	return filepath.Join(root(), ".bin")
}

func root() string { return filepath.Join("..", "..") }
