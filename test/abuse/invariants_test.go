//go:build abuse

package abuse

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/updraft-dev/updraft/pkg/event"
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
	destroyed map[string]bool
}

func newTruth() truth {
	return truth{runs: map[*pod]string{}, taken: map[types.UID]bool{}, destroyed: map[string]bool{}}
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
		t.destroyed[u.GetAnnotations()["updraft.dev/stack-uid"]] = true
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
	case http.MethodPut:
		if version, _, _ := unstructured.NestedString(object, "metadata", "resourceVersion"); version == "" {
			w.broken("%s: %s carries no resourceVersion", who, t)
		}
	case http.MethodPatch:
		w.broken("%s: %s does not compare what it swaps", who, t)
	case http.MethodPost:
		w.checkLaunch(who, t, object)
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

// checkLaunch: an Update that was taken is never launched again. One that was held back before its Job was made knows no better; its
// pod is refused.
func (w *world) checkLaunch(who string, t target, object map[string]any) {
	if t.resource != "jobs" || w.heldBack {
		return
	}
	o := &unstructured.Unstructured{Object: object}
	for _, owner := range o.GetOwnerReferences() {
		if w.truth.taken[owner.UID] {
			w.broken("%s launches Update %s again, which was taken", who, owner.Name)
		}
	}
}

func (w *world) checkEvent(who string, e cloudevents.Event) {
	w.checkSecret(who+": event "+e.Type(), must(json.Marshal(e)))
}

// check holds what must be true of each change of an object.
func (w *world) check(who string, ref event.Ref, old, o *object) {
	switch ref.Kind {
	case event.KindStack:
		w.checkStack(who, old, o)
	case event.KindUpdate:
		w.checkUpdate(who, old, o)
	}
}

func (w *world) checkStack(who string, old, o *object) {
	if old != nil && (o == nil || o.GetUID() != old.GetUID()) {
		destroys, _, _ := unstructured.NestedBool(old.Object, "spec", "destroyOnFinalize")
		if destroys && !w.truth.destroyed[string(old.GetUID())] && old.GetAnnotations()["updraft.dev/let-go"] != "true" {
			w.broken("Stack %s is gone, and no destroy of it has succeeded", old.GetName())
		}
	}
	if o == nil {
		return
	}
	if strings.HasPrefix(who, "updraft-") {
		w.checkConditions(o)
	}
	if old == nil || old.GetUID() != o.GetUID() || !strings.HasPrefix(who, "updraft-") {
		return
	}
	w.checkFold(old, o)
}

func (w *world) checkConditions(o *object) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	if len(conditions) == 0 {
		return
	}
	trues := 0
	for _, c := range conditions {
		if c := c.(map[string]any); c["status"] == "True" && (c["type"] == "Ready" || c["type"] == "Reconciling" || c["type"] == "Stalled") {
			trues++
		}
	}
	if trues != 1 {
		w.broken("Stack %s has %d of Ready, Reconciling and Stalled True: %v", o.GetName(), trues, conditions)
	}
}

// checkFold: what an Update came to and the end of its claim are one write.
func (w *world) checkFold(old, o *object) {
	claim, now := nested(old, "status", "currentUpdate", "name"), nested(o, "status", "currentUpdate", "name")
	was, last := nested(old, "status", "lastUpdate", "name"), nested(o, "status", "lastUpdate", "name")
	if was != last && (last != claim || now != "") {
		w.broken("Stack %s: lastUpdate went from %q to %q while the claim went from %q to %q", o.GetName(), was, last, claim, now)
	}
	if claim == "" || claim == now || was != last {
		return
	}
	u := w.saw(event.KindUpdate, claim)
	if u == nil || u.GetAnnotations()["updraft.dev/stack-uid"] != string(o.GetUID()) {
		return // withdrawn
	}
	if state := nested(u, "status", "result", "state"); state != "notrun" {
		w.broken("Stack %s dropped its claim of Update %s (%s) without a fold", o.GetName(), claim, state)
	}
}

// checkUpdate: Complete is final, and at most one Update of a Workspace is taken and not ended.
func (w *world) checkUpdate(who string, old, o *object) {
	if o == nil {
		return
	}
	if old != nil && old.GetUID() == o.GetUID() && complete(old) {
		if !complete(o) || nested(old, "status", "result", "state") != nested(o, "status", "result", "state") {
			w.broken("%s changed Update %s, which was Complete", who, o.GetName())
		}
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

func complete(u *object) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "Complete" && c["status"] == "True" {
			return true
		}
	}
	return false
}

func goesOn(u *object) bool {
	return nested(u, "status", "run", "podUID") != "" && nested(u, "status", "run", "phase") != "Ended"
}
