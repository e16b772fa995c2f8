package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/client/clientset/versioned"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/pkg/stack"
	"github.com/updraft-dev/updraft/test/invariants"
	"github.com/updraft-dev/updraft/test/leak"
)

// observer sees every version of every Stack and Update, and every Kubernetes
// Event, and checks what must hold at all times.
type observer struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	seen     map[string]bool // versions that were seen, since a watch may begin again
	stacks   map[types.UID]*pulumiv1.Stack
	updates  map[types.UID]*autov1alpha1.Update
	lives    map[string]*life // of Updates, by namespace/name and UID
	gone     map[types.UID]uint64
	reasons  map[string]bool // that a condition had, by the runbook's page
	folds    []fold
	problems []string
	ends     []string // streams that ended, which makes the observer blind
}

// life is what is known of an Update, also when it is gone.
type life struct {
	last      *autov1alpha1.Update
	settledAt uint64
}

// fold is what a Stack said that ran.
type fold struct {
	stack *pulumiv1.Stack
	last  pulumiv1.StackUpdateState
}

func newObserver() *observer {
	return &observer{
		seen: map[string]bool{}, stacks: map[types.UID]*pulumiv1.Stack{}, updates: map[types.UID]*autov1alpha1.Update{},
		lives: map[string]*life{}, gone: map[types.UID]uint64{}, reasons: map[string]bool{},
	}
}

// start watches from the first object on, as long as the API server is there.
func (o *observer) start(config *rest.Config) error {
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	stacks, updates := client.PulumiV1().Stacks(""), client.AutoV1alpha1().Updates("")
	o.done.Go(func() { o.follow(ctx, "Stacks", stacks.Watch) })
	o.done.Go(func() { o.follow(ctx, "Updates", updates.Watch) })
	o.done.Go(func() { o.follow(ctx, "Events", core.CoreV1().Events("").Watch) })
	return nil
}

func (o *observer) stop() {
	o.cancel()
	o.done.Wait()
}

type opener func(context.Context, metav1.ListOptions) (watch.Interface, error)

// follow watches, and goes on from the last version when a stream ends, so that
// it misses none.
func (o *observer) follow(ctx context.Context, what string, open opener) {
	version := ""
	for ctx.Err() == nil {
		w, err := open(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			if ctx.Err() == nil {
				o.blind(fmt.Sprintf("the watch of %s ended: %v", what, err))
			}
			return
		}
		for e := range w.ResultChan() {
			object, ok := e.Object.(metav1.Object)
			if !ok && ctx.Err() != nil {
				break
			}
			if !ok {
				o.blind(fmt.Sprintf("the watch of %s ended: %v", what, apierrors.FromObject(e.Object)))
				w.Stop()
				return
			}
			version = object.GetResourceVersion()
			o.see(e.Type, e.Object)
		}
	}
}

func (o *observer) blind(why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ends = append(o.ends, why)
}

func (o *observer) see(kind watch.EventType, object runtime.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if kind == watch.Bookmark {
		return
	}
	version := string(kind) + "/" + object.(metav1.Object).GetResourceVersion()
	if o.seen[version] {
		return
	}
	o.seen[version] = true
	switch object := object.(type) {
	case *pulumiv1.Stack:
		o.seeStack(kind, object)
	case *autov1alpha1.Update:
		o.seeUpdate(kind, object)
	case *corev1.Event:
		if err := leak.InText("it", object.Message, secretValues...); err != nil {
			o.problem("Event", object, err.Error())
		}
	}
}

func (o *observer) seeStack(kind watch.EventType, s *pulumiv1.Stack) {
	if kind == watch.Deleted {
		o.gone[s.UID] = number(s.ResourceVersion)
	}
	for _, problem := range invariants.Stack(s) {
		o.problem("Stack", s, problem)
	}
	o.seeReasons("stack", s.Status.Conditions)
	text, _ := json.Marshal(s.Status)
	if err := leak.InText("the status", string(text), secretValues...); err != nil {
		o.problem("Stack", s, err.Error())
	}
	if last := s.Status.LastUpdate; last != nil && !sameLast(o.stacks[s.UID], last) {
		o.folds = append(o.folds, fold{stack: s, last: *last})
	}
	o.stacks[s.UID] = s
}

func (o *observer) seeReasons(kind string, conditions []metav1.Condition) {
	for _, c := range conditions {
		o.reasons[kind+"-"+c.Reason+".md"] = true
	}
}

func sameLast(before *pulumiv1.Stack, last *pulumiv1.StackUpdateState) bool {
	return before != nil && before.Status.LastUpdate != nil && before.Status.LastUpdate.Name == last.Name
}

func (o *observer) seeUpdate(kind watch.EventType, u *autov1alpha1.Update) {
	key := u.Namespace + "/" + u.Name + "/" + string(u.UID)
	if o.lives[key] == nil {
		o.lives[key] = &life{}
	}
	before := o.lives[key].last
	o.lives[key].last = u
	for _, problem := range invariants.Update(before, u) {
		o.problem("Update", u, problem)
	}
	o.seeReasons("update", u.Status.Conditions)
	if u.Settled() && o.lives[key].settledAt == 0 {
		o.lives[key].settledAt = number(u.ResourceVersion)
	}
	if kind == watch.Deleted {
		o.gone[u.UID] = number(u.ResourceVersion)
		delete(o.updates, u.UID)
		return
	}
	o.updates[u.UID] = u
	if goesOn(u) && !goesOn(before) {
		o.checkAlone(u)
	}
}

// goesOn says whether an Update's run was taken and has not ended.
func goesOn(u *autov1alpha1.Update) bool {
	return u != nil && run.Taken(u) && u.Status.Run.Phase != autov1alpha1.RunEnded
}

// checkAlone is invariant 1: at most one run at a time in one Workspace.
func (o *observer) checkAlone(u *autov1alpha1.Update) {
	for _, other := range o.updates {
		if other.UID != u.UID && other.Namespace == u.Namespace && other.Spec.WorkspaceName == u.Spec.WorkspaceName && goesOn(other) {
			o.problem("Update", u, fmt.Sprintf("runs in Workspace %s while Update %s does", u.Spec.WorkspaceName, other.Name))
		}
	}
}

func (o *observer) problem(kind string, object metav1.Object, what string) {
	o.problems = append(o.problems, fmt.Sprintf("%s %s/%s at version %s: %s", kind, object.GetNamespace(), object.GetName(), object.GetResourceVersion(), what))
}

// verdict is what was found in the whole run.
func (o *observer) verdict() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for _, problem := range o.problems {
		errs = append(errs, errors.New(problem))
	}
	for _, end := range o.ends {
		errs = append(errs, errors.New(end))
	}
	for _, f := range o.folds {
		if problem := o.foldProblem(f); problem != "" {
			errs = append(errs, fmt.Errorf("Stack %s/%s at version %s: %s", f.stack.Namespace, f.stack.Name, f.stack.ResourceVersion, problem))
		}
	}
	return errors.Join(errs...)
}

// provoked says whether a condition had the reason of a page of the runbook.
func (o *observer) provoked(page string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reasons[page]
}

// foldProblem says why what a Stack says that ran is not what ran (invariant 2).
func (o *observer) foldProblem(f fold) string {
	for _, l := range o.lives {
		if l.last.Namespace == f.stack.Namespace && l.last.Name == f.last.Name && stack.MadeFor(l.last, f.stack.UID) {
			return invariants.Fold(&f.last, l.last)
		}
	}
	return fmt.Sprintf("lastUpdate names %s, which was not made for it", f.last.Name)
}

// update is the last version of an Update, also when it is gone.
func (o *observer) update(namespace, name string) *autov1alpha1.Update {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found *autov1alpha1.Update
	for _, l := range o.lives {
		if l.last.Namespace == namespace && l.last.Name == name {
			found = l.last
		}
	}
	return found
}

// settledBefore says whether an Update was settled before another object was
// gone.
func (o *observer) settledBefore(u *autov1alpha1.Update, other types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lives[u.Namespace+"/"+u.Name+"/"+string(u.UID)]
	return l != nil && l.settledAt > 0 && o.gone[other] > l.settledAt
}

// allUpdates are the last versions of the Updates of a namespace, those that are
// gone too.
func (o *observer) allUpdates(namespace string) []*autov1alpha1.Update {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []*autov1alpha1.Update
	for _, l := range o.lives {
		if l.last.Namespace == namespace {
			found = append(found, l.last)
		}
	}
	return found
}

// number makes a resourceVersion comparable, as the API server's own are.
func number(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

func same(a, b any) bool { return apiequality.Semantic.DeepEqual(a, b) }
