// Package suite is what suites have in common that share one embedded mode.
package suite

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/pkg/local/pods"
)

// Main runs a suite and does not return. The test binary is also the supervisor of
// the pods' processes: each container of a local pod starts this program so.
func Main(m *testing.M, run func(*testing.M) (code int, err error)) {
	if len(os.Args) > 1 && os.Args[1] == dev.PodSupervisor {
		os.Exit(pods.Supervise(os.Args[2:]))
	}
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Text is a buffer that is read while it is written.
type Text struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buffer.Write(p)
}

func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buffer.String()
}
