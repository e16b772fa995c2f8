package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	functions "github.com/updraft-dev/updraft/functions/stack"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/client/clientset/versioned"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/record"
)

const (
	namespace = "default"
	// tries of each figure, of which the median counts.
	tries = 5
	// looks at an idle Stack, of which the mean counts.
	looks = 300
	// patience with one Stack.
	patience = time.Minute
)

// applyToReady measures a Stack's way from its creation to Ready, beside the
// bare CLI on the same program.
func applyToReady(ctx context.Context, e *dev.Environment, bin string) ([]row, error) {
	client, err := versioned.NewForConfig(e.Config)
	if err != nil {
		return nil, err
	}
	if err := program(ctx, client); err != nil {
		return nil, err
	}
	var ready, bare []time.Duration
	for i := range tries {
		d, err := oneStack(ctx, client, fmt.Sprintf("bench-%d", i))
		if err != nil {
			return nil, err
		}
		ready = append(ready, d)
		if d, err = bareUp(ctx, bin); err != nil {
			return nil, err
		}
		bare = append(bare, d)
	}
	how := fmt.Sprintf("median of %d, a YAML program with one output, file backend, warm", tries)
	return []row{
		{"a Stack created to Ready", seconds(median(ready)), how},
		{"bare pulumi up of the same", seconds(median(bare)), how + ", stack exists"},
		{"the difference", seconds(median(ready) - median(bare)), ""},
	}, nil
}

// program makes the Program of all Stacks here.
func program(ctx context.Context, client versioned.Interface) error {
	_, err := client.PulumiV1().Programs(namespace).Create(ctx, &pulumiv1.Program{
		ObjectMeta: metav1.ObjectMeta{Name: "bench", Namespace: namespace},
		Program:    pulumiv1.ProgramSpec{Outputs: map[string]apiextensionsv1.JSON{"message": {Raw: []byte(`"hello"`)}}},
	}, metav1.CreateOptions{})
	return err
}

func oneStack(ctx context.Context, client versioned.Interface, name string) (time.Duration, error) {
	state, err := os.MkdirTemp("", "updraft-bench-state-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(state) }() // a temporary folder
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	_, err = client.PulumiV1().Stacks(namespace).Create(ctx, &pulumiv1.Stack{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: pulumiv1.StackSpec{
			Stack: "dev", ProgramRef: &pulumiv1.ProgramReference{Name: "bench"}, Backend: "file://" + state,
			EnvRefs: map[string]pulumiv1.ResourceRef{"PULUMI_CONFIG_PASSPHRASE": {
				SelectorType: pulumiv1.ResourceSelectorLiteral, LiteralRef: &pulumiv1.LiteralRef{Value: "bench"},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	w, err := client.PulumiV1().Stacks(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	for change := range w.ResultChan() {
		s, ok := change.Object.(*pulumiv1.Stack)
		if ok && meta.IsStatusConditionTrue(s.Status.Conditions, pulumiv1.ReadyCondition) {
			return time.Since(began), nil
		}
	}
	return 0, fmt.Errorf("stack %s was not ready within %s", name, patience)
}

func bareUp(ctx context.Context, bin string) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "updraft-bench-bare-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	text := "name: bench\nruntime: yaml\noutputs:\n  message: hello\n"
	if err := os.WriteFile(filepath.Join(dir, "Pulumi.yaml"), []byte(text), 0o600); err != nil {
		return 0, err
	}
	pulumi := func(arguments ...string) error {
		c := exec.CommandContext(ctx, filepath.Join(bin, "pulumi"), append(arguments, "--non-interactive")...)
		c.Dir = dir
		c.Env = []string{
			"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + dir, "USER=bench", "PULUMI_HOME=" + dir + "/home",
			"PULUMI_BACKEND_URL=file://" + dir, "PULUMI_CONFIG_PASSPHRASE=bench", "PULUMI_SKIP_UPDATE_CHECK=true",
		}
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("pulumi %s: %w: %s", arguments[0], err, out)
		}
		return nil
	}
	if err := pulumi("stack", "init", "dev"); err != nil {
		return 0, err
	}
	began := time.Now()
	err = pulumi("up", "--yes", "--skip-preview", "--stack", "dev")
	return time.Since(began), err
}

// idleLook measures a look at a Stack that needs nothing.
func idleLook(ctx context.Context, e *dev.Environment, _ string) ([]row, error) {
	var requests atomic.Int64
	config := rest.CopyConfig(e.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			requests.Add(1)
			return next.RoundTrip(r)
		})
	})
	clients, err := record.NewClients(config)
	if err != nil {
		return nil, err
	}
	f := &functions.Function{Clients: clients, Alarms: &record.Alarms{Client: clients.Dynamic}, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	due := event.NewDue("bench", "1", event.Ref{Kind: event.KindStack, Namespace: namespace, Name: "bench-0"})
	if err := f.Handle(ctx, due); err != nil { // the first opens the connection
		return nil, err
	}
	requests.Store(0)
	before, began := cpu(), time.Now()
	for range looks {
		if err := f.Handle(ctx, due); err != nil {
			return nil, err
		}
	}
	used, took := cpu()-before, time.Since(began)
	return []row{{
		"a look at a Stack that needs nothing",
		fmt.Sprintf("%.1f requests, %s CPU, %s", float64(requests.Load())/looks, millis(used/looks), millis(took/looks)),
		fmt.Sprintf("mean of %d; the CPU is of this process, which serves the rest of dev mode too", looks),
	}}, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
