package logs

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/updraft-dev/updraft/cmd/updraft/logs"
	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/test/suite"
)

// world is a namespace of its own.
type world struct {
	t         *testing.T
	clients   *record.Clients
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clients, err := record.NewClients(environment.Config)
	must(t, err)
	namespace, err := clients.Core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "logs-"}}, metav1.CreateOptions{})
	must(t, err)
	return &world{t: t, clients: clients, namespace: namespace.Name}
}

// kubectl is the real one.
func (w *world) kubectl(stdin string, args ...string) string {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), filepath.Join(bin, "kubectl"), append([]string{"--namespace", w.namespace}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+environment.Kubeconfig)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	if err != nil {
		w.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// applyStack applies a Stack of this name and its Program.
func (w *world) applyStack(name, program string) {
	w.t.Helper()
	w.kubectl(strings.NewReplacer("NAME", name, "PROGRAM", "  "+strings.ReplaceAll(strings.TrimSpace(program), "\n", "\n  ")).Replace(`
apiVersion: pulumi.com/v1
kind: Program
metadata: {name: NAME}
program:
PROGRAM
---
apiVersion: pulumi.com/v1
kind: Stack
metadata: {name: NAME}
spec:
  stack: dev
  programRef: {name: NAME}
  backend: file://$(UPDRAFT_ROOT)/state?create_dir=true
  envRefs:
    PULUMI_CONFIG_PASSPHRASE: {type: Literal, literal: {value: correct-horse}}
`), "apply", "-f", "-")
}

func (w *world) stack(name string) *pulumiv1.Stack {
	w.t.Helper()
	s, err := w.clients.Pulumi.PulumiV1().Stacks(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	must(w.t, err)
	return s
}

// settled waits until the Stack's last run is settled and folded.
func (w *world) settled(name string) *pulumiv1.Stack {
	w.t.Helper()
	var s *pulumiv1.Stack
	w.eventually("Stack "+name+" has run", func() bool {
		s = w.stack(name)
		return s.Status.LastUpdate != nil && s.Status.CurrentUpdate == nil
	})
	return s
}

// released waits until nothing follows from an Update any more.
func (w *world) released(name string) *autov1alpha1.Update {
	w.t.Helper()
	var u *autov1alpha1.Update
	w.eventually("Update "+name+" is let go, and its pod is gone", func() bool {
		var err error
		u, err = w.clients.Pulumi.AutoV1alpha1().Updates(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
		must(w.t, err)
		return u.Settled() && !record.HasFinalizer(u) && len(w.pods(name)) == 0
	})
	return u
}

func (w *world) pods(update string) []corev1.Pod {
	w.t.Helper()
	list, err := w.clients.Core.Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: pulumiv1.LabelUpdate + "=" + update})
	must(w.t, err)
	return list.Items
}

// kept is the log that was kept of an Update.
func (w *world) kept(u *autov1alpha1.Update) (*corev1.ConfigMap, string) {
	w.t.Helper()
	c, err := w.clients.Core.ConfigMaps(w.namespace).Get(w.t.Context(), run.LogConfigMapName(u.Name), metav1.GetOptions{})
	must(w.t, err)
	if !run.OwnedByUpdate(c, u) || c.Immutable == nil || !*c.Immutable || c.Labels[pulumiv1.LabelUpdate] != u.Name {
		w.t.Errorf("the kept log is not the Update's, immutable and labelled: %v", c.ObjectMeta)
	}
	reader, leftOut, err := run.KeptLog(c)
	must(w.t, err)
	text, err := io.ReadAll(reader)
	must(w.t, err)
	if leftOut != 0 {
		w.t.Errorf("%d bytes of a short log are left out", leftOut)
	}
	return c, string(text)
}

// logs runs updraft logs to its end.
func (w *world) logs(args ...string) (out, notes string, err error) {
	w.t.Helper()
	f := w.follow(args...)
	err = f.wait()
	return f.out.String(), f.notes.String(), err
}

// following is an updraft logs that goes on.
type following struct {
	w          *world
	out, notes suite.Text
	done       chan error
}

func (w *world) follow(args ...string) *following {
	f := &following{w: w, done: make(chan error, 1)}
	command := logs.Command()
	command.SetArgs(append(args, "--kubeconfig", environment.Kubeconfig, "--namespace", w.namespace))
	command.SetOut(&f.out)
	command.SetErr(&f.notes)
	command.SilenceUsage, command.SilenceErrors = true, true
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	go func() { f.done <- command.ExecuteContext(ctx) }()
	return f
}

func (f *following) wait() error {
	f.w.t.Helper()
	select {
	case err := <-f.done:
		return err
	case <-time.After(2 * time.Minute):
		f.w.t.Fatalf("updraft logs does not end; it said:\n%s%s", f.notes.String(), f.out.String())
		return nil
	}
}

// gate holds a program that reads the file until it is opened.
type gate struct {
	t    *testing.T
	path string
}

func newGate(t *testing.T) gate {
	t.Helper()
	g := gate{t: t, path: filepath.Join(t.TempDir(), "gate")}
	must(t, syscall.Mkfifo(g.path, 0o600))
	return g
}

// open lets the program go on with this text.
func (g gate) open(text string) {
	g.t.Helper()
	file, err := os.OpenFile(g.path, os.O_WRONLY, 0)
	must(g.t, err)
	_, err = file.WriteString(text)
	must(g.t, errors.Join(err, file.Close()))
}

func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain: %s\n%s\nThe runs said:\n%s", what, w.kubectl("", "get", "stacks,updates,workspaces,jobs,pods", "-o", "wide"),
				w.kubectl("", "logs", "--selector", pulumiv1.LabelUpdate, "--container", run.Container, "--prefix"))
		}
	}
}

func (w *world) reason(s *pulumiv1.Stack, condition string) string {
	if c := meta.FindStatusCondition(s.Status.Conditions, condition); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
