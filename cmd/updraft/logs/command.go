package logs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/updraft-dev/updraft/cmd/internal/kubeconfig"
	"github.com/updraft-dev/updraft/pkg/record"
)

type flags struct {
	cluster kubeconfig.Flags
	update  string
	follow  bool
}

// Command is updraft logs.
func Command() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   "logs STACK",
		Short: "Print the log of a Stack's run",
		Long: `Prints what the Pulumi CLI said in the run of a Stack: the one that goes on, or
else the last. While the pod is there the log comes from it. Afterwards it is the
tail that was kept, for as long as its Update is. A run that has just begun and has
said nothing yet is waited for, and followed.`,
		Example: `  updraft logs hello                          # the run that goes on, or else the last
  updraft logs hello --follow                 # wait for it to begin, and follow it to its end
  updraft logs hello --update hello-19a7c3f   # an earlier one: kubectl get updates lists them
  updraft logs --update by-hand               # of an Update that was made by hand`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && f.update == "" {
				return fmt.Errorf("name a Stack, or an Update with --update")
			}
			r, err := f.reader(c)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				r.stack = args[0]
			}
			ctx := c.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			return f.cluster.Explain(r.print(ctx))
		},
	}
	f.cluster.AddTo(command.Flags())
	command.Flags().StringVarP(&f.cluster.Namespace, "namespace", "n", "", "namespace of the Stack (default: that of the kubeconfig's context)")
	command.Flags().StringVar(&f.update, "update", "", "Update whose log to print (default: the Stack's current, or else its last)")
	command.Flags().BoolVarP(&f.follow, "follow", "f", false, "wait for the run to begin, and print what it says until it has ended")
	return command
}

// reader of the cluster that kubectl would use with the same flags.
func (f *flags) reader(c *cobra.Command) (*reader, error) {
	config, namespace, err := f.cluster.Load()
	if err != nil {
		return nil, err
	}
	clients, err := record.NewClients(config)
	if err != nil {
		return nil, err
	}
	return &reader{
		clients: clients, namespace: namespace, update: f.update, follow: f.follow,
		out: c.OutOrStdout(), notes: c.ErrOrStderr(),
	}, nil
}
