package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/record"
)

// What an admission policy refuses the update function, the user is told.
func TestANamespaceThatIsClosedToRunsSaysSo(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.kubectl("label", "namespace", s.namespace, "updraft.dev/runs=refused")
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets"))
	failed := s.awaitFailures("app", 1)
	if want := "Updraft runs nothing in namespace " + s.namespace; !strings.Contains(message(failed), want) {
		t.Errorf("it is told as %s, want %q", summary(failed), want)
	}
	if jobs := s.names("Job"); len(jobs) > 0 {
		t.Errorf("there are Jobs %v", jobs)
	}
	s.kubectl("label", "namespace", s.namespace, "updraft.dev/runs-")
	s.request("app", "opened")
	s.awaitReady("app")
}

// A spec has one writer. What Go's types would write another way, as a list that
// is empty, is no reason to write it.
func TestASpecIsNeverWrittenByAFunction(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.stackOf("app", "greets"))
	if err != nil {
		t.Fatal(err)
	}
	written := &unstructured.Unstructured{Object: object}
	written.SetGroupVersionKind(pulumiv1.SchemeGroupVersion.WithKind("Stack"))
	if err := unstructured.SetNestedSlice(object, []any{}, "spec", "prerequisites"); err != nil {
		t.Fatal(err)
	}
	stacks := s.dynamic.Resource(ourKinds["Stack"]).Namespace(s.namespace)
	if _, err := stacks.Create(t.Context(), written, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitReady("app")
	after, err := stacks.Get(t.Context(), "app", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, still, _ := unstructured.NestedSlice(after.Object, "spec", "prerequisites"); !still || after.GetGeneration() != 1 {
		t.Errorf("the spec became %v, of generation %d", after.Object["spec"], after.GetGeneration())
	}
	if !record.HasFinalizer(after) {
		t.Errorf("the finalizers are %v", after.GetFinalizers())
	}
}
