// Package kubeconfig gives a command the cluster that kubectl would use with the
// same flags.
package kubeconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Flags that name a cluster.
type Flags struct {
	// File is the kubeconfig; "" for KUBECONFIG, or ~/.kube/config.
	File string
	// Context of the file; "" for its current one.
	Context string
	// Namespace; "" for the context's.
	Namespace string

	// loaded is what Load found, for Explain.
	loaded struct{ server, context, file string }
}

// AddTo adds the flags that every command has: not the namespace.
func (f *Flags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.File, "kubeconfig", "", "file that says how to reach the cluster (default: KUBECONFIG, or ~/.kube/config)")
	flags.StringVar(&f.Context, "context", "", "context of the kubeconfig (default: its current one)")
}

// noCluster says what to do where a kubeconfig is empty or missing.
func (f *Flags) noCluster() error {
	if named := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); f.File == "" && named != "" {
		return fmt.Errorf("%s names %s, in which no cluster is: if it was of updraft dev, start that again and use what it prints", clientcmd.RecommendedConfigPathEnvVar, named)
	}
	return errors.New("no cluster is named: set KUBECONFIG, or give --kubeconfig")
}

// Load says how to reach the cluster, and which namespace is meant.
func (f *Flags) Load() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.File
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{
		CurrentContext: f.Context, Context: api.Context{Namespace: f.Namespace},
	})
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", f.noCluster()
	}
	if err != nil {
		return nil, "", fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	f.loaded.server = config.Host
	if raw, err := loader.RawConfig(); err == nil {
		f.loaded.context = cmp.Or(f.Context, raw.CurrentContext)
		if c := raw.Contexts[f.loaded.context]; c != nil {
			f.loaded.file = c.LocationOfOrigin
		}
	}
	return config, namespace, nil
}

// Explain adds to the error of a cluster that cannot be reached which one was asked,
// who named it, and what to do. Any other error is as it was.
func (f *Flags) Explain(err error) error {
	if !Unreachable(err) {
		return err
	}
	named := "" // a pod's own cluster has no file
	if f.loaded.file != "" {
		named = fmt.Sprintf(", which is context %q of %s", f.loaded.context, f.loaded.file)
	}
	return fmt.Errorf("cannot reach the cluster at %s%s: %w; start it, or name another with --kubeconfig or --context "+
		"(if it was of updraft dev, start that again and use what it prints)", f.loaded.server, named, err)
}

// Unreachable says whether an error is of the way to the API server, not of what it
// said.
func Unreachable(err error) bool {
	if _, request := errors.AsType[*url.Error](err); !request || errors.Is(err, context.Canceled) {
		return false
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout()
}
