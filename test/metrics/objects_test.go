package metrics

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/updraft-dev/updraft/pkg/record"
)

// space is a namespace of its own, which is empty again when its test has ended.
type space struct {
	*testing.T
	name string
}

func newSpace(t *testing.T) *space {
	t.Helper()
	clients, err := record.NewClients(lab.env.Config)
	must(t, err)
	n, err := clients.Core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "metrics-"}}, metav1.CreateOptions{})
	must(t, err)
	s := &space{t, n.Name}
	t.Cleanup(func() {
		lab.asleep.Store(false)
		_, _ = s.kubectlIn(context.Background(), "", "annotate", "stacks", "--all", "updraft.dev/let-go=true")
		if out, err := s.kubectlIn(context.Background(), "", "delete", "stacks,programs", "--all", "--timeout=60s"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return s
}

func (s *space) kubectlIn(ctx context.Context, stdin string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(lab.bin, "kubectl"), append([]string{"--namespace", s.name}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+lab.env.Kubeconfig)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	return string(out), err
}

// kubectl is the real one.
func (s *space) kubectl(stdin string, args ...string) {
	s.Helper()
	if out, err := s.kubectlIn(s.Context(), stdin, args...); err != nil {
		s.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

const sound = `
{apiVersion: pulumi.com/v1, kind: Program, metadata: {name: sound}, program: {outputs: {a: b}}}
---
apiVersion: pulumi.com/v1
kind: Stack
metadata: {name: sound}
spec:
  stack: dev
  programRef: {name: sound}
  backend: file://$(UPDRAFT_ROOT)/state?create_dir=true
  envRefs: {PULUMI_CONFIG_PASSPHRASE: {type: Literal, literal: {value: correct-horse}}}
`

// broken cannot run: its program uses what is not there. It is tried again at once.
var broken = strings.NewReplacer("sound", "broken", "{a: b}", `{a: "${missing}"}`, "  stack: dev", "  stack: dev\n  retryMaxBackoffDurationSeconds: 1").Replace(sound)

// of is the labels of a Stack's series.
func (s *space) of(name string) string { return `name="` + name + `",namespace="` + s.name + `"` }

func TestGaugesFollowObjects(t *testing.T) {
	needsPrometheus(t)
	p := lab.prometheus
	p.is(t, "stacks_active", map[string]float64{"": 0})
	p.is(t, "programs_active", map[string]float64{"": 0})
	s := newSpace(t)
	s.kubectl(sound, "apply", "-f", "-")
	s.kubectl("", "wait", "--for=condition=Ready", "stack/sound", "--timeout=120s")
	p.is(t, "stacks_active", map[string]float64{"": 1})
	p.is(t, "programs_active", map[string]float64{"": 1})
	in := `{namespace="` + s.name + `"}`
	p.is(t, "stacks_failing"+in, map[string]float64{s.of("sound"): 0})
	p.is(t, "stacks_reconciling"+in, map[string]float64{s.of("sound"): 0})
	p.is(t, "stacks_stalled"+in, map[string]float64{s.of("sound"): 0})
	// What the functions pushed of the same change.
	p.is(t, `sum by (type, result) (updraft_updates_total{k8s_namespace_name="`+s.name+`"})`, map[string]float64{`result="succeeded",type="up"`: 1})
	p.is(t, `sum(updraft_run_phase_duration_seconds_count{phase="operation"}) >= bool 1`, map[string]float64{"": 1})
	// An installation at which all is well, for some evaluations.
	began := time.Now()
	for time.Since(began) < 5*time.Second {
		if firing := p.firing(t); len(firing) > 0 {
			t.Fatalf("nothing is wrong, and these fire: %v", firing)
		}
		time.Sleep(500 * time.Millisecond)
	}

	s.kubectl(broken, "apply", "-f", "-")
	p.is(t, "stacks_failing"+in, map[string]float64{s.of("sound"): 0, s.of("broken"): 1})
	p.is(t, "stacks_stalled"+in, map[string]float64{s.of("sound"): 0, s.of("broken"): 1})
	p.is(t, "stacks_reconciling"+in, map[string]float64{s.of("sound"): 0, s.of("broken"): 0})
	p.is(t, "stacks_active", map[string]float64{"": 2})
	p.fires(t, "UpdraftStackFailing", s.name)
	p.fires(t, "UpdraftStackStalled", s.name)
	p.is(t, `sum(updraft_retries_total{k8s_namespace_name="`+s.name+`"})`, map[string]float64{"": 3})
	p.is(t, `sum(updraft_stalls_total{k8s_namespace_name="`+s.name+`"})`, map[string]float64{"": 1})

	s.kubectl("", "annotate", "stacks", "--all", "updraft.dev/suspend=true")
	p.is(t, "max by (namespace, name) (updraft_stack_suspended"+in+")", map[string]float64{s.of("broken"): 1, s.of("sound"): 1})
	s.kubectl("", "annotate", "stacks", "--all", "updraft.dev/suspend-")

	// What shows them is tested while there is something to show.
	t.Run("EachExpressionOfTheDashboardHasData", func(t *testing.T) { dashboardHasData(t, s.name) })

	s.kubectl("", "annotate", "stacks", "--all", "updraft.dev/let-go=true")
	s.kubectl("", "delete", "stacks,programs", "--all", "--timeout=120s")
	for _, gauge := range []string{"stacks_failing", "stacks_reconciling", "stacks_stalled"} {
		p.is(t, gauge+in, map[string]float64{})
	}
	p.is(t, "stacks_active", map[string]float64{"": 0})
	p.is(t, "programs_active", map[string]float64{"": 0})
}
