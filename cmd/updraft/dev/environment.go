package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/client-go/rest"

	"github.com/updraft-dev/updraft/config"
	"github.com/updraft-dev/updraft/pkg/local/broker"
	"github.com/updraft-dev/updraft/pkg/local/controlplane"
	"github.com/updraft-dev/updraft/pkg/local/pods"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/sources/apiserver"
	"github.com/updraft-dev/updraft/sources/timer"
)

// SystemNamespace is where Updraft's own objects are.
const SystemNamespace = "updraft-system"

// PodSupervisor is the argument that makes a program the supervisor of a pod's
// processes, if its main calls pods.Supervise for it.
const PodSupervisor = "pod-supervisor"

// agentImage stands for our image, which nobody pulls here.
const agentImage = "updraft.dev/agent"

// drain is how long Stop waits for events in flight.
const drain = 5 * time.Second

// Options of an Environment.
type Options struct {
	// Bin is the folder of the programs: etcd, kube-apiserver,
	// kube-controller-manager, pulumi and pulumi-language-yaml.
	Bin string
	// Agent is the agent's program. Default: agent in Bin.
	Agent string
	// Dir keeps all state. It is made if it is missing.
	Dir string
	// Progress hears each step of the start, in words for a person.
	Progress func(string)
	// Notice hears what a person should know while it runs.
	Notice func(string)
	// Log takes the logs of the functions and of what stands around them. The
	// default discards.
	Log *slog.Logger
	// Observe says where spans of the Broker, the functions and runs go.
	Observe observe.Config
	// Now is the functions' clock. Default: time.Now.
	Now func() time.Time
	// SweepSchedule replaces the sweep's schedule, as a cron line with seconds.
	SweepSchedule string
	// Tamper says, in tests, how many copies of an event reach a Trigger.
	Tamper func(trigger string, e cloudevents.Event) int
	// Wrap replaces the handler of a function, or of the Broker under the name
	// broker, in tests.
	Wrap func(name string, h http.Handler) http.Handler
}

// Environment is a running embedded mode.
type Environment struct {
	// Config is that of a cluster admin.
	Config *rest.Config
	// Kubeconfig is a file that kubectl can use.
	Kubeconfig string
	// BrokerURL is where events are sent.
	BrokerURL string
	// Functions are where each function is served, by name.
	Functions map[string]string

	options Options
	plane   *controlplane.Plane
	broker  *broker.Broker
	// observers of the Broker and the functions, where there are any.
	observers []interface{ Stop() }
	servers   servers
	cancel    context.CancelFunc
	running   sync.WaitGroup
	stop      func() error
}

// Start brings everything up and returns once a change that is made is seen: all
// watches are open and one sweep has run.
func Start(ctx context.Context, options Options) (*Environment, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Environment{options: options, Functions: map[string]string{}}
	e.stop = sync.OnceValue(e.end)
	for _, step := range []func(context.Context) error{
		e.startPlane, e.install, e.startFunctions, e.startPods, e.startSources, e.sweepOnce,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, e.Stop())
		}
	}
	return e, nil
}

// Stop ends everything that Start started and waits until it is gone.
func (e *Environment) Stop() error { return e.stop() }

func (o Options) withDefaults() (Options, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Agent == "" {
		o.Agent = filepath.Join(o.Bin, "agent")
	}
	if o.Wrap == nil {
		o.Wrap = func(_ string, h http.Handler) http.Handler { return h }
	}
	var err error
	for _, path := range []*string{&o.Bin, &o.Agent, &o.Dir} {
		if *path, err = filepath.Abs(*path); err != nil {
			return o, fmt.Errorf("cannot find %s: %w", *path, err)
		}
	}
	if _, err := os.Stat(o.Agent); err != nil {
		return o, fmt.Errorf("the agent's program is missing; run make build: %w", err)
	}
	return o, nil
}

func (e *Environment) folder(name string) string { return filepath.Join(e.options.Dir, name) }

// startPlane writes the manifests out and starts the API server with the CRDs.
func (e *Environment) startPlane(ctx context.Context) error {
	if err := os.RemoveAll(e.folder("config")); err != nil {
		return fmt.Errorf("cannot clear the old manifests: %w", err)
	}
	if err := writeOut(config.Files, e.folder("config")); err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Bin: e.options.Bin, Dir: e.folder("cluster"), CRDs: []string{e.folder("config/100-crds")},
		Log: e.options.Log, Progress: e.options.Progress,
	})
	if err != nil {
		return err
	}
	e.plane, e.Config, e.Kubeconfig = plane, plane.Config, e.folder("kubeconfig")
	if err := os.WriteFile(e.Kubeconfig, plane.Kubeconfig(), 0o600); err != nil {
		return fmt.Errorf("cannot write the kubeconfig: %w", err)
	}
	return nil
}

func writeOut(files fs.FS, dir string) error {
	if err := os.CopyFS(dir, files); err != nil {
		return fmt.Errorf("cannot write the manifests out: %w", err)
	}
	return nil
}

// install applies namespace, ServiceAccounts, rights, what admission refuses the
// functions, and the sweep's PingSource. Broker, source and Triggers have no
// controller here: they are read.
func (e *Environment) install(ctx context.Context) error {
	e.options.Progress("Installing Updraft's ServiceAccounts, rights and sweep")
	sweep := e.folder("config/710-sweep.yaml")
	if s := e.options.SweepSchedule; s != "" {
		if err := replaceSchedule(sweep, s); err != nil {
			return err
		}
	}
	return e.plane.Apply(ctx, e.folder("config/100-namespace.yaml"), e.folder("config/200-accounts.yaml"),
		e.folder("config/200-rights.yaml"), e.folder("config/210-admission.yaml"), e.folder("config/220-aggregated-roles.yaml"), sweep)
}

func (e *Environment) startPods(context.Context) error {
	runner, err := pods.New(pods.Options{
		Config: e.Config, Root: e.options.Dir, Bin: e.options.Bin,
		Commands:   map[string]string{run.AgentCommand: e.options.Agent},
		Supervisor: []string{"/proc/self/exe", PodSupervisor},
		Log:        e.options.Log, Notice: e.options.Notice,
	})
	if err != nil {
		return err
	}
	e.goRun("pods", runner.Run)
	return nil
}

// startSources starts what turns the cluster and time into events, and waits
// until it sees every change.
func (e *Environment) startSources(ctx context.Context) error {
	e.options.Progress("Opening the watches")
	sink, err := parseURL(e.BrokerURL)
	if err != nil {
		return err
	}
	source, err := apiserver.LoadSource(e.folder("config/700-source.yaml"))
	if err != nil {
		return err
	}
	watching, scheduled := make(chan struct{}), make(chan struct{})
	e.goRun("source", func(ctx context.Context) error {
		return apiserver.Run(ctx, apiserver.Options{
			Source: source, Config: e.as(source.Spec.ServiceAccountName), Sink: sink, Log: e.options.Log,
			Ready: func() { close(watching) },
		})
	})
	e.goRun("timer", func(ctx context.Context) error {
		return timer.Run(ctx, timer.Options{Config: e.Config, Sink: sink, Log: e.options.Log, Ready: func() { close(scheduled) }})
	})
	for _, ready := range []chan struct{}{watching, scheduled} {
		select {
		case <-ready:
		case <-ctx.Done():
			return fmt.Errorf("cannot open the watches: %w", context.Cause(ctx))
		}
	}
	return nil
}

// goRun runs a part until Stop. One that fails before is logged: the rest goes
// on, so that what happened can be looked at.
func (e *Environment) goRun(name string, part func(context.Context) error) {
	if e.cancel == nil {
		e.servers.ctx, e.cancel = context.WithCancel(context.Background())
	}
	ctx := e.servers.ctx
	e.running.Go(func() {
		if err := part(ctx); err != nil && ctx.Err() == nil {
			e.options.Log.Error("A part of the embedded mode ended", "part", name, "error", err.Error())
			e.options.Notice(fmt.Sprintf("%s ended: %v", name, err))
		}
	})
}

// end stops in the order in which nothing is waited for in vain: sources, then
// events in flight, functions and pods, and the API server last.
func (e *Environment) end() error {
	if e.broker != nil {
		ctx, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		_ = e.broker.Drain(ctx) // what is cut off the next start's sweep finds
	}
	if e.cancel != nil {
		e.cancel()
	}
	e.running.Wait()
	for _, t := range e.observers {
		t.Stop()
	}
	if e.plane != nil {
		return e.plane.Stop()
	}
	return nil
}
