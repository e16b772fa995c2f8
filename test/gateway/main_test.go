// Package gateway tests, with everything running, that a request from outside ends
// in a run: what the gateway writes is what the functions take.
package gateway

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/test/programs"
	"github.com/updraft-dev/updraft/test/suite"
)

// What all tests of this package share: the embedded mode, and the programs of others.
var (
	environment *dev.Environment
	bin         string
)

func TestMain(m *testing.M) { suite.Main(m, runTests) }

func runTests(m *testing.M) (code int, err error) {
	if _, bin, err = programs.Find(); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "updraft-gateway-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	start, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	environment, err = dev.Start(start, dev.Options{Bin: bin, Dir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	return m.Run(), nil
}
