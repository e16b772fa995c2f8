package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

// ending is how a run is told to have ended.
type ending struct{ State, Reason, Message string }

func TestFailuresHaveAReasonAndReadableWords(t *testing.T) {
	t.Parallel()
	no := false
	number := []autov1alpha1.ConfigItem{{Key: "n", Value: &apiextensionsv1.JSON{Raw: []byte("3")}}}
	cases := map[string]struct {
		program string
		change  func(*pod)
		want    ending
	}{
		"A program that fails": {
			program: "name: app\nruntime: yaml\noutputs:\n  a: {\"fn::readFile\": ./missing}\n",
			want: ending{"failed", "UpdateFailed", "error: Error reading file at path ./missing: open ./missing: no such file or directory\n" +
				"  on Pulumi.yaml line 4:\n   4:   a: {\"fn::readFile\": ./missing}"},
		},
		"A program that does not compile": {
			program: "name: app\nruntime: yaml\noutputs:\n  a: ${nope}\n",
			want: ending{"failed", "UpdateFailed", "error: resource or variable named \"nope\" could not be found\n" +
				"  on Pulumi.yaml line 4:\n   4:   a: ${nope}\nerror: Error registering output [a]: no diagnostics"},
		},
		"A program whose parts have the wrong shape": {
			program: "name: app\nruntime: yaml\nresources: [1]\n",
			want:    ending{"failed", "UpdateFailed", "The program is not valid: error: Pulumi.yaml:3,12-14: resources must be an object"},
		},
		"A program with an expression that does not end": {
			program: "name: app\nruntime: yaml\noutputs:\n  a: ${x\n",
			want:    ending{"failed", "UpdateFailed", "The program is not valid: error: Pulumi.yaml:4,6-9: unterminated interpolation"},
		},
		"A program with such an expression that is not installed first": {
			program: "name: app\nruntime: yaml\noutputs:\n  a: ${x\n", change: func(p *pod) { p.unset = noAcquisition },
			want: ending{"failed", "UpdateFailed", "The program is not valid: error: Pulumi.yaml:4,6-9: unterminated interpolation"},
		},
		"A program of the wrong shape that is not installed first": {
			program: "name: app\nruntime: yaml\nresources: [1]\n", change: func(p *pod) { p.unset = noAcquisition },
			want: ending{"failed", "UpdateFailed", "The program is not valid: error: Pulumi.yaml:3,12-14: resources must be an object"},
		},
		"A resource that fails is named": {
			program: "name: app\nruntime: yaml\nresources:\n  other: {type: pulumi:pulumi:StackReference, properties: {name: organization/no/dev}}\n",
			want:    ending{"failed", "UpdateFailed", "pulumi:pulumi:StackReference (other): error: unknown stack \"organization/no/dev\""},
		},
		"A project that cannot be read": {
			program: "name: app\nruntime: yaml\noutputs: [\n",
			want:    ending{"failed", "WorkspaceFailed", "The project cannot be read: "},
		},
		"No CLI in the image": {
			program: hello, change: func(p *pod) { p.path = "/nowhere" },
			want: ending{"failed", "WorkspaceFailed",
				"The pulumi CLI is not in the image: use an image that holds it, such as pulumi/pulumi:latest-nonroot"},
		},
		"A CLI that is too old": {
			program: hello, change: func(p *pod) { p.fakeCLI("3.90.0", "") },
			want: ending{"failed", "PulumiVersionTooLow",
				"The image has pulumi 3.90.0, and 3.91.0 or newer is needed: use an image with a newer CLI"},
		},
		"A CLI that is too old for a number": {
			program: hello, change: func(p *pod) { p.fakeCLI("3.150.0", ""); p.spec.Stack.Config = number },
			want: ending{"failed", "PulumiVersionTooLow", "The image has pulumi 3.150.0, and configuration values that are no strings" +
				" need 3.202.0 or newer: use an image with a newer CLI, or strings"},
		},
		"A CLI that cannot install": {
			program: packaged, change: func(p *pod) {
				p.fakeCLI("3.276.0", `if [ "$2" = install ]; then echo "error: no network" >&2; exit 1; fi`)
			},
			want: ending{"failed", "WorkspaceFailed", "The project's dependencies cannot be installed: error: no network"},
		},
		"A token that is refused": {
			program: hello, change: func(p *pod) {
				p.fakeCLI("3.276.0", `if [ "$2" = stack ]; then echo "error: invalid access token" >&2; exit 1; fi`)
			},
			want: ending{"failed", "InvalidAccessToken", "error: invalid access token"},
		},
		"No passphrase": {
			program: hello, change: func(p *pod) { p.unset = "PULUMI_CONFIG_PASSPHRASE" },
			want: ending{"failed", "WorkspaceFailed", "The stack cannot be selected: error: could not create secrets manager for new stack: " +
				"passphrase must be set with PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE environment variables\n" +
				"Set PULUMI_CONFIG_PASSPHRASE from a Secret through the Stack's envRefs"},
		},
		"A stack that is missing and may not be created": {
			program: hello, change: func(p *pod) { p.spec.Stack.Create = &no },
			want: ending{"failed", "WorkspaceFailed", "The stack dev does not exist and may not be created: create it with pulumi stack init," +
				" or allow that it is created"},
		},
		"A file of configuration that is missing": {
			program: hello, change: func(p *pod) {
				p.spec.Stack.Config = []autov1alpha1.ConfigItem{{Key: "a", ValueFrom: &autov1alpha1.ConfigValueFrom{Path: "/nowhere/a"}}}
			},
			want: ending{"failed", "WorkspaceFailed", "The configuration value a cannot be set: there is no file /nowhere/a in the container"},
		},
		"A local folder that is missing": {
			change: func(p *pod) { p.spec.Source = run.Source{Local: &autov1alpha1.LocalSource{Dir: "/nowhere/app"}} },
			want: ending{"failed", "WorkspaceFailed",
				"The folder /nowhere/app of the source local is not in the image and in no volume: no such file or directory"},
		},
		"An operation that nobody knows": {
			program: hello, change: func(p *pod) { p.spec.Operation.Type = "import" },
			want: ending{"failed", "Invalid", "The type of operation \"import\" is not known: use up, preview, refresh or destroy"},
		},
		"Changes where none were expected": {
			program: hello, change: func(p *pod) { p.spec.Operation.ExpectNoChanges = true },
			want: ending{"failed", "UpdateFailed", "error: no changes were expected for update but changes were proposed"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, t.TempDir(), autov1alpha1.UpType, c.program)
			if c.change != nil {
				c.change(p)
			}
			got := p.run()
			if got.code != 1 {
				t.Errorf("exit code = %d, want 1", got.code)
			}
			p.expectEnding(got, c.want)
		})
	}
}

// expectEnding checks that the report and the termination message tell the same
// end. A message that is to end in a colon and a space may go on.
func (p *pod) expectEnding(got outcome, want ending) {
	p.t.Helper()
	finished := p.receiver.finished()
	if diff := cmp.Diff(ending(got.termination), ending{finished.State, finished.Reason, finished.Message}); diff != "" {
		p.t.Errorf("the report and the termination message differ:\n%s", diff)
	}
	if strings.HasSuffix(want.Message, ": ") && strings.HasPrefix(finished.Message, want.Message) {
		want.Message = finished.Message
	}
	if diff := cmp.Diff(want, ending{finished.State, finished.Reason, finished.Message}); diff != "" {
		p.t.Errorf("-want +got:\n%s", diff)
	}
	if finished.Outputs != nil {
		p.t.Errorf("a run that did not succeed reports the outputs %v", finished.Outputs)
	}
}

// fakeCLI puts a script in the CLI's place that keeps its arguments, does what
// is said, and else succeeds with the least.
func (p *pod) fakeCLI(version, does string) {
	dir := filepath.Dir(p.write("fake/pulumi", `#!/bin/sh
if [ "$1" = version ]; then echo "v`+version+`"; exit 0; fi
echo "$@" >>"$HOME/arguments"
`+does+`
case "$3" in output) echo '{}';; history) echo '[]';; esac
`, 0o755))
	p.path = dir + ":/usr/bin:/bin"
}

func TestASourceThatCannotBeFetchedFailsInit(t *testing.T) {
	t.Parallel()
	for want, source := range map[string]run.Source{
		"flux sources are not served yet": {Flux: &autov1alpha1.FluxSource{URL: "https://flux.example/app"}},
		"repository not found: there is no repository file:///nonexistent, or it may not be seen without credentials": {
			Git: &autov1alpha1.GitSource{URL: "file:///nonexistent", Ref: "main"},
		},
	} {
		p := newPod(t, t.TempDir(), autov1alpha1.UpType, "")
		p.spec.Source = source
		if code := p.init(); code != 1 {
			t.Errorf("exit code = %d, want 1", code)
		}
		want = `{"state":"failed","reason":"WorkspaceFailed","message":"cannot fetch the source: ` + want + `"}`
		if got := p.read(p.termination("init")); got != want {
			t.Errorf("termination message = %s, want %s", got, want)
		}
	}
}

func TestNoSecretIsInTheArgumentsOfAnyCLI(t *testing.T) {
	t.Parallel()
	yes := true
	for _, version := range []string{"3.276.0", "3.205.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, t.TempDir(), autov1alpha1.UpType, hello)
			p.fakeCLI(version, "")
			p.spec.Stack.Environment = []string{"team/base", "team/dev"}
			p.spec.Stack.Config = []autov1alpha1.ConfigItem{
				{Key: "s", Secret: &yes, Value: &apiextensionsv1.JSON{Raw: []byte(`"hunter2"`)}},
				{Key: "o", Secret: &yes, Value: &apiextensionsv1.JSON{Raw: []byte(`{"a":"hunter2"}`)}},
				{Key: "p.q", Path: &yes, Secret: &yes, Value: &apiextensionsv1.JSON{Raw: []byte(`"hunter2"`)}},
			}
			if got := p.run(); got.code != 0 {
				t.Errorf("exit code = %d: %s", got.code, got.termination.Message)
			}
			arguments := p.read(filepath.Join(p.root, "arguments"))
			if strings.Contains(arguments, "hunter2") || !strings.Contains(arguments, "config env add team/base team/dev") {
				t.Errorf("the CLI was run with\n%s", arguments)
			}
		})
	}
}

func TestAStopWhileInstallingCancelsBeforeTheStackIsTouched(t *testing.T) {
	t.Parallel()
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, packaged)
	p.fakeCLI("3.276.0", `if [ "$2" = install ]; then
  trap 'echo interrupted >>"$HOME/signals"; exit 1' INT; touch "$HOME/installing"; while :; do sleep 0.01; done
fi`)
	p.init()
	c := p.begin()
	await(t, "the CLI installs", func() bool {
		return p.read(filepath.Join(p.root, "arguments")) != "" && exists(filepath.Join(p.root, "installing"))
	})
	c.signal(syscall.SIGTERM)
	got := c.wait()
	p.expectEnding(got, ending{"canceled", "Canceled", "Stopped on request"})
	if arguments := p.read(filepath.Join(p.root, "arguments")); got.code != 1 || strings.Contains(arguments, "stack") {
		t.Errorf("exit code = %d, and the CLI was run with\n%s", got.code, arguments)
	}
	if signals := p.read(filepath.Join(p.root, "signals")); signals != "interrupted\n" {
		t.Errorf("the CLI was interrupted %q, want once", signals)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestAStopWhileTheRunIsNotTakenEndsIt(t *testing.T) {
	t.Parallel()
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, hello)
	p.receiver.answer = func(report, int) int { return http.StatusNotFound }
	p.init()
	c := p.begin()
	await(t, "the run is asked for", func() bool { return len(p.receiver.of(event.TypeRunTaken)) > 0 })
	c.signal(syscall.SIGTERM)
	got := c.wait()
	want := event.Termination{State: "canceled", Reason: "Canceled", Message: "Stopped before the run was taken"}
	if got.code != 1 || got.termination != want {
		t.Errorf("exit code = %d, termination message %+v", got.code, got.termination)
	}
	if len(p.receiver.of(event.TypeRunFinished)) > 0 {
		t.Error("a run that was not taken is reported to have ended")
	}
}

func TestAReportThatIsNotUnderstoodIsGivenUp(t *testing.T) {
	t.Parallel()
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, hello)
	p.receiver.answer = func(report, int) int { return http.StatusUnprocessableEntity }
	if got := p.run(); got.code != 1 || got.termination.State != "failed" {
		t.Errorf("exit code = %d, termination message %+v", got.code, got.termination)
	}
	p.expectReports(event.TypeRunTaken)
}
