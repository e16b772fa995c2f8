package abuse

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/updraft-dev/updraft/config"
	"github.com/updraft-dev/updraft/pkg/local/controlplane"
	"github.com/updraft-dev/updraft/pkg/local/controlplane/planetest"
)

// scenario is a piece of a Stack's life.
type scenario struct {
	name string
	// prepare makes the world that it begins in; nothing is done to it then.
	prepare func(w *world)
	// act is what is abused.
	act func(w *world)
	// ends is how a clean delivery must end, in words of world.summary: what is broken in the same way each time would not show in a
	// comparison with it.
	ends string
	// essence says that it may take another number of Updates to the same end.
	essence bool
	// stalls says that functions are also held back, until the scenario lets them go on.
	stalls bool
	// exact says that act counts on the order of events, which are not shuffled then.
	exact bool
	// ownNode says that the pods are on a node that no other case has.
	ownNode bool
	// prepared is what prepare made, and clean how it ends if nothing is done to it.
	prepared *snapshot
	clean    *end
}

func start(t *testing.T) *controlplane.Plane {
	dir := t.TempDir()
	if err := os.CopyFS(dir, config.Files); err != nil {
		t.Fatal(err)
	}
	plane := planetest.Start(t, filepath.Join(dir, "100-crds"))
	if err := plane.Apply(t.Context(), filepath.Join(dir, "100-namespace.yaml"), filepath.Join(dir, "200-accounts.yaml"), filepath.Join(dir, "200-rights.yaml"), filepath.Join(dir, "210-admission.yaml")); err != nil {
		t.Fatal(err)
	}
	makeNode(t, plane, node)
	return plane
}

// makeNode makes a node that has been Ready since before all else.
func makeNode(t *testing.T, plane *controlplane.Plane, name string) {
	nodes := must(kubernetes.NewForConfig(plane.Config)).CoreV1().Nodes()
	made, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Abuse",
		LastTransitionTime: metav1.Date(2026, 1, 1, 0, 0, 0, 0, metav1.Now().UTC().Location()),
	}}
	if _, err := nodes.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// run runs the scenario in a world of its own, and returns how it ended; nil if the driver could not go on.
func (s *scenario) run(t *testing.T, plane *controlplane.Plane, f faults) (ended *end) {
	t.Helper()
	w := newWorld(t, plane)
	defer func() {
		if p := recover(); p != nil {
			if _, ours := p.(failed); !ours {
				panic(p)
			}
		}
		if t.Failed() {
			for _, line := range w.lines {
				t.Log(line)
			}
		}
	}()
	s.begin(w)
	w.writes, w.sends, w.counting, w.toldEver = 0, 0, true, map[string]bool{}
	w.faults, w.situations = f, map[string][]situation{}
	s.act(w)
	w.resume()
	w.drive()
	return w.settle()
}

// begin prepares the world; the first time step by step, and then from what that left.
func (s *scenario) begin(w *world) {
	if s.ownNode {
		w.node = w.namespace
		makeNode(w.t, w.plane, w.node)
	}
	switch {
	case s.prepare == nil:
	case s.prepared != nil:
		w.restore(s.prepared)
	default:
		s.prepare(w)
		s.prepared = w.snapshot()
	}
}

// settle reads the end of a run, and holds that a sweep finds nothing to do then; where events were lost, it first does what they would have.
func (w *world) settle() *end {
	_, lossy := w.faults.(*chaos)
	w.faults = clean{}
	if lossy {
		w.settleLost()
	}
	ended := w.state()
	ended.lossy, ended.summary = lossy, w.summary()
	before := w.written()
	w.trace("in the end, the sweep")
	w.sweepUp()
	if w.written() != before {
		w.broken("the sweep finds what no event was lost for")
	}
	return ended
}

// settleLost sweeps, and lets alarms ring, until nothing comes of it.
func (w *world) settleLost() {
	before := w.faults
	w.faults = clean{}
	for written := -1; written != w.written(); {
		written = w.written()
		w.sweepUp()
		w.ring()
	}
	w.faults = before
}

func (w *world) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}
