package abuse

import (
	"encoding/json"
	"net/http"
	"slices"
	"sort"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/updraft-dev/updraft/pkg/event"
)

// object is one as it was last seen.
type object = unstructured.Unstructured

var (
	stackResource     = schema.GroupVersionResource{Group: "pulumi.com", Version: "v1", Resource: "stacks"}
	programResource   = schema.GroupVersionResource{Group: "pulumi.com", Version: "v1", Resource: "programs"}
	workspaceResource = schema.GroupVersionResource{Group: "auto.pulumi.com", Version: "v1alpha1", Resource: "workspaces"}
	updateResource    = schema.GroupVersionResource{Group: "auto.pulumi.com", Version: "v1alpha1", Resource: "updates"}
	jobResource       = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	podResource       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// watched are the kinds that the source watches, in the order in which they are looked at.
var watched = []struct {
	kind     string
	resource schema.GroupVersionResource
}{
	{event.KindStack, stackResource},
	{event.KindProgram, programResource},
	{event.KindWorkspace, workspaceResource},
	{event.KindUpdate, updateResource},
	{event.KindJob, jobResource},
	{event.KindPod, podResource},
}

// others are the kinds that functions make too.
var others = []schema.GroupVersionResource{
	{Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "configmaps"},
	{Group: "sources.knative.dev", Version: "v1", Resource: "pingsources"},
}

func kindOf(resource string) string {
	for _, k := range watched {
		if k.resource.Resource == resource {
			return k.kind
		}
	}
	return ""
}

// wrote takes note of a write that was done, and of the events that it causes.
func (w *world) wrote(who string, t target, request, answer []byte) {
	kind := kindOf(t.resource)
	if t.method == http.MethodDelete && kind == "" {
		return
	}
	o := &object{}
	if err := json.Unmarshal(answer, &o.Object); err != nil {
		return
	}
	if kind == "" {
		w.expectOrphan(o)
		return
	}
	name := t.name
	if name == "" {
		name = o.GetName()
	}
	ref := event.Ref{Kind: kind, Namespace: t.namespace, Name: name}
	gone := o.GetKind() == "Status" || kind == event.KindPod && t.method == http.MethodDelete ||
		kind != event.KindPod && o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0
	if gone {
		o = nil
	}
	w.observe(who, ref, o)
}

// observe compares an object with what was last seen of it; nil is one that is gone.
func (w *world) observe(who string, ref event.Ref, o *object) {
	w.mu.Lock()
	old := w.seen[ref]
	if o == nil {
		delete(w.seen, ref)
	} else {
		w.seen[ref] = o
	}
	w.mu.Unlock()
	var kind string
	switch {
	case old == nil && o == nil:
		return
	case old == nil:
		kind = "add"
	case o == nil:
		kind = "delete"
	case old.GetUID() != o.GetUID():
		kind = "add"
	case old.GetResourceVersion() == o.GetResourceVersion():
		return
	default:
		kind = "update"
	}
	w.remove(ref.Kind, old, o)
	w.check(who, ref, old, o)
	w.follow(ref, old, o)
	w.wake(ref, event.PrefixAPIServer+kind)
}

// remove takes note of an object that went, or goes once what it owns has gone, if it is of a kind that owns any.
func (w *world) remove(kind string, old, o *object) {
	went := old != nil && (o == nil || o.GetUID() != old.GetUID()) || o != nil && slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents)
	if went && kind != event.KindPod && kind != event.KindProgram {
		w.removed[kind] = true
	}
	if old == nil {
		w.expectOrphan(o)
	}
}

// expectOrphan takes note of an object that was made too late: what owns it is gone, so that the garbage collector will come for it.
func (w *world) expectOrphan(o *object) {
	for _, ref := range o.GetOwnerReferences() {
		owner := w.saw(ref.Kind, ref.Name)
		if owner == nil || owner.GetUID() != ref.UID {
			w.removed[ref.Kind] = true
		}
	}
}

// list is all objects of a kind in the namespace.
func (w *world) list(resource schema.GroupVersionResource) []object {
	list, err := w.dynamic.Resource(resource).Namespace(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	w.ok(err)
	return list.Items
}

// collect waits until the garbage collector has nothing to do in the namespace, and takes note of what it did.
func (w *world) collect() {
	deadline := time.Now().Add(time.Minute)
	for {
		kinds := w.removed
		w.removed = map[string]bool{}
		waits := uncollected(w.look(len(kinds) == 1 && kinds[event.KindJob]))
		if waits == "" {
			return
		}
		if time.Now().After(deadline) {
			w.fatal("the garbage collector leaves %s", waits)
		}
		for kind := range kinds {
			w.removed[kind] = true
		}
		time.Sleep(5 * time.Millisecond) // the collector's turn
	}
}

// refresh looks at all objects, and takes note of what the garbage collector did.
func (w *world) refresh() []object { return w.look(false) }

// look looks at all objects, or only at Jobs and what they own.
func (w *world) look(jobs bool) []object {
	var all []object
	for _, k := range watched {
		if jobs && k.kind != event.KindJob && k.kind != event.KindPod {
			continue
		}
		found := map[string]bool{}
		for _, o := range w.list(k.resource) {
			if jobs && k.kind == event.KindJob {
				o.SetOwnerReferences(nil) // who are not looked at
			}
			all = append(all, o)
			found[o.GetName()] = true
			w.observe("", event.Ref{Kind: k.kind, Namespace: w.namespace, Name: o.GetName()}, &o)
		}
		for _, ref := range w.refs(k.kind) {
			if !found[ref.Name] {
				w.observe("", ref, nil)
			}
		}
	}
	if jobs {
		return all
	}
	for _, resource := range others {
		all = append(all, w.list(resource)...)
	}
	return all
}

func (w *world) refs(kind string) []event.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	var refs []event.Ref
	for ref := range w.seen {
		if ref.Kind == kind {
			refs = append(refs, ref)
		}
	}
	sort.Slice(refs, func(i, j int) bool { return refs[i].Name < refs[j].Name })
	return refs
}

// uncollected names an object that the garbage collector will delete or change, "" if there is none.
func uncollected(all []object) string {
	there := map[types.UID]bool{}
	for i := range all {
		there[all[i].GetUID()] = true
	}
	for i := range all {
		o := &all[i]
		if slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			return o.GetKind() + " " + o.GetName()
		}
		if o.GetDeletionTimestamp() != nil {
			if seconds := o.GetDeletionGracePeriodSeconds(); o.GetKind() == event.KindPod && seconds != nil && *seconds == 0 {
				return "the object of Pod " + o.GetName() // it is about to go
			}
			continue
		}
		for _, owner := range o.GetOwnerReferences() {
			if !there[owner.UID] {
				return o.GetKind() + " " + o.GetName()
			}
		}
	}
	return ""
}

// ring moves the clock to the next alarm and lets it ring; false if there is none.
func (w *world) ring() bool {
	var next *object
	var due time.Time
	alarms := w.list(others[2])
	for i := range alarms {
		at, err := time.Parse(time.RFC3339Nano, alarms[i].GetAnnotations()["updraft.dev/due"])
		w.ok(err)
		if next == nil || at.Before(due) {
			next, due = &alarms[i], at
		}
	}
	if next == nil {
		return false
	}
	w.mu.Lock()
	if rings := due.Add(2 * time.Second); rings.After(w.now) {
		w.now = rings
	}
	w.mu.Unlock()
	extensions, _, err := unstructured.NestedStringMap(next.Object, "spec", "ceOverrides", "extensions")
	w.ok(err)
	w.trace("rings: %s", next.GetName())
	w.wake(event.Ref{Kind: extensions["kind"], Namespace: extensions["namespace"], Name: extensions["name"]}, event.TypePing)
	w.drive()
	return true
}

func nested(o *object, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}
