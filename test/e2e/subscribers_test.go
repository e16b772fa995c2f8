//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// TestTheSamplesOfSubscribers has both samples at once: notify prints what becomes of
// the Stacks of chained, of which one starts when the other has succeeded. It is not
// Parallel: beside other tests on two cores the Triggers were not Ready for minutes,
// and Knative's webhook of channels had been restarted.
func TestTheSamplesOfSubscribers(t *testing.T) {
	t.Cleanup(func() { unsubscribe(t, "notify", "chained") }) // after what is told of a failure
	s := newSpace(t)
	notify, chained := s.resolved("notify"), s.resolved("chained")
	s.applyAnywhere(notify)
	s.applyAnywhere(chained)
	limit := "--timeout=" + patience.String()
	s.kubectl("wait", "ksvc/notify", "ksvc/chained", "--for=condition=Ready", limit)
	// Knative looks again at a Trigger whose subscriber was not Ready after a time that
	// doubles; at one that changes, at once.
	s.kubectl("annotate", "-n", systemNamespace, "trigger/notify", "trigger/chained", "e2e=subscriber-is-ready")
	s.kubectl("wait", "-n", systemNamespace, "trigger/notify", "trigger/chained", "--for=condition=Ready", limit)
	s.awaitReady("network")
	// The Trigger may have become Ready after that: then it is the next run that starts the other.
	s.within(patience, "app runs since network has succeeded", func() error {
		app := s.stack("app")
		if isReady(app) && string(app.Status.Outputs["message"].Raw) == `"Runs in 10.0.0.0/24"` {
			return nil
		}
		_, err := s.try("annotate", "stack", "network", "--overwrite", pulumiv1.AnnotationReconcileRequest+"=again")
		return errors.Join(fmt.Errorf("it is %s", summary(app)), err)
	})
	s.within(patience, "notify prints what became of app", func() error {
		log, err := s.try("logs", "-l", "serving.knative.dev/service=notify", "-c", "notify", "--tail=-1")
		if err != nil {
			return err
		}
		if want := "Stack " + s.namespace + "/app succeeded"; !strings.Contains(log, want) {
			return fmt.Errorf("it has printed %q, want %q", log, want)
		}
		return nil
	})
}

// resolved is a sample with its image built, for the test's namespace.
func (s *space) resolved(sample string) string {
	s.Helper()
	args := append([]string{"resolve", "--base-import-paths", "--sbom=none", "-f", filepath.Join("samples", sample)}, strings.Fields(os.Getenv("KO_FLAGS"))...)
	c := exec.CommandContext(s.Context(), filepath.Join(cluster.root, ".bin", "ko"), args...)
	c.Dir = cluster.root
	var said strings.Builder
	c.Stderr = &said
	manifest, err := c.Output()
	if err != nil {
		s.Fatalf("ko resolve: %v\n%s", err, said.String())
	}
	return strings.NewReplacer("namespace: default", "namespace: "+s.namespace, "value: default", "value: "+s.namespace).Replace(string(manifest))
}

// applyAnywhere applies objects that are in the namespaces that they name: a
// kubectl that is told of one refuses those of others.
func (s *space) applyAnywhere(manifest string) {
	s.Helper()
	c := exec.CommandContext(s.Context(), kubectlPath(), "apply", "-f", "-")
	c.Stdin = strings.NewReader(manifest)
	if out, err := c.CombinedOutput(); err != nil {
		s.Fatalf("kubectl apply: %v\n%s", err, out)
	}
}

// unsubscribe deletes the Triggers, which are in the Broker's namespace.
func unsubscribe(t *testing.T, triggers ...string) {
	t.Helper()
	out, err := exec.Command(kubectlPath(), append([]string{"delete", "trigger", "-n", systemNamespace, "--ignore-not-found"}, triggers...)...).CombinedOutput()
	if err != nil {
		t.Errorf("the Triggers of samples are left: %v\n%s", err, out)
	}
}
