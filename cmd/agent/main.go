// Command agent is what runs in the pod of a run: "init" in the container
// bootstrap, "run" in the container pulumi.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/kelseyhightower/envconfig"
	"github.com/spf13/cobra"

	"github.com/updraft-dev/updraft/pkg/agent"
	"github.com/updraft-dev/updraft/pkg/gitremote"
	"github.com/updraft-dev/updraft/pkg/observe"
)

// environment is what the agent reads from its environment.
type environment struct {
	Root           string `envconfig:"UPDRAFT_ROOT" default:"/share"`
	ReportURL      string `envconfig:"UPDRAFT_REPORT_URL"`
	TerminationLog string `envconfig:"UPDRAFT_TERMINATION_LOG" default:"/dev/termination-log"`
	EnvFile        string `envconfig:"PULUMI_ENV"`
	GitToken       string `envconfig:"UPDRAFT_GIT_TOKEN"`
	GitUsername    string `envconfig:"UPDRAFT_GIT_USERNAME"`
	GitPassword    string `envconfig:"UPDRAFT_GIT_PASSWORD"`
	Traceparent    string `envconfig:"TRACEPARENT"`
	TracesEndpoint string `envconfig:"UPDRAFT_TRACES_ENDPOINT"`
	TracesProtocol string `envconfig:"UPDRAFT_TRACES_PROTOCOL" default:"http/protobuf"`
}

func main() {
	os.Exit(execute(os.Args[1:]))
}

// execute runs a command. The answer is the exit code.
func execute(args []string) int {
	code := 0
	root := &cobra.Command{
		Use:           "agent",
		Short:         "Runs one Update in its pod",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		command("init", "Put the agent and the source into the share", agent.Init, &code),
		command("run", "Take the run, do the operation and report", runOrSupervise, &code),
	)
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return code
}

// command makes a command of a function that gives an exit code.
func command(name, short string, do func(context.Context, agent.Config) int, code *int) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			config, err := configure()
			if err != nil {
				return err
			}
			stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer cancel()
			*code = do(stop, config)
			return nil
		},
	}
}

// runOrSupervise runs, and as PID 1 has a child run.
func runOrSupervise(stop context.Context, c agent.Config) int {
	if os.Getpid() != 1 {
		return agent.Run(stop, c)
	}
	code, err := agent.Supervise(stop, c.Executable, os.Args)
	if err != nil {
		c.Log.Error("cannot run", "error", err)
		return 1
	}
	return code
}

// configure reads the environment.
func configure() (agent.Config, error) {
	var env environment
	if err := envconfig.Process("", &env); err != nil {
		return agent.Config{}, fmt.Errorf("cannot read the environment: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return agent.Config{}, fmt.Errorf("cannot find the host's name: %w", err)
	}
	executable, err := os.Executable()
	if err != nil {
		return agent.Config{}, fmt.Errorf("cannot find the agent's own file: %w", err)
	}
	return agent.Config{
		Traces:         observe.OfRun(os.Getenv, env.Traceparent, env.TracesEndpoint, env.TracesProtocol),
		Traceparent:    env.Traceparent,
		Root:           env.Root,
		ReportURL:      env.ReportURL,
		TerminationLog: env.TerminationLog,
		EnvFile:        env.EnvFile,
		Git:            gitremote.Credentials{Token: env.GitToken, Username: env.GitUsername, Password: env.GitPassword},
		Environ:        os.Environ(),
		Host:           host,
		Executable:     executable,
		Cgroup:         "/sys/fs/cgroup",
		Stdout:         os.Stdout,
		Stderr:         os.Stderr,
		Log:            slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}, nil
}
