package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// A launcher stands between envtest, which offers no say in how it starts a program, and the program: it notes the pid, asks for the
// program's end at ours, and becomes the program.
const launcher = `#!/bin/sh
echo $$ > %[1]s
setpriv --pdeathsig KILL true 2>/dev/null && exec setpriv --pdeathsig KILL %[2]s "$@"
exec %[2]s "$@"
`

// launch writes the launcher of a program and returns its path.
func (p *Plane) launch(program string) (string, error) {
	path := filepath.Join(p.folder.run(), program)
	script := fmt.Sprintf(launcher, quote(path+".pid"), quote(filepath.Join(p.options.Bin, program)))
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("cannot write the launcher of %s: %w", program, err)
	}
	return path, nil
}

func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// thread starts processes. "At our end", to the kernel, is the end of the thread that started them, and Go ends threads as it
// likes; so there is one that lives as long as the plane.
type thread struct {
	calls chan func()
}

func newThread() *thread {
	t := &thread{calls: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for call := range t.calls {
			call()
		}
	}()
	return t
}

func (t *thread) do(f func() error) (err error) {
	done := make(chan struct{})
	t.calls <- func() { err = f(); close(done) }
	<-done
	return err
}

func (t *thread) end() { close(t.calls) }
