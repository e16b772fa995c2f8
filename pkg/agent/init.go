package agent

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/fetch"
	"github.com/updraft-dev/updraft/pkg/run"
)

// revisionFile, in the share, is where init leaves the source's revision for
// run.
const revisionFile = "revision"

// fetchedFile, in the share, is where init leaves how long it took, in seconds.
const fetchedFile = "fetched"

// Init puts the agent and the source into the share. The answer is the exit
// code.
func Init(ctx context.Context, c Config) int {
	ctx, t := c.trace(ctx)
	defer t.close()
	err := t.phase(ctx, run.PhaseFetch, c.init)
	if err == nil {
		err = c.keepTime(t.took[run.PhaseFetch])
	}
	if err != nil {
		c.terminate(faultf(autov1alpha1.ReasonWorkspaceFailed, "%v", err))
		return 1
	}
	return 0
}

func (c Config) init(ctx context.Context) error {
	if err := copyExecutable(c.Executable, c.path(run.AgentPath)); err != nil {
		return fmt.Errorf("cannot copy the agent into the share: %w", err)
	}
	spec, err := c.readSpec()
	if err != nil {
		return err
	}
	revision, err := fetch.Fetch(ctx, c.Root, spec.Source, c.Git)
	if err != nil {
		return fmt.Errorf("cannot fetch the source: %w", err)
	}
	if err := os.WriteFile(c.path(revisionFile), []byte(revision), 0o644); err != nil {
		return fmt.Errorf("cannot keep the source's revision: %w", err)
	}
	return nil
}

// keepTime leaves for the report how long the fetch took.
func (c Config) keepTime(seconds float64) error {
	if err := os.WriteFile(c.path(fetchedFile), strconv.AppendFloat(nil, seconds, 'f', 3, 64), 0o644); err != nil {
		return fmt.Errorf("cannot keep how long the fetch took: %w", err)
	}
	return nil
}

// readSpec reads what the run is to do.
func (c Config) readSpec() (run.Spec, error) {
	var spec run.Spec
	if err := readJSON(c.path(run.SpecFolder, run.SpecFile), &spec); err != nil {
		return spec, fmt.Errorf("cannot read what to do: %w", err)
	}
	return spec, nil
}

// copyExecutable copies by way of a second name, so that an agent which is
// there already, running even, is replaced whole.
func copyExecutable(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(to), "agent-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(out.Name(), 0o755); err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}
