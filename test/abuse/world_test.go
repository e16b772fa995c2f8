package abuse

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/updraft-dev/updraft/functions/stack"
	"github.com/updraft-dev/updraft/functions/status"
	"github.com/updraft-dev/updraft/functions/sweep"
	"github.com/updraft-dev/updraft/functions/update"
	"github.com/updraft-dev/updraft/pkg/client/clientset/versioned"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/local/controlplane"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/pkg/transport"
)

const (
	system = "updraft-system"
	// restless is how many steps a run may take before it counts as one that never comes to rest.
	restless = 500
)

// world is one case: a namespace of its own, the events on their way, and the pods.
type world struct {
	t         *testing.T
	plane     *controlplane.Plane
	namespace string
	faults    faults

	pulumi  versioned.Interface
	core    kubernetes.Interface
	dynamic dynamic.Interface

	// counting says that writes are counted and cut off: not so in preparation.
	counting      bool
	writes, sends int
	// situations are those in which functions wrote and sent, by series.
	situations map[string][]situation
	// current is what a function was called for last.
	current delivery
	queue   []delivery
	steps   int
	// removed are the kinds of objects that went, so that the garbage collector has work.
	removed map[string]bool
	// down is a function that is not there: events for it wait.
	down string
	// until ends a drive before it is at rest.
	until func() bool
	pods  []*pod
	jobs  []*job
	// cutAt is where the last function that was cut off was.
	cutAt mode
	// heldBack says that a function was stalled before a write.
	heldBack bool
	// halfWay is how many writes there were when the scenario called half.
	halfWay int
	// node is where the pods are.
	node string
	// hold keeps pods from the step of this name on.
	hold string
	// outcome is what a run comes to.
	outcome func(u string, attempt int) event.Finished
	// reports counts the reports finished that were made up.
	reports int

	stalled  *stalled
	mu       sync.Mutex // guards what a stalled function uses too
	now      time.Time
	lines    []string
	seen     map[event.Ref]*object
	truth    truth
	toldEver map[string]bool
}

// delivery is an event on its way to a function.
type delivery struct {
	to    string
	about event.Ref
	kind  string // of the event: its type
}

func (d delivery) String() string {
	return d.to + " <- " + d.kind[strings.LastIndexByte(d.kind, '.')+1:] + " " + d.about.Kind + "/" + d.about.Name
}

// reports says whether it is a run's report, which a function believes.
func (d delivery) reports() bool { return strings.HasPrefix(d.kind, "dev.updraft.run.") }

// stalled is a function that was held back before a write.
type stalled struct {
	reached chan struct{}
	goOn    chan struct{}
	done    chan int
	what    delivery
}

var namespaces atomic.Int64

func newWorld(t *testing.T, plane *controlplane.Plane) *world {
	w := &world{
		t: t, plane: plane, faults: clean{}, namespace: fmt.Sprintf("abuse-%d", namespaces.Add(1)), node: node,
		now:        time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC),
		situations: map[string][]situation{}, removed: map[string]bool{}, seen: map[event.Ref]*object{}, toldEver: map[string]bool{}, truth: newTruth(), outcome: succeeds,
	}
	config := (&call{w: w}).config(plane.Config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	w.pulumi, w.core, w.dynamic = must(versioned.NewForConfig(config)), must(kubernetes.NewForConfig(config)), must(dynamic.NewForConfig(config))
	ctx := t.Context()
	_, err := w.core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, metav1.CreateOptions{})
	w.ok(err)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: w.namespace}}
	_, err = w.core.CoreV1().ServiceAccounts(w.namespace).Create(ctx, account, metav1.CreateOptions{})
	w.ok(record.Made(err)) // the controllers may have been first
	return w
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// failed ends a case whose driver cannot go on; the test has been told why.
type failed struct{}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.fatal("%v", err)
	}
}

func (w *world) fatal(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf(format, args...)
	panic(failed{})
}

func (w *world) trace(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// Write takes the functions' logs.
func (w *world) Write(line []byte) (int, error) {
	w.checkSecret("a log line", line)
	w.trace("        %s", strings.TrimSpace(string(line)))
	return len(line), nil
}

func (w *world) count(series string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if series == "write" {
		w.writes++
		return w.writes
	}
	w.sends++
	return w.sends
}

// clock advances by a millisecond each time that it is read.
func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(time.Millisecond)
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// wakes says which functions an event reaches: what config/600-triggers.yaml says.
var wakes = map[string][]string{
	event.KindStack:     {stack.Name, update.Name},
	event.KindProgram:   {stack.Name},
	event.KindWorkspace: {stack.Name},
	event.KindUpdate:    {update.Name, status.Name},
	event.KindJob:       {status.Name},
	event.KindPod:       {status.Name},
}

// broker takes an event of our own.
func (w *world) broker(e cloudevents.Event) {
	about := must(event.About(e))
	if e.Type() != event.TypeDue && e.Type() != event.TypePing {
		w.mu.Lock()
		w.toldEver[e.Type()+" "+e.ID()+" "+e.Subject()] = true
		w.mu.Unlock()
		return
	}
	w.wake(about, e.Type())
}

func (w *world) wake(about event.Ref, kind string) {
	for _, to := range wakes[about.Kind] {
		if about.Kind == event.KindStack && to == update.Name && !strings.HasPrefix(kind, event.PrefixAPIServer) {
			continue // it looks at a Stack for its annotations only
		}
		w.enqueue(delivery{to: to, about: about, kind: kind})
	}
}

// enqueue puts an event behind the others, unless the same is on its way already.
func (w *world) enqueue(d delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range w.queue {
		if other.to == d.to && other.about == d.about && (other.kind == event.TypePing) == (d.kind == event.TypePing) {
			return
		}
	}
	w.queue = append(w.queue, d)
}

// drive delivers events and moves pods until nothing changes any more.
func (w *world) drive() {
	w.t.Helper()
	for {
		w.step()
		if w.until != nil && w.until() {
			return
		}
		if len(w.removed) > 0 {
			w.collect()
			continue
		}
		events := w.waiting() > 0
		if (!events || !w.faults.patient()) && w.movePods() {
			continue
		}
		if !events {
			return
		}
		d := w.take()
		for range w.faults.copies() {
			w.deliver(d)
		}
	}
}

func (w *world) step() {
	if w.steps++; w.steps > restless {
		w.fatal("it does not come to rest within %d steps", restless)
	}
	if w.t.Context().Err() != nil {
		panic(failed{})
	}
}

// waiting is how many events can be delivered. Those come first in the queue.
func (w *world) waiting() int {
	sort.SliceStable(w.queue, func(i, j int) bool { return w.queue[i].to != w.down && w.queue[j].to == w.down })
	n := 0
	for _, d := range w.queue {
		if d.to != w.down {
			n++
		}
	}
	return n
}

func (w *world) take() delivery {
	i := w.faults.pick(w.waiting())
	d := w.queue[i]
	w.queue = append(w.queue[:i:i], w.queue[i+1:]...)
	return d
}

// deliver brings an event to a function, and brings it again if that fails: at once, or after all others.
func (w *world) deliver(d delivery) {
	answer := w.call(d, w.event(d), "")
	switch {
	case answer == 0:
		w.enqueue(d) // the Broker gave up waiting
	case answer < 300 || answer == http.StatusUnprocessableEntity:
	case w.cutAt == after && w.writes%2 == 0:
		w.enqueue(d)
	default:
		w.queue = append([]delivery{d}, w.queue...)
	}
}

func (w *world) event(d delivery) cloudevents.Event {
	return must(event.New(d.kind, "abuse", fmt.Sprintf("%s/%d", w.namespace, w.steps), d.about, nil))
}

// call runs a function that keeps nothing of what it did before, and returns its HTTP answer, or 0 if it was stalled.
func (w *world) call(d delivery, e cloudevents.Event, token string) int {
	c := &call{w: w, who: d.to}
	request := must(cehttp.NewHTTPRequestFromEvent(context.WithoutCancel(w.t.Context()), "http://"+d.to, e))
	if request.Body == nil {
		request.Body = http.NoBody
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	handler := transport.Handler(slog.New(slog.NewTextHandler(w, plain)), w.function(c))
	w.trace("%s", d)
	w.current = d
	s := &stalled{reached: make(chan struct{}), goOn: make(chan struct{}), done: make(chan int, 1), what: d}
	before := w.stalled
	if before == nil {
		w.stalled = s
	}
	go func() {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		s.done <- answer.Code
	}()
	select {
	case answer := <-s.done:
		w.stalled = before
		w.trace("  answers %d", answer)
		return answer
	case <-s.reached:
		w.trace("  stalled")
		return 0
	}
}

// stall holds a function back until resume.
func (w *world) stall() {
	s := w.stalled
	w.heldBack = true
	close(s.reached)
	<-s.goOn
}

// resume lets a function that was stalled go on, to its end.
func (w *world) resume() {
	s := w.stalled
	if s == nil {
		return
	}
	w.stalled = nil
	w.trace("resumed: %s", s.what)
	close(s.goOn)
	answer := <-s.done
	w.trace("  answers %d", answer)
	if answer >= 300 && answer != http.StatusUnprocessableEntity && s.what.kind != "" && !s.what.reports() {
		w.enqueue(s.what)
	}
}

// function makes a function of its parts, as cmd/ does, with the rights of its ServiceAccount.
func (w *world) function(c *call) transport.Handle {
	base := rest.CopyConfig(w.plane.Config)
	base.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + system + ":" + c.who,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + system, "system:authenticated"},
	}
	config := c.config(base)
	clients := must(record.NewClients(config))
	log := slog.New(slog.NewTextHandler(w, plain))
	alarms := &record.Alarms{Client: clients.Dynamic, BrokerNamespace: system, BrokerName: "updraft"}
	switch c.who {
	case stack.Name:
		return (&stack.Function{Clients: clients, Alarms: alarms, Broker: c, Now: w.clock, Log: log}).Handle
	case update.Name:
		settings := run.Settings{AgentImage: "updraft.dev/agent", ReportURL: "http://updraft-status"}
		return (&update.Function{Clients: clients, Alarms: alarms, Settings: settings, Now: w.clock, Log: log}).Handle
	case status.Name:
		tokens := must(authenticationv1client.NewForConfig(config))
		return (&status.Function{Clients: clients, Tokens: tokens, Broker: c, Now: w.clock, Log: log}).Handle
	default:
		return (&sweep.Function{Clients: clients, Broker: c, Now: w.clock, Log: log}).Handle
	}
}

// plain leaves out what is the same in each line.
var plain = &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == "namespace" {
		return slog.Attr{}
	}
	return a
}}

// sweepUp runs the sweep, again if it is cut off, and what it asks for.
func (w *world) sweepUp() {
	about := event.Ref{Kind: event.KindSweep, Namespace: system, Name: "sweep"}
	for answer := http.StatusServiceUnavailable; answer >= 300; {
		w.step()
		answer = w.call(delivery{to: sweep.Name, kind: event.TypeDue, about: about}, event.NewDue("abuse", "sweep", about), "")
	}
	w.drive()
}
