// Package kubeconfig gives a command the cluster that kubectl would use with the
// same flags.
package kubeconfig

import (
	"errors"
	"fmt"
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
	return config, namespace, nil
}
