//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

func TestTheSampleHelloFromZeroToZero(t *testing.T) {
	s := newSpace(t)
	s.awaitZero()
	s.kubectl("apply", "-f", filepath.Join(cluster.root, "samples", "hello"))
	first := s.awaitReady("hello")
	if got := string(first.Status.Outputs["message"].Raw); got != `"Hello, world!"` {
		t.Errorf("the output is %s", got)
	}
	if got := string(first.Status.Outputs["greeting"].Raw); got != `"[secret]"` {
		t.Errorf("the secret output is %s", got)
	}
	secret := s.kubectl("get", "secret", first.Status.LastUpdate.Name+"-stack-outputs", "-o", "jsonpath={.data.greeting}")
	if secret == "" {
		t.Error("the outputs Secret lacks the secret output")
	}
	s.kubectl("patch", "stack", "hello", "--type", "merge", "-p", `{"spec":{"config":{"name":"moon"}}}`)
	second := s.awaitReady("hello")
	if got := string(second.Status.Outputs["message"].Raw); got != `"Hello, moon!"` {
		t.Errorf("the output is %s", got)
	}
	s.awaitZero()
	s.kubectl("delete", "stack", "hello", "--wait=false")
	s.awaitGone("hello")
	s.awaitZero()
	for _, kind := range []string{"workspaces", "updates", "jobs", "pods", "pingsources"} {
		if left := s.kubectl("get", kind, "-o", "name"); left != "" {
			t.Errorf("%s are left: %s", kind, left)
		}
	}
}

// failing is the Program greets, as it cannot run.
const failing = `
apiVersion: pulumi.com/v1
kind: Program
metadata: {name: greets}
program:
  configuration: {text: {type: String, default: "Hello, "}}
  variables: {file: {"fn::readFile": ./missing.txt}}
  outputs: {message: "${text}${file}"}
`

func TestAProgramThatFailsIsTriedAgainByItself(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(failing)
	s.apply(s.stackOf("app", ""))
	s.awaitReason(patience, "app", string(pulumiv1.ReconcilingRetry), "missing.txt")
	s.await(patience, "app", "is tried again", func(stack *pulumiv1.Stack) bool {
		return stack.Status.LastUpdate != nil && stack.Status.LastUpdate.Failures > 0
	})
	s.program()
	s.awaitReady("app")
}

// TestAStackThatIsAppliedWhileTheSourceIsDown loses the event for good: only the
// sweep, which the source's own restart brings, finds the Stack.
func TestAStackThatIsAppliedWhileTheSourceIsDown(t *testing.T) {
	s := newSpace(t)
	s.program()
	s.awaitZero()
	selector := metav1.ListOptions{LabelSelector: "eventing.knative.dev/sourceName=updraft"}
	old, err := cluster.clients.Core.Pods(systemNamespace).List(t.Context(), selector)
	if err != nil || len(old.Items) == 0 {
		t.Fatalf("the source has no pods: %v", err)
	}
	now := int64(0)
	for _, p := range old.Items {
		if err := cluster.clients.Core.Pods(systemNamespace).Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Fatal(err)
		}
	}
	s.apply(s.stackOf("app", ""))
	s.awaitReady("app")
}

// TestAStackThatIsAppliedWhileTheBrokerIsDown loses the event for good, too: nothing
// takes what the source sends. The sweep that finds the Stack is brought by what
// changes when the Broker is whole again, and not by the time.
func TestAStackThatIsAppliedWhileTheBrokerIsDown(t *testing.T) {
	if os.Getenv("OWN_CLUSTER") == "" {
		t.Skip("others may use this cluster's Broker: make e2e without KUBECONFIG has a cluster of its own")
	}
	s := newSpace(t)
	s.program()
	dispatcher := func(replicas string) {
		s.kubectl("scale", "deployment", "imc-dispatcher", "-n", "knative-eventing", "--replicas="+replicas)
		s.kubectl("rollout", "status", "deployment/imc-dispatcher", "-n", "knative-eventing", "--timeout="+patience.String())
	}
	t.Cleanup(func() {
		_ = s.command(context.Background(), "", "scale", "deployment", "imc-dispatcher", "-n", "knative-eventing", "--replicas=1").Run()
	})
	dispatcher("0")
	s.kubectl("wait", "pods", "-n", "knative-eventing", "-l", "app.kubernetes.io/component=imc-dispatcher", "--for=delete", "--timeout="+patience.String())
	s.apply(s.stackOf("app", ""))
	time.Sleep(5 * time.Second) // the source tries no longer
	if got := s.stack("app"); len(got.Status.Conditions) > 0 {
		t.Fatal("its event was not lost")
	}
	dispatcher("1")
	s.await(time.Minute, "app", "is Ready", isReady)
}

func TestNamespacesComeAndGoInMidRun(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.program()
	for i, name := range []string{"one", "two", "three"} {
		s.apply(s.stackOf(name, ""))
		other := newSpace(t)
		if i > 0 {
			other.program()
			other.apply(other.stackOf("short", ""))
		}
		if err := cluster.clients.Core.Namespaces().Delete(t.Context(), other.namespace, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"one", "two", "three"} {
		s.awaitReady(name)
	}
}

func TestFiftyStacksLeaveNothingRunning(t *testing.T) {
	if testing.Short() {
		t.Skip("50 runs: make e2e-long")
	}
	s := newSpace(t)
	s.program()
	const many = 50
	for i := range many {
		s.apply(s.stackOf(nameOf(i), ""))
	}
	s.within(30*time.Minute, "all are Ready", func() error {
		list, err := cluster.clients.Pulumi.PulumiV1().Stacks(s.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, pulumiv1.ReadyCondition) {
				ready++
			}
		}
		if ready < many {
			return errNotYet
		}
		return nil
	})
	s.awaitZero()
}

func TestTwentyAppliesFromZeroInARow(t *testing.T) {
	if testing.Short() {
		t.Skip("20 waits for zero: make e2e-long")
	}
	s := newSpace(t)
	s.program()
	for i := range 20 {
		s.awaitZero()
		s.apply(s.stackOf(nameOf(i), ""))
		began := time.Now()
		s.awaitReady(nameOf(i))
		t.Logf("apply %d from zero: Ready after %s", i+1, time.Since(began).Round(100*time.Millisecond))
	}
}

func nameOf(i int) string { return "app-" + strings.Repeat("x", i/26) + string(rune('a'+i%26)) }
