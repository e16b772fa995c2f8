package abuse

import (
	"encoding/json"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/updraft-dev/updraft/functions/status"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

// Steps of a pod, in order; hold keeps pods from one on.
const (
	stepTaken    = "taken"
	stepRunning  = "running"
	stepFinished = "finished"
	stepExit     = "exit"
	stepExited   = "exited"
)

// node is where pods are, unless a scenario has one of its own.
const node = "abuse"

// job is one that has a pod, or will have.
type job struct {
	object *object
	pods   int
	gone   bool
}

// pod is a pod of a Job with the agent in it, as far as it is seen from outside.
type pod struct {
	name      string
	uid       types.UID
	update    string
	updateUID types.UID
	token     string

	step     string
	tries    int
	deleting bool
	gone     bool
	lost     bool // its node no longer answers
	said     *event.Finished
	code     int
}

// follow keeps jobs and pods in step with their objects.
func (w *world) follow(ref event.Ref, old, o *object) {
	switch ref.Kind {
	case event.KindJob:
		if old != nil && (o == nil || o.GetUID() != old.GetUID() || o.GetDeletionTimestamp() != nil) {
			for _, j := range w.jobs {
				j.gone = j.gone || j.object.GetUID() == old.GetUID()
			}
		}
		if o != nil && (old == nil || o.GetUID() != old.GetUID()) {
			w.jobs = append(w.jobs, &job{object: o})
		}
	case event.KindPod:
		for _, p := range w.pods {
			if p.name == ref.Name && o == nil {
				p.gone = true
				w.truth.ends(p)
			}
			if o != nil && p.uid == o.GetUID() && o.GetDeletionTimestamp() != nil {
				p.deleting = true
			}
		}
	}
}

// movePods lets one pod do its next step; false if none can.
func (w *world) movePods() bool {
	var moves []func()
	for _, j := range w.jobs {
		if !j.gone && j.pods == 0 {
			moves = append(moves, func() { w.makePod(j) })
		}
	}
	for _, p := range w.pods {
		if w.moves(p) {
			moves = append(moves, func() { w.movePod(p) })
		}
	}
	if len(moves) == 0 {
		return false
	}
	moves[w.faults.pick(len(moves))]()
	return true
}

func (w *world) moves(p *pod) bool {
	switch {
	case p.gone || p.lost:
		return false
	case p.step == stepExited || p.deleting:
		return p.deleting
	default:
		return p.step != w.hold
	}
}

// makePod does what the Job controller does.
func (w *world) makePod(j *job) *pod {
	var of batchv1.Job
	w.ok(runtime.DefaultUnstructuredConverter.FromUnstructured(j.object.Object, &of))
	yes := true
	letter := string(rune('a' + j.pods))
	j.pods++
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: of.Name + "-" + letter + "bcde", Namespace: w.namespace, Labels: of.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: of.Name, UID: of.UID, Controller: &yes}},
		},
		Spec: of.Spec.Template.Spec,
	}
	object.Spec.NodeName = w.node
	made, err := w.core.CoreV1().Pods(w.namespace).Create(w.t.Context(), object, metav1.CreateOptions{})
	w.ok(err)
	p := &pod{name: made.Name, uid: made.UID, update: of.Name, updateUID: of.OwnerReferences[0].UID, step: stepTaken, token: w.token(made)}
	w.pods = append(w.pods, p)
	w.trace("pod %s", p.name)
	return p
}

func (w *world) token(of *corev1.Pod) string {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:      []string{run.TokenAudience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: of.Name, UID: of.UID},
	}}
	answer, err := w.core.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.t.Context(), of.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	w.ok(err)
	return answer.Status.Token
}

// movePod does what the agent and the kubelet do next.
func (w *world) movePod(p *pod) {
	switch p.step {
	case stepTaken:
		w.takeRun(p)
	case stepRunning:
		p.tries++
		answer := w.report(p, event.TypeRunRunning, event.Running{UID: string(p.updateUID), Host: p.name, Pid: 7})
		if accepted(answer) || refused(answer) || p.deleting || p.tries > 5 {
			p.step = stepFinished
		}
	case stepFinished:
		w.finish(p)
	case stepExit:
		w.exit(p)
	case stepExited:
		w.removePod(p)
	}
}

func accepted(answer int) bool { return answer >= 200 && answer < 300 }

// refused says whether the agent takes the answer for a final one.
func refused(answer int) bool {
	return answer == http.StatusConflict || answer == http.StatusBadRequest || answer == http.StatusUnprocessableEntity
}

func (w *world) takeRun(p *pod) {
	answer := w.report(p, event.TypeRunTaken, event.Taken{UID: string(p.updateUID)})
	switch {
	case accepted(answer):
		w.truth.begins(w, p)
		p.step = stepRunning
	case refused(answer):
		p.step = stepExit
	case p.deleting:
		p.said, p.code = &event.Finished{State: "canceled", Reason: "Canceled", Message: "Stopped before the run was taken"}, 1
		p.step = stepExit
	}
}

func (w *world) finish(p *pod) {
	if p.said == nil {
		said := event.Finished{State: "canceled", Reason: "Canceled", Message: "Stopped on request"}
		if !p.deleting {
			said = w.outcome(w.updateType(p.update), w.reports)
			w.reports++
		}
		said.UID, p.said = string(p.updateUID), &said
		if said.State != "succeeded" {
			p.code = 1
		}
	}
	answer := w.report(p, event.TypeRunFinished, *p.said)
	if accepted(answer) || refused(answer) {
		w.truth.finished(w, p, answer)
		p.step = stepExit
	}
}

func (w *world) updateType(name string) string {
	u := w.saw(event.KindUpdate, name)
	if u == nil {
		return ""
	}
	return nested(u, "spec", "type")
}

func (w *world) saw(kind, name string) *object {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[event.Ref{Kind: kind, Namespace: w.namespace, Name: name}]
}

// exit is the end of the container, as the kubelet tells it.
func (w *world) exit(p *pod) {
	p.step = stepExited
	w.truth.ends(p)
	pods := w.core.CoreV1().Pods(w.namespace)
	object, err := pods.Get(w.t.Context(), p.name, metav1.GetOptions{})
	w.ok(err)
	end := &corev1.ContainerStateTerminated{ExitCode: int32(p.code)}
	if p.said != nil {
		end.Message = string(must(json.Marshal(event.Termination{State: p.said.State, Reason: p.said.Reason, Message: p.said.Message})))
	}
	object.Status.Phase = corev1.PodSucceeded
	if p.code != 0 {
		object.Status.Phase = corev1.PodFailed
	}
	object.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: run.Container, State: corev1.ContainerState{Terminated: end}}}
	_, err = pods.UpdateStatus(w.t.Context(), object, metav1.UpdateOptions{})
	w.ok(err)
}

// removePod deletes the object of a pod whose containers have ended.
func (w *world) removePod(p *pod) {
	zero := int64(0)
	w.ok(w.core.CoreV1().Pods(w.namespace).Delete(w.t.Context(), p.name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &p.uid},
	}))
}

// report posts what a pod says to the status function, as often as the network likes. The answer is the last one, 0 if there was
// none.
func (w *world) report(p *pod, kind string, data any) int {
	return w.reportAbout(p, p.update, kind, data)
}

func (w *world) reportAbout(p *pod, update, kind string, data any) int {
	about := event.Ref{Kind: event.KindUpdate, Namespace: w.namespace, Name: update}
	answer := 0
	for range w.faults.copies() {
		e := must(event.New(kind, "agent", string(p.updateUID)+"/"+kind, about, data))
		answer = w.call(delivery{to: status.Name, about: about, kind: kind}, e, p.token)
	}
	return answer
}

// kill is a node's end of a pod without a word, and the deletion of the object by force.
func (w *world) kill(p *pod) {
	p.lost = true
	w.truth.ends(p)
	w.removePod(p)
}
