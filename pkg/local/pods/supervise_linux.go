package pods

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reportsDescriptor is where a supervisor reports to.
const reportsDescriptor = 3

// supervisor is the init process of one container. All of it happens in one
// goroutine on one thread: the kernel kills the main process when the thread
// that started it dies, and no lock is needed between starting and reaping.
type supervisor struct {
	orders  chan order
	signals chan os.Signal
	reports *json.Encoder
	main    int
	end     exit
}

// Supervise is the main of a supervisor's process: it runs what it is told to on
// its standard input, and returns when no descendant is left.
//
// It has no parent death signal. That would be SIGKILL or another, sent when a
// thread of the Runner's process ends; SIGKILL would kill the one process that
// can find all others, and the end of the orders, which the kernel brings about
// when the Runner's process dies in whatever way, says the same.
func Supervise([]string) int {
	runtime.LockOSThread()
	closeOnExec()
	s := &supervisor{
		orders:  make(chan order),
		signals: make(chan os.Signal, 16),
		reports: json.NewEncoder(os.NewFile(reportsDescriptor, "reports")),
	}
	signal.Notify(s.signals, unix.SIGCHLD, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	if err := s.start(); err != nil {
		_ = s.reports.Encode(report{Error: err.Error()})
		return 1
	}
	// The Runner may be dead, so that nobody hears a report. It is all the same.
	_ = s.reports.Encode(report{Started: new(time.Now())})
	s.watch()
	s.killAll()
	_ = s.reports.Encode(report{Exit: &s.end})
	return 0
}

// closeOnExec keeps all but the standard descriptors from the main process: the
// reports, and whatever the Runner's process had been given by who started it.
func closeOnExec() {
	names, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range names {
		if fd, err := strconv.Atoi(filepath.Base(name)); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// start becomes the parent of all orphans, and runs the main process.
func (s *supervisor) start() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become a subreaper: %w", err)
	}
	decoder := json.NewDecoder(os.Stdin)
	var spec processSpec
	if err := decoder.Decode(&spec); err != nil {
		return fmt.Errorf("cannot read what to run: %w", err)
	}
	if err := s.fork(spec); err != nil {
		return fmt.Errorf("cannot start %s: %w", spec.Argv[0], err)
	}
	go s.listen(decoder)
	return nil
}

func (s *supervisor) fork(spec processSpec) error {
	input, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer input.Close()
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// Not with os/exec: it would wait for this child beside the loop which waits
	// for all of them.
	s.main, err = syscall.ForkExec(spec.Argv[0], spec.Argv, &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   spec.Env,
		Files: []uintptr{input.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	return err
}

func (s *supervisor) listen(decoder *json.Decoder) {
	defer close(s.orders)
	for {
		var next order
		if err := decoder.Decode(&next); err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, "Cannot read orders:", err)
			}
			return
		}
		s.orders <- next
	}
}

// watch returns when the main process has ended, or when all have to.
func (s *supervisor) watch() {
	for s.end.At.IsZero() {
		select {
		case next, ok := <-s.orders:
			if !ok {
				return
			}
			// It has not been waited for yet, so the number is still its own.
			_ = unix.Kill(s.main, unix.Signal(next.Signal))
		case received := <-s.signals:
			if received != unix.SIGCHLD {
				return
			}
			for s.reap(unix.WNOHANG) {
			}
		}
	}
}

// reap waits for one child, and says whether there was one to wait for.
func (s *supervisor) reap(options int) bool {
	var status unix.WaitStatus
	pid, err := unix.Wait4(-1, &status, options, nil)
	for errors.Is(err, unix.EINTR) {
		pid, err = unix.Wait4(-1, &status, options, nil)
	}
	if pid == s.main && err == nil && pid > 0 {
		s.end = exit{At: time.Now()}
		if status.Signaled() {
			s.end.Signal = int(status.Signal())
		} else {
			s.end.Code = status.ExitStatus()
		}
	}
	return err == nil && pid > 0
}

// killAll kills all descendants. A process can fork before it is killed, but not
// get away: what it leaves becomes a child of this one, so that there is
// something to wait for until there is nothing left.
func (s *supervisor) killAll() {
	for {
		for _, pid := range descendants(os.Getpid()) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if !s.reap(0) {
			return
		}
		for s.reap(unix.WNOHANG) {
		}
	}
}
