package integration

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/record"
)

func TestTheSampleHelloRunsAsItStands(t *testing.T) {
	t.Parallel()
	walkThroughHello(newSpace(t, lab.main, plain))
}

func TestTheSampleHelloRunsOnceThoughEveryEventComesTwice(t *testing.T) {
	t.Parallel()
	walkThroughHello(newSpace(t, lab.main, twice))
}

// walkThroughHello applies the sample, changes all that can be changed of it,
// and deletes it.
func walkThroughHello(s *space) {
	s.kubectl("apply", "-f", filepath.Join(lab.root, "samples", "hello"))
	s.kubectl("wait", "--for=condition=Ready", "stack/hello", "--timeout=120s")
	first := s.get("hello")
	expectHello(s, first, "Hello, world!", 1)
	expectNoSecretsOutsideSecrets(s)

	s.change("hello", config("name", "moon"))
	expectHello(s, s.awaitReady("hello"), "Hello, moon!", 2)

	program, err := s.pulumi.PulumiV1().Programs(s.namespace).Get(s.Context(), "hello", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	program.Program.Variables["message"] = jsonOf("Good night, ${name}!")
	if _, err := s.pulumi.PulumiV1().Programs(s.namespace).Update(s.Context(), program, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.await("hello", "ran the new Program", func(stack *pulumiv1.Stack) bool {
		return isReady(stack) && stack.Status.LastUpdate.LastSuccessfulCommit == "2"
	})
	expectHello(s, s.get("hello"), "Good night, moon!", 3)

	s.request("hello", "again")
	again := s.awaitReady("hello")
	expectHello(s, again, "Good night, moon!", 4)
	if again.Status.ObservedReconcileRequest != "again" || again.Status.LastUpdate.ReconcileRequest != "again" {
		s.Errorf("the request is echoed as %q and %q", again.Status.ObservedReconcileRequest, again.Status.LastUpdate.ReconcileRequest)
	}
	s.awaitRest()
	expectNoSecretsOutsideSecrets(s)

	s.kubectl("delete", "stack", "hello", "--timeout=120s")
	expectDestroyedBefore(s, first)
	s.awaitNothing()
	if n := s.operations("hello-state", "hello", "dev"); n != 5 {
		s.Errorf("the CLI ran %d times, want 5", n)
	}
	if n := s.resources("hello-state", "hello", "dev"); n != 0 {
		s.Errorf("%d resources are left", n)
	}
}

// expectHello checks what a Stack of the sample says after so many runs, all of
// them different.
func expectHello(s *space, stack *pulumiv1.Stack, message string, runs int) {
	s.Helper()
	last := stack.Status.LastUpdate
	if last.State != pulumiv1.SucceededStackStateMessage || last.Type != pulumiv1.UpUpdateType || last.Generation != stack.Generation || last.Failures != 0 {
		s.Errorf("lastUpdate = %+v", *last)
	}
	outputs := map[string]string{}
	for name, value := range stack.Status.Outputs {
		outputs[name] = string(value.Raw)
	}
	if diff := cmp.Diff(map[string]string{"message": fmt.Sprintf("%q", message), "greeting": `"[secret]"`}, outputs); diff != "" {
		s.Errorf("outputs: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(&pulumiv1.ProjectInfo{Name: "hello", Runtime: "yaml"}, stack.Status.ProjectInfo); diff != "" {
		s.Errorf("projectInfo: -want +got:\n%s", diff)
	}
	if !record.HasFinalizer(stack) {
		s.Error("the Stack has no finalizer")
	}
	expectOutputsSecret(s, s.update(last.Name), message)
	if n := s.operations("hello-state", "hello", "dev"); n != runs {
		s.Errorf("the CLI ran %d times, want %d", n, runs)
	}
	if n := len(s.updates()); n != runs {
		s.Errorf("there are %d Updates, want %d", n, runs)
	}
	kept := 0
	for _, name := range s.names("Secret") {
		if strings.HasSuffix(name, "-stack-outputs") {
			kept++
		}
	}
	if kept != runs {
		s.Errorf("there are %d Secrets of outputs, want %d", kept, runs)
	}
}

// expectOutputsSecret checks the shape that the reference gives.
func expectOutputsSecret(s *space, u *autov1alpha1.Update, message string) {
	s.Helper()
	got, err := s.kube.CoreV1().Secrets(s.namespace).Get(s.Context(), u.Name+"-stack-outputs", metav1.GetOptions{})
	if err != nil {
		s.Error(err)
		return
	}
	if u.Status.Outputs != got.Name {
		s.Errorf("the Update names %q as its outputs", u.Status.Outputs)
	}
	yes := true
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				"auto.pulumi.com/component": "update", "auto.pulumi.com/update-name": u.Name, pulumiv1.LabelUpdate: u.Name,
			},
			Annotations: map[string]string{"pulumi.com/secrets": `["greeting"]`},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "auto.pulumi.com/v1alpha1", Kind: "Update", Name: u.Name, UID: u.UID, Controller: &yes,
			}},
		},
		Type: corev1.SecretTypeOpaque, Immutable: &yes,
		Data: map[string][]byte{"greeting": []byte(`"only-for-friends"`), "message": []byte(fmt.Sprintf("%q", message))},
	}
	got.ObjectMeta = metav1.ObjectMeta{Labels: got.Labels, Annotations: got.Annotations, OwnerReferences: got.OwnerReferences}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("Secret of outputs: -want +got:\n%s", diff)
	}
}

// expectNoSecretsOutsideSecrets is invariant 5, for what stands in objects.
func expectNoSecretsOutsideSecrets(s *space) {
	s.Helper()
	for kind := range ourKinds {
		if kind == "Secret" {
			continue
		}
		for _, object := range s.objects(s.Context(), kind) {
			text, err := json.Marshal(object.Object)
			if err != nil {
				s.Fatal(err)
			}
			for _, secret := range secretValues {
				if strings.Contains(string(text), secret) {
					s.Errorf("a secret value is in %s %s: %s", kind, object.GetName(), text)
				}
			}
		}
	}
}

// expectDestroyedBefore is invariant 4: a destroy succeeded before the Stack was
// gone, and it is the only one.
func expectDestroyedBefore(s *space, gone *pulumiv1.Stack) {
	s.Helper()
	destroys := 0
	s.eventually("the end of the Stack is seen", func() error {
		destroys = 0
		for _, u := range s.watch.allUpdates(s.namespace) {
			if u.Spec.Type != autov1alpha1.DestroyType || u.Annotations[pulumiv1.AnnotationStackUID] != string(gone.UID) {
				continue
			}
			destroys++
			if u.Status.Result == nil || u.Status.Result.State != autov1alpha1.ResultSucceeded || !s.watch.settledBefore(u, gone.UID) {
				return fmt.Errorf("destroy %s had not succeeded: %+v", u.Name, u.Status.Result)
			}
		}
		return nil
	})
	if destroys != 1 {
		s.Errorf("%d destroys ran, want one", destroys)
	}
}

func TestWithoutDestroyOnFinalizeAStackGoesAtOnceAndNothingIsDestroyed(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	s.create(s.stackOf("kept", "greets"))
	s.awaitReady("kept")
	s.awaitRest()
	before := s.resources("state", "greets", "kept")
	s.kubectl("delete", "stack", "kept", "--timeout=30s")
	s.kubectl("delete", "program", "greets")
	s.awaitNothing()
	if after := s.resources("state", "greets", "kept"); before == 0 || after != before {
		t.Errorf("the state has %d resources, and had %d", after, before)
	}
	if n := s.operations("state", "greets", "kept"); n != 1 {
		t.Errorf("the CLI ran %d times, want once", n)
	}
}

func TestAPreviewNeverChangesAndNeverDestroys(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	s.create(s.stackOf("seen", "greets", destroyed, func(stack *pulumiv1.Stack) { stack.Spec.Preview = true }))
	ready := s.awaitReady("seen")
	if last := ready.Status.LastUpdate; last.Type != pulumiv1.PreviewUpdateType || ready.Status.Outputs != nil {
		t.Errorf("lastUpdate = %+v, outputs = %v", *last, ready.Status.Outputs)
	}
	s.kubectl("delete", "stack", "seen", "--timeout=30s")
	for _, u := range s.watch.allUpdates(s.namespace) {
		if u.Spec.Type != autov1alpha1.PreviewType {
			t.Errorf("Update %s is a %s", u.Name, u.Spec.Type)
		}
	}
}

func TestSecretsWrittenIntoAStackAreCopiedToNothingButSecrets(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("told", `
configuration: {one: {type: String}, two: {type: String}}
outputs: {one: "${one}", two: "${two}", length: {"fn::join": ["-", ["${one}", "end"]]}}
`)
	s.create(s.stackOf("told", "told", destroyed, spec(`
secrets: {one: `+inlineSecret+`}
secretsRef: {two: {type: Literal, literal: {value: `+inlineSecret+`}}}
`)))
	ready := s.awaitReady("told")
	for name, value := range ready.Status.Outputs {
		if string(value.Raw) != `"[secret]"` {
			t.Errorf("output %s is %s", name, value.Raw)
		}
	}
	for _, kind := range []string{"Workspace", "Update", "Job", "Pod", "ConfigMap", "Event", "PingSource"} {
		for _, object := range s.objects(t.Context(), kind) {
			text, _ := json.Marshal(object.Object)
			if strings.Contains(string(text), inlineSecret) {
				t.Errorf("the value is in %s %s: %s", kind, object.GetName(), text)
			}
		}
	}
	s.kubectl("delete", "stack", "told", "--timeout=120s")
	s.kubectl("delete", "program", "told")
	s.awaitNothing()
}
