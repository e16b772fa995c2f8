package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type jsonValue = apiextensionsv1.JSON

func jsonOf(value any) jsonValue {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return jsonValue{Raw: text}
}

func requestOf(ctx context.Context, t *testing.T, url string, e cloudevents.Event) *http.Request {
	t.Helper()
	request, err := cehttp.NewHTTPRequestFromEvent(ctx, url, e)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// answer is the status that a request is answered with.
func answer(t *testing.T, request *http.Request) int {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// gate is a file that a program reads. Closed, it is a fifo, at which each run
// that reads it stands still until it is opened.
type gate struct {
	*testing.T
	path    string
	writers []*os.File
}

// newGate makes a gate that is closed.
func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{T: t, path: filepath.Join(t.TempDir(), "gate")}
	g.close()
	t.Cleanup(func() { g.open("the test has ended") })
	return g
}

// close makes runs that read it from now on stand still.
func (g *gate) close() {
	g.Helper()
	fifo := g.path + ".fifo"
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Rename(fifo, g.path)); err != nil {
		g.Fatal(err)
	}
}

// reached waits until a run stands at the gate.
func (g *gate) reached() {
	g.Helper()
	deadline := time.Now().Add(patience)
	for {
		file, err := os.OpenFile(g.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		switch {
		case err == nil:
			g.writers = append(g.writers, file)
			return
		case !errors.Is(err, syscall.ENXIO):
			g.Fatal(err)
		case time.Now().After(deadline):
			g.Fatal("no run has reached the gate")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// open lets all runs pass that stand at it or will come. They read the text.
func (g *gate) open(text string) {
	g.Helper()
	if info, err := os.Stat(g.path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		// Also a writer for who stands there and was not waited for.
		writer, err := os.OpenFile(g.path, os.O_RDWR|syscall.O_NONBLOCK, 0)
		if err != nil {
			g.Fatal(err)
		}
		_, _ = writer.WriteString(text)
		g.writers = append(g.writers, writer)
	}
	g.openNext(text)
	for _, writer := range g.writers {
		_ = writer.Close()
	}
	g.writers = nil
}

// openNext lets runs pass that will come, and not those that stand at it.
func (g *gate) openNext(text string) {
	g.Helper()
	file := g.path + ".file"
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Rename(file, g.path)); err != nil {
		g.Error(err)
	}
}

// remove takes the file away, so that reading it fails.
func (g *gate) remove() {
	g.Helper()
	if err := os.Remove(g.path); err != nil {
		g.Fatal(err)
	}
}

// process of this machine.
type process struct {
	pid     int
	command string
	program string
}

func processes() []process {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	var found []process
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		command, readErr := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || readErr != nil || len(command) == 0 {
			continue
		}
		program, _ := os.Readlink(filepath.Join(folder, "exe"))
		found = append(found, process{pid: pid, command: string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})), program: program})
	}
	return found
}
