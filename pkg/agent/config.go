package agent

import (
	"io"
	"log/slog"
	"path/filepath"

	"github.com/updraft-dev/updraft/pkg/gitremote"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/run"
)

// Config is what the agent is told from outside; a main reads it from the
// environment.
type Config struct {
	// Root is the share.
	Root string
	// ReportURL is where reports go.
	ReportURL string
	// TerminationLog is the file of the termination message.
	TerminationLog string
	// EnvFile holds variables that init containers left for the CLI; "" is none.
	EnvFile string
	// Git are the credentials of a git source, which only init is given.
	Git gitremote.Credentials
	// Environ is the process's environment, which the CLI inherits.
	Environ []string
	// Host is the name that a lock of the CLI has for this host.
	Host string
	// Cgroup is where the kernel tells of this container's memory.
	Cgroup string
	// Executable is the agent's own file.
	Executable string
	// Traces says where spans go, and Traceparent which they are below.
	Traces      observe.Tracing
	Traceparent string
	// Stdout and Stderr get what the CLI prints.
	Stdout, Stderr io.Writer
	// Log gets what the agent has to say.
	Log *slog.Logger
}

// path of a place in the share.
func (c Config) path(parts ...string) string {
	return filepath.Join(append([]string{c.Root}, parts...)...)
}

// workspace is the folder that holds Pulumi.yaml.
func (c Config) workspace() string { return c.path(run.WorkspaceLink) }
