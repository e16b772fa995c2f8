package tracing

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/test/spans"
)

// world is a namespace of its own.
type world struct {
	t           *testing.T
	environment *dev.Environment
	clients     *record.Clients
	namespace   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, environment)
}

func newWorldIn(t *testing.T, e *dev.Environment) *world {
	t.Helper()
	clients, err := record.NewClients(e.Config)
	must(t, err)
	namespace, err := clients.Core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "tracing-"}}, metav1.CreateOptions{})
	must(t, err)
	return &world{t: t, environment: e, clients: clients, namespace: namespace.Name}
}

// kubectl is the real one.
func (w *world) kubectl(stdin string, args ...string) string {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), filepath.Join(bin, "kubectl"), append([]string{"--namespace", w.namespace}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.environment.Kubeconfig)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	if err != nil {
		w.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// ended waits until the last run of a Stack has ended and nothing follows from it
// any more.
func (w *world) ended(name string) *autov1alpha1.Update {
	w.t.Helper()
	var u *autov1alpha1.Update
	w.eventually("Stack "+name+" has run", func() bool {
		s, err := w.clients.Pulumi.PulumiV1().Stacks(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
		must(w.t, err)
		if s.Status.LastUpdate == nil || s.Status.CurrentUpdate != nil {
			return false
		}
		u, err = w.clients.Pulumi.AutoV1alpha1().Updates(w.namespace).Get(w.t.Context(), s.Status.LastUpdate.Name, metav1.GetOptions{})
		must(w.t, err)
		return u.Settled() && !record.HasFinalizer(u)
	})
	if u.Status.Result == nil || u.Status.Result.State != autov1alpha1.ResultSucceeded {
		w.t.Fatalf("the run did not succeed: %s", u.Status.Message)
	}
	return u
}

func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain: %s\n%s", what, w.kubectl("", "get", "stacks,updates,workspaces,jobs,pods", "-o", "wide"))
		}
	}
}

// traceOf is the id of the trace that an object is in.
func traceOf(t *testing.T, o metav1.Object) string {
	t.Helper()
	parts := strings.Split(o.GetAnnotations()[pulumiv1.AnnotationTraceparent], "-")
	if len(parts) != 4 {
		t.Fatalf("%s has no traceparent: %v", o.GetName(), o.GetAnnotations())
	}
	return parts[1]
}

// wanted are spans that a change has, each with the span that it is below: of
// which service, and of which name. The finalizer may have been put on by a look
// that met another on the way to the claim, with which the trace begins.
var wanted = []struct{ span, below string }{
	{"updraft-stack: create updates", "updraft-stack: look at Stack"},
	{"updraft-stack: update stacks/status", "updraft-stack: look at Stack"},
	{"updraft-stack: create workspaces", "updraft-stack: look at Stack"},
	{"updraft-update: look at Update", "updraft-stack: look at Stack"},
	{"updraft-update: update workspaces/status", "updraft-update: look at Update"},
	{"updraft-update: create jobs", "updraft-update: look at Update"},
	{"updraft-agent: fetch", "updraft-update: look at Update"},
	{"updraft-agent: run", "updraft-update: look at Update"},
	{"updraft-agent: report taken", "updraft-agent: run"},
	{"updraft-agent: select", "updraft-agent: run"},
	{"updraft-agent: config", "updraft-agent: run"},
	{"updraft-agent: operation", "updraft-agent: run"},
	{"pulumi-cli: pulumi", "updraft-agent: operation"},
	{"updraft-agent: report finished", "updraft-agent: run"},
	{"updraft-status: look at Update", "updraft-agent: report taken"},
	{"updraft-status: look at Update", "updraft-agent: report finished"},
	{"updraft-status: update stacks/status", "updraft-status: look at Update"},
	{"updraft-status: create secrets", "updraft-status: look at Update"},
	{"updraft-status: send dev.updraft.stack.succeeded", "updraft-status: look at Update"},
}

func TestAChangeIsOneTrace(t *testing.T) {
	w := newWorld(t)
	w.kubectl("", "apply", "-f", filepath.Join(root, "samples", "hello"))
	u := w.ended("hello")
	id := traceOf(t, u)
	var trace spans.Trace
	var missing []string
	complete := func() bool {
		var err error
		trace, err = collected.spans(id)
		must(t, err)
		missing = lacks(trace)
		// One root: no span whose parent is not there.
		if roots := trace.Roots(); len(roots) != 1 || !strings.HasPrefix(roots[0], "broker: ") {
			missing = append(missing, fmt.Sprint("one root; it begins at ", roots))
		}
		return len(missing) == 0
	}
	for deadline := time.Now().Add(20 * time.Second); !complete(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the trace lacks:\n%s\nIt has:\n%s", strings.Join(missing, "\n"), trace.Tree())
		}
	}
	t.Logf("the trace:\n%s", trace.Tree())
	for _, s := range trace {
		if s.Service == "updraft-stack" && s.Name == "create updates" && s.Attribute("updraft.name") != u.Name {
			t.Errorf("%v says that it is of %q, not %s", s, s.Attribute("updraft.name"), u.Name)
		}
		if s.Service == "updraft-agent" && s.Name == "run" && (s.Attribute("cicd.pipeline.run.id") != string(u.UID) || s.Attribute("cicd.pipeline.result") != "success") {
			t.Errorf("the span of the run says %v", s.Attributes)
		}
	}
	if described := w.kubectl("", "describe", "update", u.Name); !strings.Contains(described, id) {
		t.Errorf("kubectl describe does not tell the trace:\n%s", described)
	}
	w.lines(u, id)
	w.kubectl("", "delete", "stack", "hello")
}

// lines holds that each look that did something is one line, with what it was
// about and its trace.
func (w *world) lines(u *autov1alpha1.Update, trace string) {
	w.t.Helper()
	did := map[string]bool{}
	for line := range strings.Lines(logged.String()) {
		var l struct {
			Level, Function, Msg, Namespace, Name, Reason string
			Generation                                    int64
			Writes                                        int
			Did                                           []string
			TraceID                                       string `json:"trace_id"`
		}
		must(w.t, json.Unmarshal([]byte(line), &l))
		if l.Function == "" || l.Namespace != w.namespace {
			continue
		}
		if !strings.HasPrefix(l.Msg, "Looked at ") || l.Writes == 0 && len(l.Did) == 0 || l.TraceID == "" {
			w.t.Errorf("a line that does not tell a look that did something: %s", line)
		}
		if l.Name == u.Name && l.TraceID != trace {
			w.t.Errorf("the line is of another trace than %s: %s", trace, line)
		}
		if l.Generation == 0 && l.Name == u.Name {
			w.t.Errorf("the line has no generation: %s", line)
		}
		for _, d := range l.Did {
			what, _, _ := strings.Cut(d, ":")
			did[l.Function+" "+what] = true
		}
	}
	for _, what := range []string{"updraft-stack Update created", "updraft-update Run launched", "updraft-status Run taken", "updraft-status Update settled"} {
		if !did[what] {
			w.t.Errorf("no line says %q; there are %v", what, slices.Sorted(maps.Keys(did)))
		}
	}
}

// lacks are the wanted spans that are not there, or not where they should be.
func lacks(trace spans.Trace) []string {
	var missing []string
	for _, want := range wanted {
		if !slices.ContainsFunc(slices.Collect(maps.Values(trace)), func(s spans.Span) bool {
			return s.String() == want.span && ancestor(trace, s, want.below)
		}) {
			missing = append(missing, want.span+" below "+want.below)
		}
	}
	return missing
}

// ancestor says whether the next span above s that is of Updraft itself has this
// name: of the Broker the dispatcher's own are between.
func ancestor(trace spans.Trace, s spans.Span, name string) bool {
	for s.Parent != "" {
		s = trace[s.Parent]
		if s.String() == name {
			return true
		}
		if s.Service != "broker" && !strings.HasPrefix(s.Name, "create ") && !strings.HasPrefix(s.Name, "send ") {
			return false
		}
	}
	return false
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The sample for a cluster: its manifests are valid, and what it sets is read.
func TestTheSampleForAClusterIsValid(t *testing.T) {
	w := newWorld(t)
	folder := filepath.Join(root, "samples", "tracing")
	manifests, err := os.ReadFile(filepath.Join(folder, "jaeger.yaml"))
	must(t, err)
	text := strings.ReplaceAll(string(manifests), "namespace: observability", "namespace: "+w.namespace)
	if said := w.kubectl(text, "apply", "--dry-run=server", "--validate=strict", "-f", "-"); strings.Count(said, "dry run") != 3 {
		t.Errorf("the API server says:\n%s", said)
	}
	patch, err := os.ReadFile(filepath.Join(folder, "config.json"))
	must(t, err)
	var settings struct{ Data map[string]string }
	must(t, json.Unmarshal(patch, &settings))
	got, err := observe.Parse(settings.Data, nil, "updraft-stack")
	if err != nil || !got.Tracing.On() || !got.Runs.On() {
		t.Errorf("the settings are read as %+v, %v", got, err)
	}
}

func TestAHandMadeUpdateHasATraceOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.kubectl(`
{apiVersion: auto.pulumi.com/v1alpha1, kind: Update, metadata: {name: by-hand}, spec: {type: up, workspaceName: none, stackName: dev}}
`, "apply", "-f", "-")
	var u *autov1alpha1.Update
	w.eventually("the Update is looked at", func() bool {
		var err error
		u, err = w.clients.Pulumi.AutoV1alpha1().Updates(w.namespace).Get(t.Context(), "by-hand", metav1.GetOptions{})
		must(t, err)
		return len(u.Status.Conditions) > 0
	})
	trace := traceOf(t, u)
	w.eventually("its trace has the look", func() bool {
		found, err := collected.spans(trace)
		must(t, err)
		return slices.ContainsFunc(slices.Collect(maps.Values(found)), func(s spans.Span) bool { return s.String() == "updraft-update: look at Update" })
	})
}
