// Package logs tests, from an applied Stack to what updraft logs prints, that
// what a run said is kept.
package logs

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/test/leak"
	"github.com/updraft-dev/updraft/test/programs"
	"github.com/updraft-dev/updraft/test/suite"
)

// What all tests of this package share: the embedded mode, the repository, and the
// programs of others.
var (
	environment *dev.Environment
	root, bin   string
)

func TestMain(m *testing.M) { suite.Main(m, runTests) }

func runTests(m *testing.M) (code int, err error) {
	if root, bin, err = programs.Find(); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "updraft-logs-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx := context.Background()
	start, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	environment, err = dev.Start(start, dev.Options{Bin: bin, Dir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	code = m.Run()
	return code, leak.InObjects(ctx, environment.Config, "only-for-friends", "correct-horse-battery-staple")
}
