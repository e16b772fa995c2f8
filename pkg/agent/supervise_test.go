package agent

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asSupervisor makes the test binary supervise a shell script, as PID 1 would:
// orphans of the script are left to it.
const asSupervisor = "UPDRAFT_TEST_SUPERVISE"

func TestMain(m *testing.M) {
	script, found := os.LookupEnv(asSupervisor)
	if !found {
		os.Exit(m.Run())
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	code, err := Supervise(context.Background(), "/bin/sh", []string{"sh", "-c", script})
	if err != nil {
		panic(err)
	}
	os.Exit(code)
}

func TestSupervise(t *testing.T) {
	cases := map[string]struct {
		script string
		signal syscall.Signal
		want   int
	}{
		"The child's exit code is the supervisor's": {script: "exit 3", want: 3},
		"A child that a signal ended is told as a shell would": {
			script: "kill -KILL $$", want: 137},
		"An orphan is reaped while the child goes on": {
			// A process that ended is there for kill -0 until it is reaped.
			script: `(sh -c 'exit 0' & echo $! >orphan); while kill -0 $(cat orphan) 2>/dev/null; do sleep 0.01; done; exit 7`, want: 7},
		"A child's own children are its own": {
			script: `sh -c 'exit 5' & wait $!; exit $?`, want: 5},
		"A signal reaches the child": {
			script: `trap 'exit 9' TERM; touch ready; while :; do sleep 0.01; done`, signal: syscall.SIGTERM, want: 9},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0])
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), asSupervisor+"="+c.script)
			var output bytes.Buffer
			cmd.Stdout, cmd.Stderr = &output, &output
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if c.signal != 0 {
				awaitFile(t, filepath.Join(dir, "ready"))
				if err := cmd.Process.Signal(c.signal); err != nil {
					t.Fatal(err)
				}
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != c.want {
				t.Errorf("exit code = %d, want %d; it said %s", got, c.want, output.String())
			}
		})
	}
}

// awaitFile waits until a file is there.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := os.Stat(path); err == nil {
			return
		} else if !errors.Is(err, fs.ErrNotExist) || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}
