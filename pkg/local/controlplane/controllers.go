package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const controllersName = "kube-controller-manager"

// wanted are the controllers that run. Those that watch nodes do not: here a node is a process that sends no heartbeat, and they
// would give its pods up within a minute.
var wanted = []string{
	"namespace-controller",
	"garbage-collector-controller",
	"serviceaccount-controller",
	"root-ca-certificate-publisher-controller",
	"job-controller",
	"ttl-after-finished-controller",
	"pod-garbage-collector-controller",
	"persistentvolumeclaim-protection-controller", // else a claim that was deleted would never go
}

// controllers is the process of kube-controller-manager.
type controllers struct {
	process  *os.Process
	patience time.Duration
	stopping chan struct{}
	ended    chan struct{} // closed when the process is gone; err says how it ended
	err      error
}

// startControllers starts the controllers and returns once they have served the namespace "default". It comes after the CRDs: the
// garbage collector learns of a kind that comes later only after half a minute.
func (p *Plane) startControllers(ctx context.Context) error {
	command, err := p.controllersCommand()
	if err != nil {
		return err
	}
	log, err := p.folder.log(controllersName)
	if err != nil {
		return err
	}
	defer log.Close()
	command.Stdout, command.Stderr, command.SysProcAttr = log, log, attributes()
	if err := p.thread.do(command.Start); err != nil {
		return fmt.Errorf("cannot start %s: %w", controllersName, err)
	}
	p.controller = &controllers{
		process: command.Process, patience: p.options.Patience, stopping: make(chan struct{}), ended: make(chan struct{}),
	}
	go p.controller.watch(command, p.options.Log)
	if err := p.awaitControllers(ctx); err != nil {
		return p.folder.explain(controllersName, err)
	}
	return nil
}

func (p *Plane) controllersCommand() (*exec.Cmd, error) {
	path, err := p.launch(controllersName)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(p.folder.run(), controllersName+".kubeconfig")
	authority := filepath.Join(p.folder.run(), "certificates", "ca.crt")
	err = errors.Join(os.WriteFile(kubeconfig, p.Kubeconfig(), 0o600), os.WriteFile(authority, p.Config.CAData, 0o600))
	if err != nil {
		return nil, fmt.Errorf("cannot write the configuration of %s: %w", controllersName, err)
	}
	return exec.Command(path,
		"--kubeconfig="+kubeconfig,
		"--root-ca-file="+authority,
		"--controllers="+strings.Join(wanted, ","),
		"--leader-elect=false",
		"--secure-port=0", // it serves nothing
		"--kube-api-qps=500", "--kube-api-burst=1000",
	), nil
}

// awaitControllers waits for what a pod needs of a namespace, and so for two of the controllers; the others start with them.
func (p *Plane) awaitControllers(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.Patience, fmt.Errorf("not within %s", p.options.Patience))
	defer cancel()
	for {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			_, err = client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-p.controller.ended:
			return fmt.Errorf("it ended: %w", p.controller.err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// watch waits for the end of the process, and says so if nobody asked for it.
func (c *controllers) watch(command *exec.Cmd, log *slog.Logger) {
	c.err = command.Wait()
	if c.err == nil {
		c.err = errors.New("exit status 0")
	}
	close(c.ended)
	select {
	case <-c.stopping:
	default:
		log.Error("The controllers ended, so that no Job gets a Pod and nothing is collected any more: start again", "error", c.err)
	}
}

// stop ends the process: gently, then by force.
func (c *controllers) stop() error {
	if c == nil {
		return nil
	}
	close(c.stopping)
	if err := c.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot end %s: %w", controllersName, err)
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(c.patience):
	}
	if err := c.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill %s: %w", controllersName, err)
	}
	<-c.ended
	return fmt.Errorf("%s did not end within %s and was killed", controllersName, c.patience)
}
