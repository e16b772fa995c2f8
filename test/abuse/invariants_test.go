package abuse

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	function "github.com/updraft-dev/updraft/functions/stack"
	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/stack"
	"github.com/updraft-dev/updraft/test/invariants"
	"github.com/updraft-dev/updraft/test/schemas"
)

// Secret values: one that the user wrote into the Stack, one that a run puts out.
const (
	secretInput  = "hunter2-in"
	secretOutput = "hunter2-out"
)

// truth is what the pods know, whatever the objects say.
type truth struct {
	// runs are those that go on, by pod.
	runs map[*pod]string
	// taken are Updates that a pod took.
	taken map[types.UID]bool
	// destroyed are the Stacks, by UID, of which a destroy succeeded.
	destroyed map[types.UID]bool
}

func newTruth() truth {
	return truth{runs: map[*pod]string{}, taken: map[types.UID]bool{}, destroyed: map[types.UID]bool{}}
}

// begins: at most one run at a time goes on in a Workspace, and an Update runs once.
func (t *truth) begins(w *world, p *pod) {
	u := w.saw(event.KindUpdate, p.update)
	if u == nil {
		w.broken("pod %s took Update %s, which is gone", p.name, p.update)
		return
	}
	if t.taken[u.GetUID()] && t.runs[p] == "" {
		w.broken("Update %s was taken a second time, by pod %s", p.update, p.name)
	}
	in := nested(u, "spec", "workspaceName")
	for other, workspace := range t.runs {
		if workspace == in && other != p {
			w.broken("pods %s and %s run at once in Workspace %s", other.name, p.name, in)
		}
	}
	t.taken[u.GetUID()] = true
	t.runs[p] = in
}

func (t *truth) finished(w *world, p *pod, answer int) {
	u := w.saw(event.KindUpdate, p.update)
	if accepted(answer) && u != nil && p.said.State == "succeeded" && nested(u, "spec", "type") == "destroy" {
		t.destroyed[types.UID(u.GetAnnotations()[pulumiv1.AnnotationStackUID])] = true
	}
}

func (t *truth) ends(p *pod) { delete(t.runs, p) }

// broken says that an invariant does not hold.
func (w *world) broken(format string, args ...any) {
	w.trace("!!! "+format, args...)
	w.t.Errorf(format, args...)
}

// checkRequest: deletes carry the UID, writes of what exists the resourceVersion, and no secret value goes into what is not a Secret.
func (w *world) checkRequest(who string, t target, body []byte) {
	var object map[string]any
	if len(body) > 0 && json.Unmarshal(body, &object) != nil {
		w.broken("%s: %s has a body that is not JSON", who, t)
		return
	}
	switch t.method {
	case http.MethodDelete:
		if uid, _, _ := unstructured.NestedString(object, "preconditions", "uid"); uid == "" {
			w.broken("%s: %s has no UID as its precondition", who, t)
		}
	case http.MethodPut, http.MethodPatch:
		if version, _, _ := unstructured.NestedString(object, "metadata", "resourceVersion"); version == "" {
			w.broken("%s: %s carries no resourceVersion", who, t)
		}
	case http.MethodPost:
		w.checkMade(who, t, &unstructured.Unstructured{Object: object})
	}
	if t.resource == "secrets" {
		return
	}
	if t.resource == "stacks" {
		delete(object, "spec") // the user wrote it there
		body = must(json.Marshal(object))
	}
	w.checkSecret(who+": "+t.String(), body)
}

func (w *world) checkSecret(where string, text []byte) {
	for _, secret := range []string{secretInput, secretOutput} {
		encoded := base64.StdEncoding.EncodeToString([]byte(secret))
		if bytes.Contains(text, []byte(secret)) || bytes.Contains(text, []byte(strings.TrimRight(encoded, "=")[:12])) {
			w.broken("%s tells the secret value %s", where, secret)
		}
	}
}

// checkMade: an Update that was taken is never launched again, and what a Stack that is being deleted still needs is not its own: a
// foreground deletion would delete it. A function that was held back before a write knows no better, and the write does no harm then.
func (w *world) checkMade(who string, t target, o *object) {
	if w.heldBack {
		return
	}
	for _, owner := range o.GetOwnerReferences() {
		if t.resource == "jobs" && w.truth.taken[owner.UID] {
			w.broken("%s launches Update %s again, which was taken", who, owner.Name)
		}
		if s := w.saw(owner.Kind, owner.Name); s != nil && owner.Kind == event.KindStack && s.GetDeletionTimestamp() != nil {
			w.broken("%s: %s is owned by Stack %s, which is being deleted", who, t, s.GetName())
		}
	}
}

// told are the schemas of what other systems are told.
var told = sync.OnceValue(func() schemas.Schemas { return must(schemas.Load("../..")) })

func (w *world) checkEvent(who string, e cloudevents.Event) {
	w.checkSecret(who+": event "+e.Type(), must(json.Marshal(e)))
	if err := told().Check(e); err != nil {
		w.broken("%s: %v", who, err)
	}
}

// check holds what must be true of each change of an object.
func (w *world) check(who string, ref event.Ref, old, o *object) {
	switch ref.Kind {
	case event.KindStack:
		w.checkStack(who, old, o)
	case event.KindWorkspace:
		w.checkWorkspace(who, old, o)
	case event.KindUpdate:
		w.checkUpdate(old, o)
	}
}

func (w *world) checkStack(who string, old, o *object) {
	before, s := as[pulumiv1.Stack](old), as[pulumiv1.Stack](o)
	if before != nil && (s == nil || s.UID != before.UID) {
		if before.Spec.DestroyOnFinalize && !w.truth.destroyed[before.UID] && before.Annotations[pulumiv1.AnnotationLetGo] != "true" {
			w.broken("Stack %s is gone, and no destroy of it has succeeded", before.Name)
		}
	}
	if s == nil {
		return
	}
	for _, problem := range invariants.Stack(s) {
		w.broken("Stack %s: %s", s.Name, problem)
	}
	if before != nil && before.UID == s.UID && who != "" { // the driver may restore it, or wipe it
		w.checkFold(before, s)
	}
}

// checkRest: in the end nothing is claimed, locked, unfinished or on its way out.
func (w *world) checkRest(all []object) {
	for p := range w.truth.runs {
		w.broken("in the end, pod %s still runs", p.name)
	}
	for i := range all {
		o := &all[i]
		name := o.GetKind() + " " + o.GetName()
		switch {
		case o.GetDeletionTimestamp() != nil:
			w.broken("in the end, %s is being deleted", name)
		case nested(o, "status", "currentUpdate", "name") != "":
			w.broken("in the end, %s claims an Update", name)
		case o.GetKind() == event.KindWorkspace && nested(o, "status", "run", "uid") != "":
			w.broken("in the end, %s is locked", name)
		case o.GetKind() == event.KindUpdate && (!complete(o) || len(o.GetFinalizers()) > 0):
			w.broken("in the end, %s is not Complete and let go of", name)
		case o.GetKind() == event.KindJob:
			w.broken("in the end, %s is there", name)
		}
	}
}

// checkFold: what an Update came to and the end of its claim are one write.
func (w *world) checkFold(before, s *pulumiv1.Stack) {
	claim, now := claimOf(before), claimOf(s)
	last, said := lastOf(before), lastOf(s)
	if last != said && (said != claim || now != "") {
		w.broken("Stack %s: lastUpdate went from %q to %q while the claim went from %q to %q", s.Name, last, said, claim, now)
	}
	if claim == "" || claim == now {
		return
	}
	u := as[autov1alpha1.Update](w.saw(event.KindUpdate, claim))
	switch {
	case u == nil || !stack.MadeFor(u, s.UID): // withdrawn
	case last != said:
		if problem := invariants.Fold(s.Status.LastUpdate, u); problem != "" {
			w.broken("Stack %s: %s", s.Name, problem)
		}
	case u.Status.Result == nil || u.Status.Result.State != autov1alpha1.ResultNotRun:
		w.broken("Stack %s dropped its claim of Update %s without a fold", s.Name, claim)
	}
}

func claimOf(s *pulumiv1.Stack) string {
	if s.Status.CurrentUpdate == nil {
		return ""
	}
	return s.Status.CurrentUpdate.Name
}

func lastOf(s *pulumiv1.Stack) string {
	if s.Status.LastUpdate == nil {
		return ""
	}
	return s.Status.LastUpdate.Name
}

// checkWorkspace: nobody takes the lock from a run that goes on, nor changes what an Update that is claimed is to run in.
func (w *world) checkWorkspace(who string, old, o *object) {
	if old == nil || o == nil || old.GetUID() != o.GetUID() {
		return
	}
	if holder := nested(old, "status", "run", "uid"); holder != "" && holder != nested(o, "status", "run", "uid") {
		for p := range w.truth.runs {
			if string(p.updateUID) == holder {
				w.broken("%s took the lock of Workspace %s from Update %s, whose pod still runs", who, o.GetName(), p.update)
			}
		}
	}
	s := as[pulumiv1.Stack](w.saw(event.KindStack, o.GetName()))
	if s == nil || claimOf(s) == "" || old.GetGeneration() == o.GetGeneration() || who != function.Name {
		return
	}
	if u := w.saw(event.KindUpdate, claimOf(s)); u != nil && stack.MadeFor(u, s.UID) {
		w.broken("%s rewrote Workspace %s while Update %s, which is claimed, is there", who, o.GetName(), u.GetName())
	}
}

// checkUpdate: Complete is final, and at most one Update of a Workspace is taken and not ended.
func (w *world) checkUpdate(old, o *object) {
	if o == nil {
		return
	}
	before, u := as[autov1alpha1.Update](old), as[autov1alpha1.Update](o)
	if before != nil && before.UID != u.UID {
		before = nil
	}
	for _, problem := range invariants.Update(before, u) {
		w.broken("Update %s: %s", u.Name, problem)
	}
	if !goesOn(o) {
		return
	}
	for _, ref := range w.refs(event.KindUpdate) {
		other := w.saw(ref.Kind, ref.Name)
		if other != nil && other.GetUID() != o.GetUID() && goesOn(other) && nested(other, "spec", "workspaceName") == nested(o, "spec", "workspaceName") {
			w.broken("Updates %s and %s are both taken and not ended", other.GetName(), o.GetName())
		}
	}
}

// as is an object in its own type; nil if there is none.
func as[T any](o *object) *T {
	if o == nil {
		return nil
	}
	typed := new(T)
	if err := json.Unmarshal(must(o.MarshalJSON()), typed); err != nil {
		panic(err)
	}
	return typed
}

// complete says whether an Update is Complete, nil being none.
func complete(o *object) bool {
	if o == nil {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == autov1alpha1.UpdateComplete && m["status"] == "True"
	})
}

func goesOn(u *object) bool {
	return nested(u, "status", "run", "podUID") != "" && nested(u, "status", "run", "phase") != "Ended"
}
