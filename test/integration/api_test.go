package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// older is the Stack's other version.
var older = schema.GroupVersionResource{Group: "pulumi.com", Version: "v1alpha1", Resource: "stacks"}

func TestACompleteUpdateStaysSo(t *testing.T) {
	t.Parallel()
	s, name := atRest(t)
	client := s.pulumi.AutoV1alpha1().Updates(s.namespace)
	for what, patch := range map[string]string{
		"No status":             `{"status": null}`,
		"No conditions":         `{"status": {"conditions": null}}`,
		"An empty list of them": `{"status": {"conditions": []}}`,
		"Complete is False":     `{"status": {"conditions": [{"type": "Complete", "status": "False", "reason": "Progressing", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`,
	} {
		_, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want a refusal", what, err)
		}
	}
	if u := s.update(name); !u.Settled() {
		t.Error("the Update is no longer Complete")
	}
}

func TestANameThatIsTooLongIsRefusedOnBothVersions(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	long, fits := strings.Repeat("a", 43), strings.Repeat("b", 42)
	for _, version := range []string{"v1", "v1alpha1"} {
		stacks := s.dynamic.Resource(schema.GroupVersionResource{Group: "pulumi.com", Version: version, Resource: "stacks"}).Namespace(s.namespace)
		stack := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "pulumi.com/" + version, "kind": "Stack",
			"metadata": map[string]any{"name": long}, "spec": map[string]any{"stack": "dev"},
		}}
		if _, err := stacks.Create(t.Context(), stack, metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "no more than 42 characters") {
			t.Errorf("%s: 43 characters: %v", version, err)
		}
		stack.SetName(fits)
		if _, err := stacks.Create(t.Context(), stack, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Errorf("%s: 42 characters: %v", version, err)
		}
	}
	s.program("greets", greets)
	s.create(s.stackOf(fits, "greets", destroyed))
	s.awaitReady(fits)
	s.delete(fits, background)
	s.awaitGone(fits)
}

func TestAWriteThroughTheOlderVersionKeepsTheStatus(t *testing.T) {
	t.Parallel()
	s, _ := atRest(t)
	before := s.get("app")
	stacks := s.dynamic.Resource(older).Namespace(s.namespace)
	s.eventually("the Stack is written", func() error {
		old, err := stacks.Get(t.Context(), "app", metav1.GetOptions{})
		if err != nil {
			return err
		}
		old.SetLabels(map[string]string{"seen": "yes"})
		_, err = stacks.Update(t.Context(), old, metav1.UpdateOptions{})
		return err
	})
	if after := s.get("app"); !same(before.Status, after.Status) || after.Labels["seen"] != "yes" {
		t.Errorf("the status was %s, and is %s", summary(before), summary(after))
	}
	if _, err := stacks.Patch(t.Context(), "app", types.MergePatchType, []byte(`{"spec": {"config": {"name": "old"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	ready := s.await("app", "ran", func(stack *pulumiv1.Stack) bool { return stack.Generation == 2 && isReady(stack) })
	if got := string(ready.Status.Outputs["message"].Raw); got != `"Hello, old!"` {
		t.Errorf("the output is %s", got)
	}
}

func TestObjectsAreFoundByWhatTheyReferTo(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.create(s.stackOf("app", "one"))
	s.create(s.stackOf("other", "two"))
	s.create(s.stackOf("flux", "", func(stack *pulumiv1.Stack) { stack.Spec.ProgramRef = nil },
		spec("fluxSource: {sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, name: source}}")))
	s.create(s.stackOf("git", "", func(stack *pulumiv1.Stack) { stack.Spec.ProgramRef = nil }, spec("{projectRepo: 'http://127.0.0.1:1/app', branch: main}")))
	s.byHand("early", "own", "dev", autov1alpha1.UpType)
	for selector, want := range map[string]string{
		"spec.programRef.name=one":                "app",
		"spec.fluxSource.sourceRef.name=source":   "flux",
		"spec.projectRepo=http://127.0.0.1:1/app": "git",
	} {
		list, err := s.pulumi.PulumiV1().Stacks(s.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != want {
			t.Errorf("%s finds %v (%v)", selector, list, err)
		}
	}
	list, err := s.pulumi.AutoV1alpha1().Updates(s.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.workspaceName=own"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "early" {
		t.Errorf("the Updates of a Workspace are %v (%v)", list, err)
	}
	// What kubectl shows of them.
	if shown := s.kubectl("get", "pulumi"); !strings.Contains(shown, "stack.pulumi.com/app") || !strings.Contains(shown, "update.auto.pulumi.com/early") {
		t.Errorf("kubectl get pulumi shows\n%s", shown)
	}
	awaitReason(s, "app", pulumiv1.StalledSourceUnavailable)
	if shown := s.kubectl("get", "stack", "app", "--no-headers"); !strings.Contains(shown, "False") || !strings.Contains(shown, "SourceUnavailable") {
		t.Errorf("kubectl get stack shows %s", shown)
	}
}

func TestASuspendedStackHoldsBackWhatIsWantedUntilItIsReleased(t *testing.T) {
	t.Parallel()
	s, first := atRest(t)
	s.change("app", annotated(pulumiv1.AnnotationSuspend, "true"))
	s.change("app", config("name", "moon"))
	suspended := awaitReason(s, "app", pulumiv1.ReconcilingSuspended)
	if !strings.Contains(message(suspended), pulumiv1.AnnotationSuspend) || suspended.Status.LastUpdate.Name != first || suspended.Status.CurrentUpdate != nil {
		t.Errorf("it is told as %s", summary(suspended))
	}
	s.change("app", annotated(pulumiv1.AnnotationSuspend, ""))
	ready := s.awaitReady("app")
	if got := string(ready.Status.Outputs["message"].Raw); got != `"Hello, moon!"` {
		t.Errorf("the output is %s", got)
	}
	if n := len(s.updates()); n != 2 {
		t.Errorf("%d Updates ran, want 2", n)
	}
}

func TestAStackWaitsForItsPrerequisitesAndGoesOnByItself(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	g := newGate(t)
	s.program("reads", reads)
	s.program("greets", greets)
	s.create(s.stackOf("top", "greets", spec("prerequisites: [{name: base}, {name: other}]")))
	waiting := awaitReason(s, "top", pulumiv1.ReconcilingPrerequisite)
	if want := "2 prerequisite(s) not satisfied: base does not exist, other does not exist"; message(waiting) != want {
		t.Errorf("the message is %q, want %q", message(waiting), want)
	}
	s.create(s.stackOf("other", "greets"))
	s.create(s.stackOf("base", "reads", config("file", g.path)))
	g.reached()
	s.awaitReady("other")
	s.await("top", "waits for base alone", func(stack *pulumiv1.Stack) bool {
		return current(stack) == string(pulumiv1.ReconcilingPrerequisite) && message(stack) == "1 prerequisite(s) not satisfied: base has not run to completion"
	})
	if u := s.get("top").Status.LastUpdate; u != nil {
		t.Errorf("it ran all the same: %+v", u)
	}
	g.open("done")
	s.awaitReady("top")
	if base, top := s.get("base").Status.LastUpdate, s.get("top").Status.LastUpdate; top.LastResyncTime.Before(&base.LastResyncTime) {
		t.Errorf("it ran before its prerequisite: %+v, %+v", *base, *top)
	}
}

func TestAPrerequisiteThatIsOutOfDateIsAskedToRunAgain(t *testing.T) {
	t.Parallel()
	s := newSpace(t, moving(t), plain)
	s.program("greets", greets)
	s.create(s.stackOf("base", "greets"))
	first := s.awaitReady("base").Status.LastUpdate.Name
	s.awaitRest()
	s.clock.move(11 * time.Hour)
	s.create(s.stackOf("top", "greets", spec("prerequisites: [{name: base, requirement: {succeededWithinDuration: 10h}}]")))
	s.create(s.stackOf("top-two", "greets", spec("prerequisites: [{name: base, requirement: {succeededWithinDuration: 10h}}]")))
	s.awaitReady("top")
	s.awaitReady("top-two")
	base := s.awaitReady("base")
	if got, want := base.Annotations[pulumiv1.AnnotationReconcileRequest], "after-"+first; got != want {
		t.Errorf("it was asked by %q, want %q", got, want)
	}
	runs := 0
	for _, u := range s.updates() {
		if strings.HasPrefix(u.Name, "base-") {
			runs++
		}
	}
	if runs != 2 {
		t.Errorf("the prerequisite ran %d times, want 2", runs)
	}
}

func TestAWipedStatusDoesNotRunAnythingTwiceAtATime(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, lab.main, plain))
	if _, err := h.pulumi.PulumiV1().Stacks(h.namespace).Patch(t.Context(), "app", types.MergePatchType, []byte(`{"status": null}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	adopted := h.await("app", "claims its run again", func(stack *pulumiv1.Stack) bool { return stack.Status.CurrentUpdate != nil })
	if got := adopted.Status.CurrentUpdate.Name; got != h.update {
		t.Errorf("it claims %s, want %s", got, h.update)
	}
	h.gate.open("once")
	if ready := h.awaitReady("app"); ready.Status.LastUpdate.Name != h.update {
		t.Errorf("what ran is %s", summary(ready))
	}
	h.awaitRest()
	if n := h.operations("state", "reads", "app"); n != 1 {
		t.Errorf("the CLI ran %d times, want once", n)
	}
}

func TestAWorkspaceIsReclaimedAfterASuccessAndIsMadeAnew(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets", destroyed, func(stack *pulumiv1.Stack) { stack.Spec.WorkspaceReclaimPolicy = pulumiv1.WorkspaceReclaimDelete }))
	first := s.awaitReady("app")
	s.eventually("the Workspace is gone", func() error { return s.none("Workspace") })
	if _, err := s.pulumi.AutoV1alpha1().Updates(s.namespace).Get(t.Context(), first.Status.LastUpdate.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("its history went with it: %v", err)
	}
	s.change("app", config("name", "moon"))
	s.await("app", "ran again", func(stack *pulumiv1.Stack) bool { return isReady(stack) && stack.Generation == 2 })
	s.eventually("the Workspace is gone", func() error { return s.none("Workspace") })
	s.delete("app", background)
	s.awaitGone("app")
	expectDestroyedBefore(s, first)
}

func TestANamespaceThatIsDeletedSaysThatItsStackCannotBeDestroyed(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets", destroyed))
	s.awaitReady("app")
	s.awaitRest()
	if err := s.kube.CoreV1().Namespaces().Delete(t.Context(), s.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	stalled := s.await("app", "says that its namespace goes", func(stack *pulumiv1.Stack) bool {
		return current(stack) == string(pulumiv1.StalledNamespaceTerminating)
	})
	if !strings.Contains(message(stalled), pulumiv1.AnnotationLetGo) {
		t.Errorf("the message does not say what to do: %s", message(stalled))
	}
	s.change("app", annotated(pulumiv1.AnnotationLetGo, "true"))
	s.awaitNamespaceGone()
}

// TestANamespaceThatIsDeletedInMidRunGoes is about what is still to be written
// once a run has ended, in a namespace that takes nothing new: its Event, its log.
func TestANamespaceThatIsDeletedInMidRunGoes(t *testing.T) {
	t.Parallel()
	// The namespace's controller looks again after half the pod's grace.
	h := hold(newSpace(t, lab.main, swept), spec(`
workspaceTemplate:
  spec:
    podTemplate:
      spec:
        terminationGracePeriodSeconds: 5
        containers: [{name: pulumi, volumeMounts: [{name: state, mountPath: /share/state}]}]
        volumes: [{name: state, persistentVolumeClaim: {claimName: state}}]
`))
	if err := h.kube.CoreV1().Namespaces().Delete(t.Context(), h.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.awaitSettled(autov1alpha1.ReasonCanceled, autov1alpha1.ReasonAborted)
	h.awaitNamespaceGone()
}

// awaitNamespaceGone waits until nothing holds the test's namespace.
func (s *space) awaitNamespaceGone() {
	s.Helper()
	s.eventually("the namespace is gone", func() error {
		namespace, err := s.kube.CoreV1().Namespaces().Get(s.Context(), s.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		text, _ := json.Marshal(namespace.Status)
		return errors.Join(fmt.Errorf("it is there: %s", text))
	})
}
