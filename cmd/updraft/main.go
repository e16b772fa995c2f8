// Command updraft is the command line: updraft dev runs everything on this
// machine, updraft install puts it onto a cluster, updraft logs prints what a
// Stack's run said.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/cmd/updraft/install"
	"github.com/updraft-dev/updraft/cmd/updraft/logs"
	"github.com/updraft-dev/updraft/cmd/updraft/version"
	"github.com/updraft-dev/updraft/pkg/local/pods"
)

func main() {
	// Before all else: each container of a local pod starts this program so.
	if len(os.Args) > 1 && os.Args[1] == dev.PodSupervisor {
		os.Exit(pods.Supervise(os.Args[2:]))
	}
	root := &cobra.Command{
		Use:           "updraft",
		Short:         "A serverless backend for Pulumi stacks on Kubernetes",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Text(),
	}
	root.SetVersionTemplate("{{.Version}}")
	root.AddCommand(dev.Command(), logs.Command(), version.Command())
	root.AddCommand(install.Commands()...)
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "updraft:", err)
		os.Exit(1)
	}
}
