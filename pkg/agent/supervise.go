package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Supervise is the work of PID 1: it runs the agent again as its child with the
// same arguments, forwards signals to it, reaps whatever is left to it by
// others, and ends as that child ends. The child has its own children to
// itself, so that nobody takes the status of one from it. A stop that was asked
// for already is forwarded too.
func Supervise(stop context.Context, executable string, args []string) (int, error) {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGCHLD, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)
	child, err := os.StartProcess(executable, args, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, fmt.Errorf("cannot start the agent under PID 1: %w", err)
	}
	if stop.Err() != nil {
		signals <- unix.SIGTERM
	}
	for {
		status, ended, err := reap(child.Pid)
		if err != nil {
			return 0, fmt.Errorf("cannot wait for the agent: %w", err)
		}
		if ended {
			return exitCode(status), nil
		}
		if s := (<-signals).(unix.Signal); s != unix.SIGCHLD {
			// A child that has just ended gets no signal, and needs none.
			_ = unix.Kill(child.Pid, s)
		}
	}
}

// reap collects all that has ended, and stops at the child.
func reap(child int) (status unix.WaitStatus, ended bool, err error) {
	for {
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return status, false, err
		case pid == child:
			return status, true, nil
		case pid == 0:
			return status, false, nil
		}
	}
}

// exitCode is a status as a shell would tell it.
func exitCode(status unix.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
