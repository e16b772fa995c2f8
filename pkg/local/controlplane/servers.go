package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	etcdName      = "etcd"
	apiServerName = "kube-apiserver"

	// issuer is what service account tokens say they are from, as on a cluster.
	issuer = "https://kubernetes.default.svc.cluster.local"
)

// silence keeps controller-runtime, of which envtest is a part, from complaining on stderr that nobody gave it a logger.
var silence = sync.OnceFunc(func() { runtimelog.SetLogger(logr.Discard()) })

// attempts is how often a server is started whose port was taken.
const attempts = 3

// onFreePorts starts a server, and anew if somebody else had its port: envtest finds a free one by listening on it, and lets it go
// before the server is there.
func onFreePorts(start func() error) (err error) {
	for range attempts {
		if err = start(); err == nil || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
	}
	return err
}

func (p *Plane) startEtcd(context.Context) error {
	silence()
	return onFreePorts(p.tryEtcd)
}

func (p *Plane) tryEtcd() error {
	path, err := p.launch(etcdName)
	if err != nil {
		return err
	}
	log, err := p.folder.log(etcdName)
	if err != nil {
		return err
	}
	defer log.Close() // etcd has its own descriptor
	p.servers.Etcd = &envtest.Etcd{
		Path: path, DataDir: p.folder.etcd(), Out: log, Err: log,
		StartTimeout: p.options.Patience, StopTimeout: p.options.Patience,
	}
	if err := p.thread.do(p.servers.Etcd.Start); err != nil {
		return p.folder.explain(etcdName, err)
	}
	return nil
}

func (p *Plane) startAPIServer(context.Context) error {
	if err := onFreePorts(p.tryAPIServer); err != nil {
		return err
	}
	return p.addAdministrator()
}

func (p *Plane) tryAPIServer() error {
	path, err := p.launch(apiServerName)
	if err != nil {
		return err
	}
	log, err := p.folder.log(apiServerName)
	if err != nil {
		return err
	}
	defer log.Close()
	p.servers.APIServer = nil // of an earlier attempt
	server := p.servers.GetAPIServer()
	server.Path, server.Out, server.Err = path, log, log
	server.EtcdURL, server.CertDir = p.servers.Etcd.URL, filepath.Join(p.folder.run(), "certificates")
	server.StartTimeout, server.StopTimeout = p.options.Patience, p.options.Patience
	server.Configure().
		Disable("disable-admission-plugins"). // envtest's default turns ServiceAccount off
		Set("service-account-issuer", issuer).
		// Nobody uses the Service "kubernetes" here, whose endpoint cannot be a loopback address. Without this, the server asks for
		// the machine's default route, and does not start on a machine that has none.
		Set("advertise-address", "127.0.0.1").
		Set("endpoint-reconciler-type", "none").
		// For logs: a node's kubelet is where its InternalIP says, and is trusted as on a cluster that has set no CA for kubelets.
		Set("kubelet-preferred-address-types", "InternalIP")
	if err := errors.Join(os.RemoveAll(server.CertDir), os.Mkdir(server.CertDir, 0o700)); err != nil {
		return fmt.Errorf("cannot make the folder for keys: %w", err)
	}
	if err := p.thread.do(server.Start); err != nil {
		return p.folder.explain(apiServerName, err)
	}
	return nil
}

// addAdministrator makes the client certificate that Config holds.
func (p *Plane) addAdministrator() error {
	base := &rest.Config{QPS: -1} // the server is ours alone, and limits by itself
	user, err := p.servers.AddUser(envtest.User{Name: "updraft-admin", Groups: []string{"system:masters"}}, base)
	if err != nil {
		return fmt.Errorf("cannot make the administrator's certificate: %w", err)
	}
	p.Config = user.Config()
	return nil
}

func (p *Plane) installCRDs(context.Context) error {
	own, err := KnativeCRDs()
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(p.Config, envtest.CRDInstallOptions{
		Paths: p.options.CRDs, CRDs: own, ErrorIfPathMissing: true, MaxTime: p.options.Patience,
	})
	return err
}

func (p *Plane) stopServers() error {
	var errs []error
	if p.servers.APIServer != nil {
		errs = append(errs, p.servers.APIServer.Stop())
	}
	if p.servers.Etcd != nil {
		errs = append(errs, p.servers.Etcd.Stop())
	}
	return errors.Join(errs...)
}
