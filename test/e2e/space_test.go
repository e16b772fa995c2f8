//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

const (
	// patience with what should take seconds, on a machine that has much to do.
	patience = 3 * time.Minute
	// asleep is how long functions may take to scale to zero: the autoscaler's
	// window and Knative's grace period, twice.
	asleep = 4 * time.Minute
	// tick is how often is looked.
	tick = 250 * time.Millisecond
)

// space is a test's own namespace.
type space struct {
	*testing.T
	namespace string
	why       string // what it failed with
}

// Fatalf says again at the end why the test has failed, below all that is told then.
func (s *space) Fatalf(format string, args ...any) {
	s.Helper()
	s.why = fmt.Sprintf(format, args...)
	s.T.Fatal(s.why)
}

func (s *space) Fatal(args ...any) {
	s.Helper()
	s.Fatalf("%s", fmt.Sprint(args...))
}

func newSpace(t *testing.T) *space {
	t.Helper()
	labels := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	made, err := cluster.clients.Core.Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: namespaces, Labels: labels},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &space{T: t, namespace: made.Name}
	t.Cleanup(s.leave)
	return s
}

// leave tells what is there if the test has failed, and deletes the namespace.
// Stacks go first: a namespace that is being deleted has no runs.
func (s *space) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.Failed() {
		for _, args := range [][]string{
			{"get", "stacks,workspaces,updates,jobs,pods,events"}, {"get", "stacks,updates", "-o", "yaml"}, {"describe", "pods"},
			{"get", "brokers,triggers,subscriptions,channels", "-n", systemNamespace}, {"get", "pods", "-n", "knative-eventing"},
			{"logs", "-l", "updraft.dev/update", "--all-containers", "--tail=50"},
		} {
			out, _ := s.command(ctx, "", args...).CombinedOutput()
			s.Logf("kubectl %s\n%s", strings.Join(args, " "), out)
		}
		out, _ := s.command(ctx, "", "logs", "-n", systemNamespace, "-l", "serving.knative.dev/service", "-c", "user-container", "--tail=60", "--prefix").CombinedOutput()
		s.Logf("functions:\n%s", out)
		s.Logf("it failed with: %s", s.why)
	}
	_ = s.command(ctx, "", "annotate", "stacks", "--all", pulumiv1.AnnotationLetGo+"=true", "--overwrite").Run()
	_ = s.command(ctx, "", "delete", "stacks", "--all", "--timeout=60s").Run()
	if err := cluster.clients.Core.Namespaces().Delete(ctx, s.namespace, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.Logf("namespace %s is left: %v", s.namespace, err)
	}
}

func (s *space) command(ctx context.Context, stdin string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, kubectlPath(), append([]string{"--namespace", s.namespace}, args...)...)
	c.Stdin = strings.NewReader(stdin)
	return c
}

// kubectlPath is the one that make tools builds, or else any.
func kubectlPath() string {
	if own := filepath.Join(cluster.root, ".bin", "kubectl"); exists(own) {
		return own
	}
	return "kubectl"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (s *space) kubectl(args ...string) string {
	s.Helper()
	out, err := s.try(args...)
	if err != nil {
		s.Fatalf("%v", err)
	}
	return out
}

// try is kubectl where it may fail, and be tried again.
func (s *space) try(args ...string) (string, error) {
	out, err := s.command(s.Context(), "", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func (s *space) apply(manifest string) {
	s.Helper()
	if out, err := s.command(s.Context(), manifest, "apply", "-f", "-").CombinedOutput(); err != nil {
		s.Fatalf("kubectl apply: %v\n%s", err, out)
	}
}

// stackOf is a Stack of the Program greets, whose state is of no run but one's
// own, with what is added to its spec.
func (s *space) stackOf(name, more string) string {
	s.Helper()
	spec := map[string]any{}
	for _, text := range []string{`
stack: dev
programRef: {name: greets}
backend: file://$(UPDRAFT_ROOT)/state?create_dir=true
envRefs: {PULUMI_CONFIG_PASSPHRASE: {type: Literal, literal: {value: passphrase}}}
`, more} {
		if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
			s.Fatal(err)
		}
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "pulumi.com/v1", "kind": "Stack", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		s.Fatal(err)
	}
	return string(manifest)
}

// program applies the Program greets.
func (s *space) program() {
	s.Helper()
	s.apply(`
apiVersion: pulumi.com/v1
kind: Program
metadata: {name: greets}
program:
  configuration: {name: {type: String, default: world}}
  outputs: {message: "Hello, ${name}!"}
`)
}

func (s *space) within(limit time.Duration, what string, is func() error) {
	s.Helper()
	var err error
	for began := time.Now(); time.Since(began) < limit; time.Sleep(tick) {
		if err = is(); err == nil {
			return
		}
	}
	s.Fatalf("waited in vain for %s until %s: %v", limit, what, err)
}

func (s *space) stack(name string) *pulumiv1.Stack {
	s.Helper()
	stack, err := cluster.clients.Pulumi.PulumiV1().Stacks(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return stack
}

// await waits for a Stack.
func (s *space) await(limit time.Duration, name, what string, is func(*pulumiv1.Stack) bool) *pulumiv1.Stack {
	s.Helper()
	var stack *pulumiv1.Stack
	s.within(limit, "Stack "+name+" "+what, func() error {
		if stack = s.stack(name); is(stack) {
			return nil
		}
		return errors.New(summary(stack))
	})
	return stack
}

// awaitReady waits until a Stack is Ready as it is.
func (s *space) awaitReady(name string) *pulumiv1.Stack {
	s.Helper()
	return s.await(patience, name, "is Ready", isReady)
}

func isReady(stack *pulumiv1.Stack) bool {
	return meta.IsStatusConditionTrue(stack.Status.Conditions, pulumiv1.ReadyCondition) && stack.Status.ObservedGeneration == stack.Generation
}

// awaitReason waits until the condition that is True has this reason, and a
// message that holds a text.
func (s *space) awaitReason(limit time.Duration, name, reason, text string) {
	s.Helper()
	s.await(limit, name, "says "+reason, func(stack *pulumiv1.Stack) bool {
		for _, c := range stack.Status.Conditions {
			if c.Status == metav1.ConditionTrue && c.Reason == reason && strings.Contains(c.Message, text) {
				return true
			}
		}
		return false
	})
}

// awaitGone waits until a Stack is gone.
func (s *space) awaitGone(name string) {
	s.Helper()
	s.kubectl("wait", "--for=delete", "stack/"+name, "--timeout="+patience.String())
}

func summary(stack *pulumiv1.Stack) string {
	conditions, _ := json.Marshal(stack.Status.Conditions)
	last, _ := json.Marshal(stack.Status.LastUpdate)
	return fmt.Sprintf("generation %d: %s; last %s", stack.Generation, conditions, last)
}

// awaitZero waits until no pod of a function and none of a run is left in the
// whole cluster (invariant 7).
func (s *space) awaitZero() {
	s.Helper()
	s.within(asleep, "nothing of ours runs", func() error {
		for what, labels := range map[string]string{"functions": "serving.knative.dev/service", "runs": pulumiv1.LabelUpdate} {
			namespace := ""
			if what == "functions" {
				namespace = systemNamespace
			}
			pods, err := cluster.clients.Core.Pods(namespace).List(s.Context(), metav1.ListOptions{LabelSelector: labels})
			if err != nil {
				return err
			}
			if len(pods.Items) > 0 {
				return fmt.Errorf("%d pods of %s are left, %s among them", len(pods.Items), what, pods.Items[0].Name)
			}
		}
		return nil
	})
}
