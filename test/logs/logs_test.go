package logs

import (
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/run"
)

func TestALogOutlivesItsPod(t *testing.T) {
	w := newWorld(t)
	w.kubectl("", "apply", "-f", filepath.Join(root, "samples", "hello"))
	s := w.settled("hello")
	if s.Status.LastUpdate.State != pulumiv1.SucceededStackStateMessage {
		t.Fatalf("the sample failed: %s", s.Status.LastUpdate.Message)
	}
	// With the pod or without it, the log is there.
	if out, _, err := w.logs("hello"); err != nil || !strings.Contains(out, "Hello, world!") {
		t.Errorf("at its end updraft logs says %v and prints:\n%s", err, out)
	}
	u := w.released(s.Status.LastUpdate.Name)
	c, text := w.kept(u)
	if !strings.Contains(text, "Hello, world!") {
		t.Errorf("the kept log lacks the program's output:\n%s", text)
	}
	if c.Annotations[pulumiv1.AnnotationLogContainer] != run.Container {
		t.Errorf("the kept log is said to be of %q", c.Annotations[pulumiv1.AnnotationLogContainer])
	}
	for _, secret := range []string{"only-for-friends", "correct-horse-battery-staple"} {
		if strings.Contains(text, secret) {
			t.Errorf("the kept log has the secret value %s", secret)
		}
	}
	for _, args := range [][]string{{"hello"}, {"hello", "--follow"}, {"hello", "--update", u.Name}, {"--update", u.Name}} {
		if out, notes, err := w.logs(args...); err != nil || out != text || notes != "" {
			t.Errorf("updraft logs %v says %v%s and prints:\n%s", args, err, notes, out)
		}
	}
}

func TestALogIsFollowedFromBeforeItsRunToItsEnd(t *testing.T) {
	w := newWorld(t)
	g := newGate(t)
	w.kubectl(`{apiVersion: pulumi.com/v1, kind: Stack, metadata: {name: held, annotations: {updraft.dev/suspend: "true"}}, spec: {stack: dev, programRef: {name: held}}}`, "apply", "-f", "-")
	f := w.follow("held", "--follow")
	w.eventually("it is said what is waited for", func() bool { return strings.Contains(f.notes.String(), "SourceUnavailable") })
	w.applyStack("held", "variables:\n  text:\n    fn::readFile: "+g.path+"\noutputs:\n  said: ${text}")
	w.kubectl("", "annotate", "stack", "held", "updraft.dev/suspend-")
	w.eventually("the log of the run that is held is followed", func() bool { return strings.Contains(f.out.String(), "Updating (dev)") })
	if _, _, err := w.logs("held"); err != nil {
		t.Errorf("without following: %v", err)
	}
	update := w.stack("held").Status.CurrentUpdate.Name
	if said := w.kubectl("", "logs", "--selector", "updraft.dev/update="+update, "--container", "pulumi"); !strings.Contains(said, "Updating (dev)") {
		t.Errorf("kubectl logs prints:\n%s", said)
	}
	select {
	case err := <-f.done:
		t.Fatalf("updraft logs ends while the run goes on: %v", err)
	default:
	}
	g.open("open sesame")
	must(t, f.wait())
	if !strings.Contains(f.out.String(), "open sesame") {
		t.Errorf("what was followed lacks the end:\n%s", f.out.String())
	}
	if _, text := w.kept(w.released(update)); text != f.out.String() {
		t.Errorf("kept is not what was followed:\n%s\nbut\n%s", text, f.out.String())
	}
}

func TestALogInWhichNothingIsYetIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	g := newGate(t)
	w.applyStack("early", "variables:\n  text:\n    fn::readFile: "+g.path+"\noutputs:\n  said: ${text}")
	w.eventually("a container of its pod runs", func() bool {
		list, err := w.clients.Core.Pods(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: pulumiv1.LabelUpdate})
		must(t, err)
		return len(list.Items) == 1 && run.Logged(&list.Items[0]) != ""
	})
	f := w.follow("early") // not --follow
	w.eventually("it is said that it waits", func() bool { return strings.Contains(f.notes.String(), "has said nothing yet") })
	w.eventually("and then what is said is printed", func() bool { return strings.Contains(f.out.String(), "Updating (dev)") })
	g.open("open sesame")
	must(t, f.wait())
	if _, text := w.kept(w.released(w.settled("early").Status.LastUpdate.Name)); text != f.out.String() {
		t.Errorf("kept is not what was printed:\n%s\nbut\n%s", text, f.out.String())
	}
}

func TestTheLogOfAFailureAndOfACancelledRunAreKept(t *testing.T) {
	w := newWorld(t)
	w.applyStack("broken", "variables:\n  text:\n    fn::readFile: ./missing.txt\noutputs:\n  said: ${text}")
	s := w.settled("broken")
	if _, text := w.kept(w.released(s.Status.LastUpdate.Name)); !strings.Contains(text, "missing.txt") {
		t.Errorf("the kept log lacks the error:\n%s", text)
	}

	g := newGate(t)
	w.applyStack("stopped", "variables:\n  text:\n    fn::readFile: "+g.path+"\noutputs:\n  said: ${text}")
	f := w.follow("stopped", "--follow")
	w.eventually("the run has begun", func() bool { return strings.Contains(f.out.String(), "Updating (dev)") })
	update := w.stack("stopped").Status.CurrentUpdate.Name
	w.kubectl("", "annotate", "stack", "stopped", "updraft.dev/cancel="+update)
	must(t, f.wait())
	u := w.released(update)
	if u.FailedReason() != autov1alpha1.ReasonCanceled {
		t.Errorf("it ended as %s: %s", u.FailedReason(), u.Status.Message)
	}
	if _, text := w.kept(u); !strings.Contains(text, "Updating (dev)") {
		t.Errorf("the kept log of the cancelled run is:\n%s", text)
	}
}

func TestTheLogOfAFailedBootstrapIsKept(t *testing.T) {
	w := newWorld(t)
	w.kubectl(`
{apiVersion: auto.pulumi.com/v1alpha1, kind: Workspace, metadata: {name: by-hand}, spec: {serviceAccountName: default, local: {dir: ""}}}
---
{apiVersion: auto.pulumi.com/v1alpha1, kind: Update, metadata: {name: by-hand}, spec: {type: up, workspaceName: by-hand, stackName: dev}}
`, "apply", "-f", "-")
	u := w.released("by-hand")
	c, text := w.kept(u)
	if c.Annotations[pulumiv1.AnnotationLogContainer] != run.Bootstrap || !strings.Contains(text, "names no dir") {
		t.Errorf("kept of %v:\n%s", c.Annotations, text)
	}
	if out, _, err := w.logs("--update", "by-hand"); err != nil || out != text {
		t.Errorf("updraft logs says %v and prints:\n%s", err, out)
	}
}

func TestWhereThereIsNoLogItIsSaidWhy(t *testing.T) {
	w := newWorld(t)
	w.applyStack("fine", "outputs: {said: fine}")
	fine := w.released(w.settled("fine").Status.LastUpdate.Name)
	w.kubectl(`
{apiVersion: pulumi.com/v1, kind: Stack, metadata: {name: invalid}, spec: {stack: dev, fluxSource: {sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, name: x}}}}
---
{apiVersion: pulumi.com/v1, kind: Stack, metadata: {name: waits}, spec: {stack: dev, programRef: {name: fine}, prerequisites: [{name: never}]}}
---
{apiVersion: auto.pulumi.com/v1alpha1, kind: Update, metadata: {name: lost}, spec: {type: up, workspaceName: never, stackName: dev}}
`, "apply", "-f", "-")
	w.eventually("the Stacks are looked at", func() bool {
		return w.reason(w.stack("invalid"), pulumiv1.StalledCondition) != "" && w.reason(w.stack("waits"), pulumiv1.ReconcilingCondition) != ""
	})
	w.eventually("the Update is looked at", func() bool {
		u, err := w.clients.Pulumi.AutoV1alpha1().Updates(w.namespace).Get(t.Context(), "lost", metav1.GetOptions{})
		must(t, err)
		return len(u.Status.Conditions) > 0
	})
	says := func(want string, args ...string) {
		t.Helper()
		if out, _, err := w.logs(args...); err == nil || out != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("updraft logs %v says %v, want %s; and prints %q", args, err, want, out)
		}
	}
	says("name a Stack")
	says("stack absent does not exist in namespace "+w.namespace, "absent")
	says("stack invalid has never run: SpecInvalid: Invalid spec: fluxSource", "invalid")
	says("has never run: SpecInvalid", "invalid", "--follow")
	says("has not run yet: PrerequisiteNotSatisfied", "waits")
	says("update absent does not exist", "--update", "absent")
	says("is not of Stack waits", "waits", "--update", fine.Name)
	says("WorkspaceNotFound", "--update", "lost")
	w.kubectl("", "delete", "update", "lost")
	w.kubectl("", "delete", "configmap", fine.Name+"-log")
	says("is not kept", "fine")
	w.kubectl(`{apiVersion: v1, kind: ConfigMap, metadata: {name: `+fine.Name+`-log}, binaryData: {log.gz: aGVsbG8=}}`, "apply", "-f", "-")
	says("is not kept", "fine")
	w.kubectl("", "delete", "update", fine.Name)
	says("has expired", "fine")
}
