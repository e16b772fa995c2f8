package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// folder is the state folder of one plane, held by a lock that ends with the process.
//
//	etcd/  the objects: kept
//	logs/  what each program of the last start said: kept
//	run/   keys, certificates, kubeconfigs, launchers: made at the start, removed at the end
type folder struct {
	path string
	lock *os.File
}

// openFolder takes the folder, and ends what a plane that was killed has left running in it.
func openFolder(path string) (*folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f := &folder{path: path}
	for _, private := range []string{f.path, f.etcd(), f.logs()} {
		if err := os.MkdirAll(private, 0o700); err != nil {
			return nil, fmt.Errorf("cannot make the state folder: %w", err)
		}
	}
	if f.lock, err = os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("cannot lock the state folder: %w", err)
	}
	if err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("the state folder %s is in use by another control plane: stop that one, or choose another folder", path), f.lock.Close())
	}
	if err := errors.Join(endOrphans(f), os.RemoveAll(f.run()), os.Mkdir(f.run(), 0o700)); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot clear the state folder: %w", err), f.lock.Close())
	}
	return f, nil
}

// close removes the keys and gives the folder back.
func (f *folder) close() error {
	return errors.Join(os.RemoveAll(f.run()), f.lock.Close())
}

func (f *folder) etcd() string { return filepath.Join(f.path, "etcd") }
func (f *folder) logs() string { return filepath.Join(f.path, "logs") }
func (f *folder) run() string  { return filepath.Join(f.path, "run") }

// log is a fresh log file for one program. The program writes to it directly, so that nothing is lost if we die first.
func (f *folder) log(program string) (*os.File, error) {
	return os.Create(f.logPath(program))
}

func (f *folder) logPath(program string) string {
	return filepath.Join(f.logs(), program+".log")
}

// explain adds to an error what the program said last.
func (f *folder) explain(program string, err error) error {
	const tail = 4 << 10
	said, readErr := os.ReadFile(f.logPath(program))
	if readErr != nil || len(said) == 0 {
		return fmt.Errorf("%s did not come up (it logged nothing): %w", program, err)
	}
	if cut := len(said) - tail; cut > 0 {
		said = said[cut:]
	}
	return fmt.Errorf("%s did not come up: %w; the end of %s:\n%s", program, err, f.logPath(program), strings.TrimSpace(string(said)))
}
