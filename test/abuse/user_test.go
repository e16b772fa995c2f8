package abuse

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
)

// succeeds is a run's outcome: a success, with outputs.
func succeeds(kind string, _ int) event.Finished {
	f := event.Finished{State: "succeeded", Changes: map[string]int64{"create": 2}, Project: "web", Runtime: "yaml", PulumiVersion: "3.200.0", Permalink: "https://example.com/1"}
	if kind == "up" {
		f.Outputs = map[string]event.Output{
			"url":   {Value: json.RawMessage(`"https://example.com"`)},
			"token": {Value: json.RawMessage(`"` + secretOutput + `"`), Secret: true},
		}
	}
	return f
}

// fails is a run's outcome: a failure for as often as it says, then a success.
func fails(times int) func(string, int) event.Finished {
	return func(kind string, attempt int) event.Finished {
		if attempt < times {
			return event.Finished{State: "failed", Reason: "UpdateFailed", Message: "error: no such thing", Project: "web", Runtime: "yaml"}
		}
		return succeeds(kind, attempt)
	}
}

func (w *world) program(name, url string) {
	programs := w.pulumi.PulumiV1().Programs(w.namespace)
	body := pulumiv1.ProgramSpec{Outputs: map[string]apiextensionsv1.JSON{"url": {Raw: []byte(`"` + url + `"`)}}}
	existing, err := programs.Get(w.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		existing.Program = body
		_, err = programs.Update(w.t.Context(), existing, metav1.UpdateOptions{})
		w.ok(err)
		return
	}
	_, err = programs.Create(w.t.Context(), &pulumiv1.Program{ObjectMeta: metav1.ObjectMeta{Name: name}, Program: body}, metav1.CreateOptions{})
	w.ok(err)
}

func (w *world) stack(name string, edits ...func(*pulumiv1.Stack)) {
	s := &pulumiv1.Stack{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: pulumiv1.StackSpec{
			Stack: "dev", ProgramRef: &pulumiv1.ProgramReference{Name: "web"},
			Config:  map[string]apiextensionsv1.JSON{"size": {Raw: []byte(`"1"`)}},
			Secrets: map[string]string{"password": secretInput},
		},
	}
	for _, edit := range edits {
		edit(s)
	}
	_, err := w.pulumi.PulumiV1().Stacks(w.namespace).Create(w.t.Context(), s, metav1.CreateOptions{})
	w.ok(err)
}

// edit changes a Stack as a user does.
func (w *world) edit(name string, edits ...func(*pulumiv1.Stack)) {
	stacks := w.pulumi.PulumiV1().Stacks(w.namespace)
	s, err := stacks.Get(w.t.Context(), name, metav1.GetOptions{})
	w.ok(err)
	for _, edit := range edits {
		edit(s)
	}
	_, err = stacks.Update(w.t.Context(), s, metav1.UpdateOptions{})
	w.ok(err)
}

func size(value string) func(*pulumiv1.Stack) {
	return func(s *pulumiv1.Stack) { s.Spec.Config["size"] = apiextensionsv1.JSON{Raw: []byte(`"` + value + `"`)} }
}

func destroys(s *pulumiv1.Stack) { s.Spec.DestroyOnFinalize = true }

// ready is a world with a Stack that is up to date.
func ready(edits ...func(*pulumiv1.Stack)) func(w *world) {
	return func(w *world) {
		w.program("web", "1")
		w.stack("app", edits...)
		w.drive()
	}
}

func (w *world) deleteStack(name string, how metav1.DeletionPropagation) {
	w.ok(w.pulumi.PulumiV1().Stacks(w.namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &how}))
}

// midRun is a world with a Stack whose first run goes on.
func midRun(edits ...func(*pulumiv1.Stack)) func(w *world) {
	return func(w *world) {
		w.hold = stepFinished
		ready(edits...)(w)
	}
}

// release lets runs that are held go on. What was lost until then is found first: a run that ends before anybody has seen what
// happened meanwhile ends as it may.
func (w *world) release() {
	if _, lossy := w.faults.(*chaos); lossy && w.hold != "" {
		w.settleLost()
	}
	w.hold = ""
	w.drive()
}

// deletes is a deletion, and all that comes of it; first with the run that goes on held, if there is one.
func deletes(how metav1.DeletionPropagation) func(w *world) {
	return func(w *world) {
		w.deleteStack("app", how)
		w.drive()
		w.release()
	}
}

// madeAgain deletes a Stack, and makes it again as soon as it is gone.
func madeAgain(edits ...func(*pulumiv1.Stack)) func(w *world) {
	return func(w *world) {
		w.deleteStack("app", metav1.DeletePropagationBackground)
		w.until = func() bool { return w.saw(event.KindStack, "app") == nil }
		w.drive()
		if !w.until() {
			_, lossy := w.faults.(*chaos)
			if !lossy {
				w.fatal("the Stack does not go")
			}
			w.until = nil
			w.settleLost()
		}
		w.until = nil
		w.stack("app", edits...)
		w.drive()
	}
}

// again makes the Stack again if it is gone.
func (w *world) again(name string) bool {
	if w.saw(event.KindStack, name) != nil {
		return false
	}
	w.stack(name)
	w.drive()
	return true
}

// wipe takes a Stack's status away, as a restore from a backup does.
func (w *world) wipe(name string) {
	stacks := w.pulumi.PulumiV1().Stacks(w.namespace)
	s, err := stacks.Get(w.t.Context(), name, metav1.GetOptions{})
	w.ok(err)
	s.Status = pulumiv1.StackStatus{}
	_, err = stacks.UpdateStatus(w.t.Context(), s, metav1.UpdateOptions{})
	w.ok(err)
}

// editOld changes a Stack through the older version of its API.
func (w *world) editOld(name, size string) {
	stacks := w.dynamic.Resource(schema.GroupVersionResource{Group: "pulumi.com", Version: "v1alpha1", Resource: "stacks"}).Namespace(w.namespace)
	s, err := stacks.Get(w.t.Context(), name, metav1.GetOptions{})
	w.ok(err)
	w.ok(unstructured.SetNestedField(s.Object, size, "spec", "config", "size"))
	_, err = stacks.Update(w.t.Context(), s, metav1.UpdateOptions{})
	w.ok(err)
}

// update makes an Update by hand.
func (w *world) update(name, workspace string, kind autov1alpha1.UpdateType) {
	_, err := w.pulumi.AutoV1alpha1().Updates(w.namespace).Create(w.t.Context(), &autov1alpha1.Update{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       autov1alpha1.UpdateSpec{WorkspaceName: workspace, StackName: "dev", Type: kind},
	}, metav1.CreateOptions{})
	w.ok(err)
}

func (w *world) deleteUpdate(name string) {
	w.ok(w.pulumi.AutoV1alpha1().Updates(w.namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

func (w *world) deleteJob(name string) {
	w.ok(w.core.BatchV1().Jobs(w.namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(background)}))
}

// says posts a report until it has the answer that it must have.
func (w *world) says(p *pod, update, kind string, data any, must func(answer int) bool) {
	for range 10 {
		answer := w.reportAbout(p, update, kind, data)
		if must(answer) {
			return
		}
		if accepted(answer) || refused(answer) {
			break
		}
	}
	w.broken("the report %s of pod %s has another answer than it must have", kind, p.name)
}

// forger is a pod that looks as if it were of the run, with a token of its own.
func (w *world) forger() *pod {
	p := w.pods[0]
	made, err := w.core.CoreV1().Pods(w.namespace).Create(w.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.update + "-zzzzz", Labels: map[string]string{pulumiv1.LabelUpdate: p.update}},
		Spec:       corev1.PodSpec{ServiceAccountName: "default", NodeName: w.node, Containers: []corev1.Container{{Name: "pulumi", Image: "forger"}}},
	}, metav1.CreateOptions{})
	w.ok(err)
	return &pod{name: made.Name, uid: made.UID, update: p.update, updateUID: p.updateUID, token: w.token(made)}
}

// half ends the part of a scenario in which functions are held back.
func (w *world) half() {
	if w.halfWay == 0 {
		w.halfWay = w.writes
	}
}
