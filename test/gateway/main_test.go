// Package gateway tests, with everything running, that a request from outside ends
// in a run: what the gateway writes is what the functions take.
package gateway

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
	dir, err := os.MkdirTemp("", "updraft-gateway-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	start, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	environment, err = dev.Start(start, dev.Options{Bin: bin(), Dir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	return m.Run(), nil
}

// bin is the folder of the programs of others.
func bin() string {
	if dir := os.Getenv("UPDRAFT_BIN"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", ".bin")
}
