package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/auto"
)

// errStopped says that no process was started since a stop was asked for.
var errStopped = errors.New("stopped on request")

// pipeDelay is how long what the CLI left behind may keep its output open.
const pipeDelay = 10 * time.Second

// ended is a process of the CLI that has ended.
type ended struct {
	stdout, stderr string
	code           int
	// ran says that there was such a process.
	ran bool
	// stopped says that it was told to stop before it ended.
	stopped bool
}

// command runs the CLI for the Automation API. Other than the API's own it
// never kills: the context that it is given has no say, and Stop sends one
// SIGINT, after which the CLI takes the time it needs.
type command struct {
	version semver.Version
	env     environment
	// started is told of each process that does an operation.
	started func(ctx context.Context, pid int)
	// tracing makes what is run a part of the run's trace.
	tracing tracing

	// selecting is what is added where a stack is selected.
	selecting []string
	// shown is what the CLI last printed as the stack's outputs, secrets masked.
	shown string

	mu sync.Mutex
	// stopped says that a stop was asked for: nothing more is begun.
	stopped bool
	// done says that the operation has succeeded: what is left is to read what
	// it came to, which a stop does not prevent.
	done      bool
	process   *os.Process
	last      ended
	operation ended
}

var _ auto.PulumiCommand = (*command)(nil)

// Version of the CLI.
func (c *command) Version() semver.Version { return c.version }

// Run runs the CLI to its end.
func (c *command) Run(ctx context.Context, dir string, stdin io.Reader, out, errOut []io.Writer, env []string, args ...string,
) (string, string, int, error) {
	if answer, known := c.answer(args); known {
		return answer, "", 0, nil
	}
	var stdout, stderr bytes.Buffer
	// The search goes by the agent's own PATH, where its version was asked for.
	if begins(args, selectStack) {
		args = slices.Concat(args, c.selecting)
	}
	cmd := exec.Command("pulumi", cliArguments(args)...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(c.env, env, []string{"PULUMI_AUTOMATION_API=true"})
	if isTraced(args) {
		cmd.Env = append(cmd.Env, c.tracing.environment(ctx, c.env)...)
	}
	cmd.Stdin = stdin
	cmd.Stdout = io.MultiWriter(append(out, &stdout)...)
	cmd.Stderr = io.MultiWriter(append(errOut, &stderr)...)
	// A group of its own: a signal to the agent's group is not for the CLI,
	// since a second one makes it terminate at once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = pipeDelay

	operates := isOperation(args)
	if err := c.begin(ctx, cmd, operates); err != nil {
		return "", "", -1, err
	}
	err := cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	if code == 0 {
		// All it had to say may not have been read; it succeeded all the same.
		err = nil
	}
	c.end(ended{stdout: stdout.String(), stderr: stderr.String(), code: code, ran: true}, operates)
	if begins(args, showOutputs) && err == nil {
		c.shown = stdout.String()
	}
	return stdout.String(), stderr.String(), code, err
}

// selectStack is what the Automation API runs to select a stack.
var selectStack = []string{"stack", "select"}

// What the Automation API runs after an operation: for the history's last entry,
// which no run reads; for the outputs, secrets masked; and for them in clear.
var (
	readHistory   = []string{"stack", "history"}
	showOutputs   = []string{"stack", "output", "--json", "--stack"}
	revealOutputs = []string{"stack", "output", "--json", "--show-secrets"}
)

// masked is what the CLI prints in a secret's place.
const masked = "[secret]"

// answer is what the CLI need not be started for, since it takes about 0.2 s
// each time: the history, and the outputs in clear where none is masked.
func (c *command) answer(args []string) (stdout string, known bool) {
	switch {
	case begins(args, readHistory):
		return "[]", true
	case begins(args, revealOutputs):
		return c.shown, c.shown != "" && !strings.Contains(c.shown, masked)
	default:
		return "", false
	}
}

func begins(args, with []string) bool {
	return len(args) >= len(with) && slices.Equal(args[:len(with)], with)
}

// begin starts a process, unless a stop was asked for.
func (c *command) begin(ctx context.Context, cmd *exec.Cmd, operates bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped && !c.done {
		return errStopped
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.process = cmd.Process
	if operates && c.started != nil {
		c.started(ctx, cmd.Process.Pid)
	}
	return nil
}

// end keeps how a process ended.
func (c *command) end(e ended, operates bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.stopped = c.stopped && !c.done
	c.process, c.last = nil, e
	if operates {
		c.operation = e
		c.done = e.code == 0
	}
}

// Stop asks for a graceful end: the process that runs, if any, gets its one
// SIGINT, and no other is begun before an operation has succeeded.
func (c *command) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	c.stopped = true
	if c.process != nil && !c.done {
		// It may have ended already, which is as good.
		_ = c.process.Signal(os.Interrupt)
	}
}

// try takes a step that may run the CLI. The answer is the last process that it
// ran.
func (c *command) try(step func() error) (ended, error) {
	c.mu.Lock()
	c.last = ended{}
	c.mu.Unlock()
	err := step()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, err
}

// operate is try for an operation. The answer is the process that did it, also
// if others were run after it.
func (c *command) operate(step func() error) (ended, error) {
	c.mu.Lock()
	c.operation = ended{}
	c.mu.Unlock()
	err := step()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.operation, err
}

// isOperation says whether arguments are those of an operation.
func isOperation(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"up", "preview", "refresh", "destroy"}, args[0])
}

// isTraced says whether the spans of the CLI are wanted for arguments: of what may
// take long. The others cost more than they tell.
func isTraced(args []string) bool {
	return isOperation(args) || len(args) > 0 && args[0] == "install"
}

// cliArguments makes the CLI ask nothing, and undoes the quotes that the
// Automation API puts around a message as if a shell would take them off.
func cliArguments(args []string) []string {
	const message = "--message="
	cli := []string{"--non-interactive"}
	for _, arg := range args {
		if quoted, found := strings.CutPrefix(arg, message); found {
			if unquoted, err := strconv.Unquote(quoted); err == nil {
				arg = message + unquoted
			}
		}
		cli = append(cli, arg)
	}
	return cli
}
