package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// endOrphans kills what a plane that no longer lives has left running in this folder. Its launchers have noted the pids; one counts
// only if its command line names a file of the folder, since the pid may be another's by now. Without /proc nothing is known for
// sure, and nothing is killed.
func endOrphans(f *folder) error {
	notes, err := filepath.Glob(filepath.Join(f.run(), "*.pid"))
	if err != nil {
		return err
	}
	for _, note := range notes {
		text, err := os.ReadFile(note)
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || !works(pid, f.path) {
			continue // cut off while it was written, or long gone
		}
		if err := endOrphan(pid, f.path); err != nil {
			return err
		}
	}
	return nil
}

func endOrphan(pid int, path string) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot end process %d, left by an earlier start: %w", pid, err)
	}
	for deadline := time.Now().Add(10 * time.Second); works(pid, path); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d, left by an earlier start, does not end", pid)
		}
	}
	return nil
}

// works says whether the process runs with a file below path in an argument. One that has ended, and is only not waited for yet,
// has no arguments.
func works(pid int, path string) bool {
	arguments, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && bytes.Contains(arguments, []byte("="+path+"/"))
}
