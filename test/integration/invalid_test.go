package integration

import (
	"strings"
	"testing"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

func TestAnUnknownProgramStallsTheStackUntilItIsThere(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.create(s.stackOf("app", "later"))
	stalled := awaitReason(s, "app", pulumiv1.StalledSourceUnavailable)
	if !strings.Contains(message(stalled), "Program later does not exist") {
		t.Errorf("the message does not name it: %s", message(stalled))
	}
	if n := len(s.updates()); n > 0 {
		t.Errorf("%d Updates were made", n)
	}
	s.program("later", greets)
	s.awaitReady("app")
	s.kubectl("delete", "program", "later")
	awaitReason(s, "app", pulumiv1.StalledSourceUnavailable)
	s.program("later", greets)
	s.awaitReady("app")
}

func TestAProgramThatDoesNotCompileSaysWhy(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("broken", "outputs: {message: \"${nope}\"}\n")
	s.create(s.stackOf("app", "broken"))
	failed := s.awaitFailures("app", 1)
	if want := `resource or variable named "nope" could not be found`; current(failed) != string(pulumiv1.ReconcilingRetry) ||
		!strings.Contains(failed.Status.LastUpdate.Message, want) || !strings.Contains(message(failed), want) {
		t.Errorf("it is told as %s", summary(failed))
	}
	s.program("broken", greets)
	s.awaitReady("app")
}

func TestASpecThatCannotBeServedStallsTheStackAndNamesTheField(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	for name, c := range map[string]struct{ spec, want string }{
		"env-ref":             {"envRefs: {A: {type: Env, env: {name: B}}}", `envRefs[A]: ref type "Env" is deprecated`},
		"fs-ref":              {"secretsRef: {a: {type: FS, filesystem: {path: /etc/passwd}}}", `secretsRef[a]: ref type "FS" is deprecated`},
		"unknown-ref":         {"envRefs: {A: {type: Vault}}", `envRefs[A]: ref type "Vault" is not known`},
		"empty-ref":           {"envRefs: {A: {type: Secret}}", "envRefs[A]: type Secret needs the field secret"},
		"other-namespace":     {"envRefs: {A: {type: Secret, secret: {namespace: kube-system, name: a, key: b}}}", "envRefs[A]: cross-namespace refs are not allowed"},
		"other-namespace-two": {"secretsRef: {a: {type: Secret, secret: {namespace: default, name: a, key: b}}}", "secretsRef[a]: cross-namespace refs are not allowed"},
		"pod-template":        {"workspaceTemplate: {spec: {podTemplate: {spec: {contaners: []}}}}", "workspaceTemplate: "},
		"pod-template-type":   {"workspaceTemplate: {spec: {podTemplate: {spec: {containers: many}}}}", "workspaceTemplate: "},
		"workspace-field":     {"workspaceTemplate: {spec: {images: a}}", "workspaceTemplate: "},
		"update-field":        {"updateTemplate: {spec: {tiemout: 1m}}", "updateTemplate: "},
		"git":                 {"{projectRepo: 'http://127.0.0.1:1/app', branch: main, commit: main}", "commit: only one of"},
		"flux":                {"fluxSource: {sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, name: app}}", "fluxSource: "},
	} {
		s.create(s.stackOf(name, "greets", func(stack *pulumiv1.Stack) { stack.Spec.WorkspaceTemplate = nil }, spec(c.spec)))
		stalled := awaitReason(s, name, pulumiv1.StalledSpecInvalid)
		if !strings.Contains(message(stalled), c.want) {
			t.Errorf("%s: the message is %q, want %q", name, message(stalled), c.want)
		}
	}
	if n := len(s.updates()); n > 0 {
		t.Errorf("%d Updates were made", n)
	}
	s.change("env-ref", func(stack *pulumiv1.Stack) { stack.Spec = s.stackOf("env-ref", "greets").Spec })
	s.awaitReady("env-ref")
}

func TestWhatDevModeCannotRunIsRefusedWithACondition(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	for name, c := range map[string]struct{ spec, want string }{
		"init": {`
workspaceTemplate: {spec: {podTemplate: {spec: {containers: [{name: pulumi}], initContainers: [{name: mine, image: busybox, command: [ls]}]}}}}`,
			"Container mine wants ls of the image busybox, and dev mode runs no images"},
		"side": {`
workspaceTemplate: {spec: {podTemplate: {spec: {containers: [{name: pulumi}, {name: proxy, image: proxy}]}}}}`,
			"Container proxy is a sidecar, which dev mode does not run"},
	} {
		s.create(s.stackOf(name, "greets", func(stack *pulumiv1.Stack) { stack.Spec.WorkspaceTemplate = nil }, spec(c.spec)))
		failed := s.awaitFailures(name, 1)
		if last := failed.Status.LastUpdate; last.Reason != "WorkspaceFailed" || !strings.Contains(last.Message, c.want) || !strings.Contains(message(failed), c.want) {
			t.Errorf("%s: it is told as %s", name, summary(failed))
		}
	}
	s.awaitRestButAlarms()
}

func TestWhatARunNeedsAndIsNotThereIsTold(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	s.create(s.stackOf("unlocked", "greets", func(stack *pulumiv1.Stack) { stack.Spec.EnvRefs = nil }))
	failed := s.awaitFailures("unlocked", 1)
	if want := "Set PULUMI_CONFIG_PASSPHRASE from a Secret through the Stack's envRefs"; !strings.Contains(failed.Status.LastUpdate.Message, want) {
		t.Errorf("it is told as %s", summary(failed))
	}
	s.create(s.stackOf("uncreated", "greets", func(stack *pulumiv1.Stack) { stack.Spec.UseLocalStackOnly = true }))
	failed = s.awaitFailures("uncreated", 1)
	if want := "does not exist and may not be created"; !strings.Contains(failed.Status.LastUpdate.Message, want) {
		t.Errorf("it is told as %s", summary(failed))
	}
}
