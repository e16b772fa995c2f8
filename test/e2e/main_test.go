//go:build e2e

// Package e2e tests Updraft on a real cluster, installed as its users install it:
// real Knative, real pods, every function scaled to zero before it is needed. It
// works on any cluster that KUBECONFIG names, and needs nothing but the right to
// make namespaces. What it makes is in namespaces of its own, in which Pod
// Security admits only what is restricted.
//
// The tests that wait until nothing of ours runs any more come first, one after
// another; those that do not are Parallel.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/updraft-dev/updraft/pkg/record"
)

const (
	// systemNamespace is where Updraft is installed.
	systemNamespace = "updraft-system"
	// namespaces is how the names of the tests' own begin.
	namespaces = "updraft-e2e-"
)

// cluster is what all tests share.
var cluster struct {
	root    string
	config  *rest.Config
	clients *record.Clients
	dynamic dynamic.Interface
	witness *witness
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err = errors.Join(err, gone(context.Background())); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if err := connect(); err != nil {
		return 1, err
	}
	if err := startCollector(ctx); err != nil {
		return 1, err
	}
	if cluster.witness, err = newWitness(ctx); err != nil {
		return 1, err
	}
	defer cluster.witness.leave()
	defer stopCollector()
	code = m.Run()
	return code, errors.Join(cluster.witness.check(ctx), checkCollected(ctx))
}

// gone waits until the tests' namespaces are, so that what comes next finds nothing of
// ours in them.
func gone(ctx context.Context) error {
	if cluster.clients == nil {
		return nil
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(tick) {
		all, err := cluster.clients.Core.Namespaces().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(all.Items, func(n corev1.Namespace) bool { return !strings.HasPrefix(n.Name, namespaces) })
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("namespace %s is left after %s: %v", left[0].Name, patience, left[0].Status.Conditions)
		}
	}
}

func connect() (err error) {
	if cluster.root, err = filepath.Abs(filepath.Join("..", "..")); err != nil {
		return err
	}
	if os.Getenv("KUBECONFIG") == "" {
		return fmt.Errorf("KUBECONFIG is not set: run make e2e, or name a cluster on which Updraft is installed")
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if cluster.config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig(); err != nil {
		return fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	cluster.config.QPS, cluster.config.Burst = 50, 100
	cluster.config.WarningHandler = rest.NoWarnings{}
	if cluster.clients, err = record.NewClients(cluster.config); err != nil {
		return err
	}
	cluster.dynamic, err = dynamic.NewForConfig(cluster.config)
	return err
}
