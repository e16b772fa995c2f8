package abuse

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/updraft-dev/updraft/pkg/event"
)

// snapshot is a prepared world, from which the abused runs of a scenario begin: to make it anew takes longer than what is tested.
type snapshot struct {
	namespace string
	objects   []object
	pods      []pod
	queue     []delivery
	now       time.Time
	reports   int
	hold      string
	down      string
}

// order is that in which objects are made: owners first.
var order = []string{event.KindProgram, event.KindStack, event.KindWorkspace, event.KindUpdate, "Secret", "ConfigMap", "PingSource", event.KindJob}

func (w *world) snapshot() *snapshot {
	s := &snapshot{namespace: w.namespace, now: w.now, reports: w.reports, hold: w.hold, down: w.down, queue: w.queue}
	for _, o := range w.refresh() {
		if o.GetName() != "kube-root-ca.crt" && o.GetKind() != event.KindPod {
			s.objects = append(s.objects, o)
		}
	}
	rank := func(o *object) int {
		for i, kind := range order {
			if kind == o.GetKind() {
				return i
			}
		}
		return len(order)
	}
	sort.SliceStable(s.objects, func(i, j int) bool { return rank(&s.objects[i]) < rank(&s.objects[j]) })
	for _, p := range w.pods {
		if !p.gone {
			s.pods = append(s.pods, *p)
		}
	}
	return s
}

// restore makes the world of a snapshot in another namespace.
func (w *world) restore(s *snapshot) {
	ids := []string{s.namespace, w.namespace}
	for i := range s.objects {
		ids = append(ids, w.create(&s.objects[i], ids)...)
	}
	for i := range s.pods {
		p := w.makePod(w.jobOf(s.pods[i].update))
		ids = append(ids, string(s.pods[i].uid), string(p.uid))
		p.step, p.tries, p.said, p.code = s.pods[i].step, s.pods[i].tries, s.pods[i].said, s.pods[i].code
		if p.said != nil {
			said := *p.said
			said.UID, p.said = string(p.updateUID), &said
		}
		if p.step != stepTaken && p.step != stepExited {
			w.truth.begins(w, p)
		}
	}
	for i := range s.objects {
		if resource, ok := resourceOf(s.objects[i].GetKind()); ok && s.objects[i].GetKind() != event.KindJob {
			w.restoreStatus(&s.objects[i], resource, ids)
		}
	}
	w.now, w.reports, w.hold, w.down, w.removed = s.now, s.reports, s.hold, s.down, map[string]bool{}
	w.queue = nil
	for _, d := range s.queue {
		if d.about.Namespace == s.namespace {
			d.about.Namespace = w.namespace
		}
		w.queue = append(w.queue, d)
	}
}

func (w *world) jobOf(update string) *job {
	for _, j := range w.jobs {
		if j.object.GetName() == update && !j.gone {
			return j
		}
	}
	w.fatal("no Job of Update %s", update)
	return nil
}

func resourceOf(kind string) (schema.GroupVersionResource, bool) {
	for _, k := range watched {
		if k.kind == kind {
			return k.resource, true
		}
	}
	switch kind {
	case "Secret":
		return others[0], false
	case "ConfigMap":
		return others[1], false
	default:
		return others[2], false
	}
}

// create makes an object anew, and returns what its names change to: its UID, and the name of a Secret of inline values, which
// depends on one.
func (w *world) create(from *object, ids []string) []string {
	o := changed(from, ids)
	uid, name := string(from.GetUID()), from.GetName()
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	delete(o.Object, "status")
	if o.GetKind() == event.KindJob {
		unstructured.RemoveNestedField(o.Object, "spec", "selector")
		for _, label := range []string{"batch.kubernetes.io/controller-uid", "controller-uid", "batch.kubernetes.io/job-name", "job-name"} {
			unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "labels", label)
			unstructured.RemoveNestedField(o.Object, "metadata", "labels", label)
		}
	}
	resource, _ := resourceOf(o.GetKind())
	made, err := w.dynamic.Resource(resource).Namespace(w.namespace).Create(w.t.Context(), o, metav1.CreateOptions{})
	w.ok(err)
	added := []string{uid, string(made.GetUID())}
	if o.GetKind() == event.KindStack {
		secrets, _, _ := unstructured.NestedStringMap(o.Object, "spec", "secrets")
		if len(secrets) > 0 {
			added = append(added, inlineName(name, secrets, from.GetUID()), inlineName(name, secrets, made.GetUID()))
		}
	}
	return added
}

// inlineName is the name of the Secret of inline values that pkg/stack gives it.
func inlineName(stack string, secrets map[string]string, uid types.UID) string {
	data := map[string][]byte{}
	for key, value := range secrets {
		data["config-"+hash([]byte(key))] = []byte(value)
	}
	return stack + "-inline-" + hash(append(must(json.Marshal(data)), uid...))
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:5])
}

func (w *world) restoreStatus(from *object, resource schema.GroupVersionResource, ids []string) {
	status, ok := changed(from, ids).Object["status"]
	if !ok {
		return
	}
	client := w.dynamic.Resource(resource).Namespace(w.namespace)
	o := w.saw(from.GetKind(), from.GetName()).DeepCopy()
	o.Object["status"] = status
	_, err := client.UpdateStatus(w.t.Context(), o, metav1.UpdateOptions{})
	w.ok(err)
}

func changed(from *object, ids []string) *object {
	o := &object{}
	text := strings.NewReplacer(ids...).Replace(string(must(from.MarshalJSON())))
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return o
}
