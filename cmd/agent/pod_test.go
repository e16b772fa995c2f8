package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

// asAgent makes the test binary the agent.
const asAgent = "UPDRAFT_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		os.Exit(execute(os.Args[1:]))
	}
	os.Exit(m.Run())
}

const (
	token      = "token-of-the-pod"
	passphrase = "correct horse battery staple"
)

// pod stands in for a run's pod: a share, an environment, and a receiver of
// reports.
type pod struct {
	t     *testing.T
	root  string
	state string
	path  string
	// unset is a variable that the environment is to lack.
	unset string
	// more are variables that the environment has beside.
	more     []string
	spec     run.Spec
	program  string
	receiver *receiver
}

// newPod makes a pod that is to do an operation with a Program. The state
// backend is a folder of the test, so that pods of one test share it.
func newPod(t *testing.T, state string, operation autov1alpha1.UpdateType, program string) *pod {
	t.Helper()
	root := t.TempDir()
	p := &pod{
		t: t, root: root, state: state, path: tools(t) + ":/usr/bin:/bin", program: program, receiver: newReceiver(t),
		spec: run.Spec{
			Namespace: "team", Name: "app-17c", UID: "uid-17c",
			Source:    run.Source{Program: &autov1alpha1.ProgramSource{Name: "app", Generation: 4}},
			Operation: run.Operation{Type: operation},
			Stack:     autov1alpha1.WorkspaceStack{Name: "dev"},
		},
	}
	return p
}

// tools is the folder of the real CLI.
func tools(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("UPDRAFT_BIN")
	if dir == "" {
		dir = filepath.Join(repository(t), ".bin")
	}
	for _, name := range []string{"pulumi", "pulumi-language-yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Fatalf("%s is needed: run make tools (%v)", name, err)
		}
	}
	return dir
}

// repository is the folder that holds go.mod.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// noAcquisition has the CLI's operations install no plugin.
const noAcquisition = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"

// environment of a container: nothing of the developer's own.
func (p *pod) environment(container string) []string {
	env := []string{
		asAgent + "=1",
		"PATH=" + p.path,
		"HOME=" + p.root,
		"UPDRAFT_ROOT=" + p.root,
		"UPDRAFT_REPORT_URL=" + p.receiver.server.URL,
		"UPDRAFT_TERMINATION_LOG=" + p.termination(container),
		"PULUMI_ENV=" + filepath.Join(p.root, run.EnvFile),
		"PULUMI_BACKEND_URL=file://" + p.state,
		"PULUMI_CONFIG_PASSPHRASE=" + passphrase,
		noAcquisition + "=true",
	}
	env = append(env, p.more...)
	return slices.DeleteFunc(env, func(entry string) bool { return p.unset != "" && strings.HasPrefix(entry, p.unset+"=") })
}

func (p *pod) termination(container string) string {
	return filepath.Join(p.root, "termination-"+container)
}

// write writes a file of the share.
func (p *pod) write(name, content string, mode fs.FileMode) string {
	p.t.Helper()
	path := filepath.Join(p.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// init runs the container bootstrap. The answer is its exit code.
func (p *pod) init() int {
	p.t.Helper()
	spec, err := json.Marshal(p.spec)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("run/run.json", string(spec), 0o644)
	p.write("run/Pulumi.yaml", p.program, 0o644)
	p.write("identity/token", token, 0o600)
	executable, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	return p.start("init", executable, "init").wait().code
}

// run runs the whole pod to its end.
func (p *pod) run() outcome {
	p.t.Helper()
	if code := p.init(); code != 0 {
		p.t.Fatalf("init ended with exit code %d: %s", code, p.read(p.termination("init")))
	}
	return p.begin().wait()
}

// begin starts the container pulumi of a pod that was initialized.
func (p *pod) begin() *process {
	p.t.Helper()
	return p.start("run", filepath.Join(p.root, run.AgentPath), "run")
}

// process is a container's process.
type process struct {
	pod            *pod
	container      string
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

func (p *pod) start(container, executable string, args ...string) *process {
	p.t.Helper()
	c := &process{pod: p, container: container, cmd: exec.Command(executable, args...)}
	c.cmd.Env = p.environment(container)
	c.cmd.Dir = p.root
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	c.cmd.WaitDelay = 20 * time.Second
	if err := c.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { endTree(c.cmd.Process.Pid) })
	return c
}

// outcome is what a container came to.
type outcome struct {
	code        int
	log         string
	termination event.Termination
}

func (c *process) wait() outcome {
	c.pod.t.Helper()
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		c.pod.t.Fatal(err)
	}
	o := outcome{code: c.cmd.ProcessState.ExitCode(), log: c.stdout.String() + c.stderr.String()}
	if text := c.pod.read(c.pod.termination(c.container)); text != "" {
		if err := json.Unmarshal([]byte(text), &o.termination); err != nil {
			c.pod.t.Errorf("the termination message %q is not JSON: %v", text, err)
		}
	}
	for _, hidden := range []string{token, passphrase} {
		if strings.Contains(o.log, hidden) {
			c.pod.t.Errorf("the log shows %q:\n%s", hidden, o.log)
		}
	}
	if c.pod.t.Failed() {
		c.pod.t.Logf("%s said:\n%s", c.container, o.log)
	}
	return o
}

func (c *process) signal(s syscall.Signal) {
	c.pod.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.pod.t.Fatal(err)
	}
}

// read reads a file; one that is not there is empty.
func (p *pod) read(path string) string {
	p.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Fatal(err)
	}
	return string(content)
}

// locks are the files of locks in the state backend.
func (p *pod) locks() []string {
	p.t.Helper()
	var found []string
	err := filepath.WalkDir(filepath.Join(p.state, ".pulumi", "locks"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".json" {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// stackFile is the state of the stack, "" if there is none.
func (p *pod) stackFile() string {
	return p.read(filepath.Join(p.state, ".pulumi", "stacks", "app", "dev.json"))
}

// gate is a fifo in the program's folder: a program that reads it stands still.
type gate struct {
	t    *testing.T
	path string
	file *os.File
}

// hold makes the gate ./hold of an initialized pod.
func (p *pod) hold() *gate {
	p.t.Helper()
	path := filepath.Join(p.root, run.SourceFolder, "hold")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return &gate{t: p.t, path: path}
}

// reached waits until the program reads the gate. The program goes on when the
// test ends.
func (g *gate) reached() {
	g.t.Helper()
	await(g.t, "the program reads its gate", func() bool {
		file, err := os.OpenFile(g.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, syscall.ENXIO) {
			return false
		}
		if err != nil {
			g.t.Fatal(err)
		}
		g.file = file
		return true
	})
	g.t.Cleanup(func() { g.file.Close() })
}

// await waits for a condition.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(10*time.Millisecond), time.NewTimer(2*time.Minute)
	defer tick.Stop()
	defer limit.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
