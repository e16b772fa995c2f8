package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// patience is how long each program may take to come up. It is much longer than any needs, since the machine may be busy.
const patience = 2 * time.Minute

// Options say where the programs are and what the API serves.
type Options struct {
	// Bin is the folder of etcd, kube-apiserver and kube-controller-manager.
	Bin string
	// Dir keeps the objects (etcd), the logs (logs) and, while it runs, the keys. One plane at a time owns it.
	Dir string
	// CRDs are files or folders of CustomResourceDefinitions, served beside those of KnativeCRDs. They are given here and not to
	// Apply because the garbage collector must know every kind when it starts: it looks for new ones only twice a minute.
	CRDs []string
	// Log takes what happens meanwhile, as the end of a program that should run. The default discards.
	Log *slog.Logger
	// Progress hears each step of the start, in words for a person.
	Progress func(string)
	// Patience replaces how long each program may take to come up.
	Patience time.Duration
}

// Plane is a running control plane.
type Plane struct {
	// Config is that of a member of system:masters.
	Config *rest.Config

	options    Options
	folder     *folder
	thread     *thread
	servers    envtest.ControlPlane
	controller *controllers
	stop       func() error
}

// Start brings up the control plane and returns once it serves every CRD and its controllers act. The context bounds the start
// only: it is looked at between the steps, and the plane runs until Stop.
func Start(ctx context.Context, options Options) (*Plane, error) {
	options = options.withDefaults()
	if err := options.check(); err != nil {
		return nil, err
	}
	folder, err := openFolder(options.Dir)
	if err != nil {
		return nil, err
	}
	p := &Plane{options: options, folder: folder, thread: newThread()}
	p.stop = sync.OnceValue(p.end)
	for _, step := range []struct {
		says string
		do   func(context.Context) error
	}{
		{"Starting etcd", p.startEtcd},
		{"Starting the API server", p.startAPIServer},
		{"Installing the custom resource definitions", p.installCRDs},
		{"Starting the controllers", p.startControllers},
	} {
		options.Progress(step.says)
		if err := errors.Join(ctx.Err(), step.do(ctx)); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", step.says, err), p.Stop())
		}
	}
	return p, nil
}

// Stop ends everything that Start started and waits until it is gone. It can be called again, and then says the same.
func (p *Plane) Stop() error { return p.stop() }

func (p *Plane) end() error {
	err := errors.Join(p.controller.stop(), p.stopServers())
	p.thread.end()
	return errors.Join(err, p.folder.close())
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Patience == 0 {
		o.Patience = patience
	}
	return o
}

// check says at once what would otherwise come up as a puzzle in the middle of the start.
func (o Options) check() error {
	if o.Dir == "" {
		return errors.New("Options.Dir is empty: the control plane needs a folder of its own")
	}
	for _, name := range []string{etcdName, apiServerName, controllersName} {
		info, err := os.Stat(filepath.Join(o.Bin, name))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return fmt.Errorf("no program %s in %s: run `make tools`", name, o.Bin)
		}
	}
	return nil
}
