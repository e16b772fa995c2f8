package pods

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// processSpec is what a supervisor runs. It is told over a pipe, since there are
// secret values in it, and arguments can be read by everyone on the machine.
type processSpec struct {
	Name string
	Argv []string
	Env  []string
	Dir  string
	Log  string
}

// order is a signal for the container's main process. The end of the orders is
// the order to kill everything, so that it is also given by a Runner that dies.
type order struct{ Signal int }

// report is what a supervisor says: first Started or Error, then Exit.
type report struct {
	Started *time.Time `json:",omitempty"`
	Error   string     `json:",omitempty"`
	Exit    *exit      `json:",omitempty"`
}

// exit is how a container's main process ended: with a code, or by a signal.
type exit struct {
	Code   int
	Signal int
	At     time.Time
}

// sandboxMark is in the environment of every process of a pod, to find those
// whose supervisor was killed.
const sandboxMark = "UPDRAFT_SANDBOX"

// mark is the value of sandboxMark. With no container it begins the mark of
// every container of the pod.
func mark(uid types.UID, container string) string { return string(uid) + "/" + container }

// process is a container that runs, seen from outside its supervisor.
type process struct {
	at     time.Time
	orders *os.File
	// done is closed when no process of the container is left; then exit is set.
	done chan struct{}
	exit exit
}

// startProcess starts a container under a supervisor of its own.
func startProcess(supervisor []string, at folder, spec processSpec) (*process, error) {
	command, err := supervisorCommand(supervisor, at, spec)
	if err != nil {
		return nil, fmt.Errorf("cannot start a supervisor: %w", err)
	}
	orders, reports, err := startWithPipes(command)
	if err != nil {
		return nil, fmt.Errorf("cannot start a supervisor: %w", err)
	}
	p := &process{orders: orders, done: make(chan struct{})}
	decoder := json.NewDecoder(reports)
	var first report
	err = errors.Join(json.NewEncoder(orders).Encode(spec), decoder.Decode(&first))
	if err == nil && first.Started == nil {
		err = errors.New(first.Error)
	}
	go func() {
		defer close(p.done)
		defer reports.Close()
		p.exit = lastWord(decoder, spec.Name)
		_ = command.Wait()
		orders.Close()
	}()
	if err != nil {
		p.kill()
		<-p.done
		return nil, err
	}
	p.at = *first.Started
	return p, nil
}

// lastWord is the supervisor's report of the end. It comes when all processes
// are dead. If it does not come, the supervisor has been killed, and what it
// watched over has to be found without it.
func lastWord(reports *json.Decoder, name string) exit {
	var last report
	for last.Exit == nil && last.Error == "" {
		if err := reports.Decode(&last); err != nil {
			killMarked(name + "\x00")
			return exit{Signal: int(syscall.SIGKILL), At: time.Now()}
		}
	}
	if last.Exit == nil {
		return exit{Code: 1}
	}
	return *last.Exit
}

func supervisorCommand(supervisor []string, at folder, spec processSpec) (*exec.Cmd, error) {
	log, err := os.OpenFile(at.in("supervisor.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	title := filepath.Base(string(at)) + "/" + filepath.Base(spec.Name)
	command := exec.Command(supervisor[0], append(supervisor[1:len(supervisor):len(supervisor)], title)...)
	command.Env = []string{}
	command.Dir = string(at)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = detached()
	return command, nil
}

// startWithPipes starts a supervisor with orders as its standard input and
// reports as descriptor 3. Standard output would not do: a write to it that
// nobody reads kills a Go program, and this one still has work to do then.
func startWithPipes(command *exec.Cmd) (orders, reports *os.File, err error) {
	defer command.Stdout.(io.Closer).Close()
	hear, orders, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer hear.Close()
	reports, say, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, nil, err
	}
	defer say.Close()
	command.Stdin = hear
	command.ExtraFiles = []*os.File{say}
	if err := command.Start(); err != nil {
		orders.Close()
		reports.Close()
		return nil, nil, err
	}
	return orders, reports, nil
}

// terminate asks the main process to end, and it alone, as a kubelet does. That
// it may have ended already is no error.
func (p *process) terminate() {
	_ = json.NewEncoder(p.orders).Encode(order{Signal: int(syscall.SIGTERM)})
}

// kill ends all processes of the container.
func (p *process) kill() { p.orders.Close() }
