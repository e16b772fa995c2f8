package install

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/updraft-dev/updraft/cmd/internal/kubeconfig"
)

type flags struct {
	cluster kubeconfig.Flags
	file    string
	timeout time.Duration
	keep    bool
	despite bool
}

// Commands are updraft preflight, install and uninstall.
func Commands() []*cobra.Command { return []*cobra.Command{preflight(), install(), uninstall()} }

func preflight() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   "preflight",
		Short: "Say what a cluster lacks for Updraft",
		Long: `Names everything that a cluster lacks for Updraft, a line for each problem with
what to do about it, and changes nothing. It ends with code 1 if there is one.

It looks at the version of the API server, at Knative Serving and Eventing and
whether they are up, at the networking layer, at the rights of whoever calls it,
and whether the Pulumi Kubernetes Operator runs: both would act on the same
objects.`,
		Example: `  updraft preflight
  updraft preflight -f release/updraft.yaml   # what this file takes: its Broker's class, the rights to apply it
  kubectl kustomize config | updraft preflight -f -`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.with(c, f.file != "", func(ctx context.Context, cl *cluster, objects []*unstructured.Unstructured) error {
				return cl.preflight(ctx, objects).report(cl.screen)
			})
		},
	}
	f.cluster.AddTo(command.Flags())
	command.Flags().StringVarP(&f.file, "filename", "f", "", "file with the manifests, - for the standard input (default: none)")
	return command
}

func install() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   "install -f FILE",
		Short: "Install Updraft on a cluster, or renew it there",
		Long: `Does what preflight does, and stops if there is a problem. Then it applies the
manifests in their order, waits until each part is ready, and deletes what an
older version of Updraft had and this one has not, but no CRD and no custom
resource. It can be repeated: it then renews what is there. Settings in the
ConfigMaps config-updraft, config-observability and config-logging stay.

The file is one whose images are resolved: release/updraft.yaml, which make
release writes, or what make install makes of the sources.`,
		Example: `  updraft install -f release/updraft.yaml
  kubectl kustomize config | ko resolve -f - | updraft install -f -`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.with(c, true, func(ctx context.Context, cl *cluster, objects []*unstructured.Unstructured) error {
				if err := resolved(objects); err != nil {
					return err
				}
				return cl.install(ctx, objects, f.despite)
			})
		},
	}
	f.cluster.AddTo(command.Flags())
	command.Flags().StringVarP(&f.file, "filename", "f", "", "file with the manifests, - for the standard input")
	command.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "how long each part may take to become ready")
	command.Flags().BoolVar(&f.despite, "despite-problems", false, "go on although preflight sees a problem (but not beside the Pulumi Kubernetes Operator)")
	return command
}

func uninstall() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   "uninstall",
		Short: "Take Updraft away from a cluster",
		Long: `Deletes what updraft install applied: sources and Triggers first, then the
functions, the Broker, rights and settings, then the CRDs, the namespace
updraft-system last, and waits until all of it is gone.

It refuses while there is a Stack, Program, Workspace or Update in any namespace,
and lists them: with their CRD they would go too, and what a Stack stands for
would be left behind. Delete them first, or keep them with --keep: then the CRDs
and all custom resources stay, and wait for an installation to come.`,
		Example: `  updraft uninstall
  updraft uninstall --keep   # all but the CRDs and what users applied`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.with(c, false, func(ctx context.Context, cl *cluster, _ []*unstructured.Unstructured) error {
				return cl.uninstall(ctx, f.keep)
			})
		},
	}
	f.cluster.AddTo(command.Flags())
	command.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "how long each part may take to go")
	command.Flags().BoolVar(&f.keep, "keep", false, "keep the CRDs, and with them all Stacks, Programs, Workspaces and Updates")
	return command
}

// with calls do with the cluster that the flags name, and with the manifests if
// they are needed, until a person interrupts.
func (f *flags) with(c *cobra.Command, manifests bool, do func(context.Context, *cluster, []*unstructured.Unstructured) error) error {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var objects []*unstructured.Unstructured
	if manifests {
		var err error
		if objects, err = f.read(c.InOrStdin()); err != nil {
			return err
		}
	}
	config, _, err := f.cluster.Load()
	if err != nil {
		return err
	}
	cl, err := newCluster(config, newScreen(c.OutOrStdout()), f.timeout)
	if err != nil {
		return err
	}
	if _, err := cl.client.Discovery().ServerVersion(); kubeconfig.Unreachable(err) {
		return f.cluster.Explain(err)
	}
	return f.cluster.Explain(do(ctx, cl, objects))
}

func (f *flags) read(in io.Reader) ([]*unstructured.Unstructured, error) {
	if f.file == "" {
		return nil, fmt.Errorf("name the file with the manifests by -f: release/updraft.yaml, or - for the standard input")
	}
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return nil, fmt.Errorf("cannot read the manifests: %w", err)
		}
		defer file.Close()
		in = file
	}
	return readManifests(in)
}
