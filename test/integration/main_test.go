// Package integration tests the whole of Updraft against what it meets in
// earnest: a real API server with its controllers, Knative's own source adapter,
// filters and cron, the real pulumi CLI, and pods, which are processes here.
//
// All tests share one environment, each in a namespace of its own; the name of
// the namespace says what becomes of its events (see tamper). What must hold at
// all times is checked on every version of every object, for the whole run (see
// observer); what must not be in logs and events is looked for at the end.
package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/test/programs"
	"github.com/updraft-dev/updraft/test/schemas"
	"github.com/updraft-dev/updraft/test/suite"
)

// parallel tests mostly wait for a run, of which two cores bear about four; one
// more waits in real time, and one for a person.
const parallel = "6"

// lab is what all tests share.
var lab struct {
	folder string
	root   string
	bin    string
	agent  string
	// schemas of what other systems are told.
	schemas schemas.Schemas
	main    *place
	// moving is the environment whose clock is moved, started by the first test
	// that needs it.
	moving func() (*place, error)
	mu     sync.Mutex
	places []*place
}

func TestMain(m *testing.M) { suite.Main(m, runAll) }

func runAll(m *testing.M) (code int, err error) {
	if err := limitParallel(); err != nil {
		return 1, err
	}
	if lab.folder, err = os.MkdirTemp("", "updraft-integration-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, removeAll(lab.folder)) }()
	if lab.root, lab.bin, err = programs.Find(); err != nil {
		return 1, err
	}
	if lab.schemas, err = schemas.Load(lab.root); err != nil {
		return 1, err
	}
	lab.agent = filepath.Join(lab.folder, "agent")
	if err := programs.BuildAgent(lab.root, lab.agent); err != nil {
		return 1, err
	}
	klog.SetSlogLogger(witness.logger("klog"))
	lab.moving = sync.OnceValues(func() (*place, error) { return startPlace("moving", nil) })
	defer func() { err = errors.Join(err, stopAll()) }()
	if lab.main, err = startPlace("main", func(o *dev.Options) { o.SweepSchedule = "*/5 * * * * *" }); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, errors.Join(finalVerdict(), everyReasonWasProvoked(), everythingWasTold())
}

// everythingWasTold says of which type with a schema no event was sent in the whole
// run, if all tests were run.
func everythingWasTold() error {
	if selected() {
		return nil
	}
	var errs []error
	for _, eventType := range witness.untold() {
		errs = append(errs, fmt.Errorf("no test provoked an event %s", eventType))
	}
	return errors.Join(errs...)
}

// selected says whether only some of the tests are run.
func selected() bool {
	return slices.ContainsFunc([]string{"test.run", "test.skip"}, func(name string) bool {
		return flag.Lookup(name).Value.String() != ""
	})
}

// everyReasonWasProvoked says which page of the runbook tells of a reason that
// no condition had in the whole run, if all tests were run.
func everyReasonWasProvoked() error {
	if selected() {
		return nil
	}
	pages, err := filepath.Glob(filepath.Join(lab.root, "docs", "runbook", "*-*.md"))
	if err != nil || len(pages) == 0 {
		return fmt.Errorf("the runbook has no pages: %w", err)
	}
	lab.mu.Lock()
	defer lab.mu.Unlock()
	var errs []error
	for _, page := range pages {
		if !slices.ContainsFunc(lab.places, func(p *place) bool { return p.watch.provoked(filepath.Base(page)) }) {
			errs = append(errs, fmt.Errorf("no test provoked the reason of docs/runbook/%s", filepath.Base(page)))
		}
	}
	return errors.Join(errs...)
}

// finalVerdict gives the observers the time to see what the last test did: one of
// them may have seen a Stack's end and not yet that of its Update.
func finalVerdict() (err error) {
	for range 50 {
		if err = witness.verdict(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// limitParallel sets how many tests run at once, unless the command line does.
func limitParallel() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", parallel)
}

// stopAll stops every environment, and checks that nothing is left of it.
func stopAll() error {
	lab.mu.Lock()
	places := lab.places
	lab.mu.Unlock()
	var errs []error
	for _, p := range places {
		errs = append(errs, p.stop())
	}
	return errors.Join(append(errs, leftOverOf(lab.folder))...)
}

// leftOverOf tells of processes that outlive the environment they were of.
func leftOverOf(folder string) error {
	var left []string
	for _, p := range processes() {
		if p.pid != os.Getpid() && strings.Contains(p.command, folder) {
			left = append(left, fmt.Sprintf("%d %s", p.pid, p.command))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("processes were left:\n%s", strings.Join(left, "\n"))
}

// keep is the variable that keeps what the run leaves, logs and events too.
const keep = "UPDRAFT_TEST_KEEP"

func removeAll(folder string) error {
	if os.Getenv(keep) == "" {
		return os.RemoveAll(folder)
	}
	fmt.Fprintln(os.Stderr, "kept", folder)
	return witness.write(folder)
}

// startTime is how long an environment may take to come up on a busy machine.
const startTime = 3 * time.Minute

func within(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), limit)
}
