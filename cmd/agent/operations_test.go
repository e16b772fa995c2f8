package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

const hello = `name: app
runtime: yaml
outputs:
  greeting: hello <world>
  count: 3
  nested: {a: [1, true]}
  hush: {"fn::secret": hunter2hunter2}
`

// packaged is a program with something to install.
const packaged = hello + `packages: {some: some@1.0.0}
`

const configured = `name: app
runtime: yaml
config:
  count: {type: integer}
  shape: {type: object}
  word: {type: string}
  password: {type: string}
outputs:
  count: ${count}
  side: ${shape.sides[1]}
  word: ${word}
  password: ${password}
`

func TestUpReportsItsOutputs(t *testing.T) {
	t.Parallel()
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, hello)
	p.spec.Operation.Message = `say "hi"`
	got := p.run()
	if got.code != 0 {
		t.Errorf("exit code = %d", got.code)
	}
	want := event.Finished{
		UID: "uid-17c", State: "succeeded", Commit: "4", Project: "app", Runtime: "yaml",
		Changes: map[string]int64{"create": 1},
		Outputs: map[string]event.Output{
			"greeting": {Value: json.RawMessage(`"hello <world>"`)},
			"count":    {Value: json.RawMessage(`3`)},
			"nested":   {Value: json.RawMessage(`{"a":[1,true]}`)},
			"hush":     {Value: json.RawMessage(`"hunter2hunter2"`), Secret: true},
		},
	}
	finished := p.receiver.finished()
	if diff := cmp.Diff(want, finished, cmpopts.IgnoreFields(event.Finished{}, "PulumiVersion", "Phases"), asJSON); diff != "" {
		t.Errorf("report: -want +got:\n%s", diff)
	}
	if finished.PulumiVersion == "" {
		t.Error("the report has no version of pulumi")
	}
	for _, phase := range []string{run.PhaseFetch, run.PhaseInstall, run.PhaseSelect, run.PhaseOperation} {
		if finished.Phases[phase] <= 0 {
			t.Errorf("the report does not say how long %s took: %v", phase, finished.Phases)
		}
	}
	if diff := cmp.Diff(event.Termination{State: "succeeded"}, got.termination); diff != "" {
		t.Errorf("termination message: -want +got:\n%s", diff)
	}
	if !strings.Contains(got.log, "hello <world>") || strings.Contains(got.log, "hunter2") {
		t.Errorf("the log does not show what it should, or a secret:\n%s", got.log)
	}
	p.expectHistory(`say \"hi\"`)
	p.expectReports(event.TypeRunTaken, event.TypeRunRunning, event.TypeRunFinished)
	if host, err := os.Hostname(); err != nil || p.receiver.running().Host != host || p.receiver.running().Pid <= 1 {
		t.Errorf("running = %+v, want the host %q and a pid (%v)", p.receiver.running(), host, err)
	}
}

// asJSON compares JSON by what it says.
var asJSON = cmp.Transformer("JSON", func(raw json.RawMessage) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return string(raw)
	}
	return v
})

// expectHistory checks that the newest operation in the backend has a message.
func (p *pod) expectHistory(message string) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.state, ".pulumi/history/app/dev/*.history.json"))
	if err != nil || len(files) == 0 {
		p.t.Fatalf("there is no history (%v)", err)
	}
	if got := p.read(files[len(files)-1]); !strings.Contains(got, `"message":"`+message+`"`) && !strings.Contains(got, `"message": "`+message+`"`) {
		p.t.Errorf("the history does not have the message %s: %.300s", message, got)
	}
}

// expectReports checks which reports came, each once.
func (p *pod) expectReports(types ...string) {
	p.t.Helper()
	for _, eventType := range []string{event.TypeRunTaken, event.TypeRunRunning, event.TypeRunFinished} {
		want := 0
		for _, wanted := range types {
			if wanted == eventType {
				want++
			}
		}
		if got := len(p.receiver.of(eventType)); got != want {
			p.t.Errorf("%d reports %s arrived, want %d", got, eventType, want)
		}
	}
}

func TestAStackLivesThroughAllOperations(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	steps := []struct {
		operation run.Operation
		changes   map[string]int64
		outputs   bool
	}{
		{run.Operation{Type: autov1alpha1.PreviewType}, map[string]int64{"create": 1}, false},
		{run.Operation{Type: autov1alpha1.UpType}, map[string]int64{"create": 1}, true},
		{run.Operation{Type: autov1alpha1.UpType, Refresh: true}, map[string]int64{"same": 1}, true},
		{run.Operation{Type: autov1alpha1.PreviewType, ExpectNoChanges: true}, map[string]int64{"same": 1}, false},
		{run.Operation{Type: autov1alpha1.RefreshType}, map[string]int64{"same": 1}, true},
		{run.Operation{Type: autov1alpha1.DestroyType, Remove: true}, map[string]int64{"delete": 1}, false},
	}
	for _, step := range steps {
		p := newPod(t, state, step.operation.Type, hello)
		p.spec.Operation = step.operation
		if got := p.run(); got.code != 0 {
			t.Fatalf("%s ended with exit code %d: %s", step.operation.Type, got.code, got.termination.Message)
		}
		finished := p.receiver.finished()
		if diff := cmp.Diff(step.changes, finished.Changes); diff != "" {
			t.Errorf("changes of %s: -want +got:\n%s", step.operation.Type, diff)
		}
		if got := finished.Outputs != nil; got != step.outputs {
			t.Errorf("%s reports the outputs %v", step.operation.Type, finished.Outputs)
		}
		if locks := p.locks(); len(locks) > 0 {
			t.Errorf("%s left the locks %v", step.operation.Type, locks)
		}
		removed := step.operation.Remove
		if exists := p.stackFile() != ""; exists == removed {
			t.Errorf("after %s the stack exists: %v", step.operation.Type, exists)
		}
	}
}

func TestConfigurationOfAllKindsReachesTheProgram(t *testing.T) {
	t.Parallel()
	yes := true
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, configured)
	p.write("secrets/db/password", "s3cret-s3cret\n", 0o600)
	p.write(run.EnvFile, "WORD=\"from an init container\"\n", 0o644)
	p.spec.Stack.Config = []autov1alpha1.ConfigItem{
		{Key: "count", Value: &apiextensionsv1.JSON{Raw: []byte("3")}},
		{Key: "shape", Value: &apiextensionsv1.JSON{Raw: []byte(`{"sides": [1, 2]}`)}},
		{Key: "word", ValueFrom: &autov1alpha1.ConfigValueFrom{Env: "WORD"}},
		{Key: "password", Secret: &yes, ValueFrom: &autov1alpha1.ConfigValueFrom{Path: "secrets/db/password"}},
		{Key: "list[0]", Path: &yes, Value: &apiextensionsv1.JSON{Raw: []byte(`"a"`)}},
		{Key: "list[1]", Path: &yes, Secret: &yes, Value: &apiextensionsv1.JSON{Raw: []byte(`"b"`)}},
	}
	got := p.run()
	want := map[string]event.Output{
		"count":    {Value: json.RawMessage(`3`)},
		"side":     {Value: json.RawMessage(`2`)},
		"word":     {Value: json.RawMessage(`"from an init container"`)},
		"password": {Value: json.RawMessage(`"s3cret-s3cret\n"`), Secret: true},
	}
	if diff := cmp.Diff(want, p.receiver.finished().Outputs, asJSON); diff != "" {
		t.Errorf("outputs: -want +got:\n%s", diff)
	}
	if strings.Contains(got.log, "s3cret-s3cret") {
		t.Errorf("the log shows a secret:\n%s", got.log)
	}
	config := p.read(filepath.Join(p.root, run.WorkspaceLink, "Pulumi.dev.yaml"))
	if !strings.Contains(config, "app:list:\n    - a\n    - secure: ") || strings.Contains(config, "s3cret-s3cret") {
		t.Errorf("the stack's configuration is\n%s", config)
	}

	// The next run has a workspace of its own: what it is not told is gone.
	next := newPod(t, p.state, autov1alpha1.UpType, configured)
	next.write(run.EnvFile, "WORD=x\n", 0o644)
	next.spec.Stack.Config = p.spec.Stack.Config[:3]
	if got := next.run(); got.code != 1 || !strings.Contains(got.termination.Message, "missing configuration value 'password'") {
		t.Errorf("a value that is no longer configured is still there: exit code %d, %+v", got.code, got.termination)
	}
}

func TestASecretIsNotInTheMessageOfAFailure(t *testing.T) {
	t.Parallel()
	yes := true
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, hello)
	p.fakeCLI("3.276.0", `if [ "$2" = up ]; then echo "error: hunter2hunter2@db: no such user" >&2; exit 1; fi`)
	p.spec.Stack.Config = []autov1alpha1.ConfigItem{{Key: "place", Secret: &yes, Value: &apiextensionsv1.JSON{Raw: []byte(`"hunter2hunter2"`)}}}
	p.expectEnding(p.run(), ending{"failed", "UpdateFailed", "error: [secret]@db: no such user"})
}

func TestAFolderOfAVolumeIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	volume := t.TempDir()
	for range 2 {
		p := newPod(t, t.TempDir(), autov1alpha1.UpType, "")
		if err := os.WriteFile(filepath.Join(volume, "Pulumi.yaml"), []byte(hello), 0o644); err != nil {
			t.Fatal(err)
		}
		p.spec.Source = run.Source{Local: &autov1alpha1.LocalSource{Dir: volume}}
		p.spec.Stack.Config = []autov1alpha1.ConfigItem{{Key: "word", Value: &apiextensionsv1.JSON{Raw: []byte(`"w"`)}}}
		if got := p.run(); got.code != 0 {
			t.Fatalf("exit code = %d: %s", got.code, got.termination.Message)
		}
		files, err := os.ReadDir(volume)
		if err != nil || len(files) != 1 {
			t.Errorf("the folder holds %v (%v), want Pulumi.yaml alone", files, err)
		}
	}
}

func TestAReportIsSentUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, hello)
	p.receiver.answer = func(r report, earlier int) int {
		if earlier < 2 && r.eventType != event.TypeRunRunning {
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	}
	if got := p.run(); got.code != 0 {
		t.Errorf("exit code = %d", got.code)
	}
	for _, eventType := range []string{event.TypeRunTaken, event.TypeRunFinished} {
		var statuses []int
		for _, r := range p.receiver.of(eventType) {
			statuses = append(statuses, r.status)
		}
		if diff := cmp.Diff([]int{503, 503, 204}, statuses); diff != "" {
			t.Errorf("answers to %s: -want +got:\n%s", eventType, diff)
		}
	}
}

func TestARefusedRunDoesNothing(t *testing.T) {
	t.Parallel()
	p := newPod(t, t.TempDir(), autov1alpha1.UpType, hello)
	p.receiver.answer = func(report, int) int { return http.StatusConflict }
	if got := p.run(); got.code != 0 || got.termination != (event.Termination{}) {
		t.Errorf("exit code = %d, termination message %+v; want 0 and none", got.code, got.termination)
	}
	p.expectReports(event.TypeRunTaken)
	if files, err := os.ReadDir(p.state); err != nil || len(files) > 0 {
		t.Errorf("the backend was touched: %v (%v)", files, err)
	}
	if _, err := os.Stat(filepath.Join(p.root, ".pulumi")); !os.IsNotExist(err) {
		t.Errorf("the CLI was run: %v", err)
	}
}

func TestARunThatIsSettledOtherwiseIsLeft(t *testing.T) {
	t.Parallel()
	p := newPod(t, t.TempDir(), autov1alpha1.PreviewType, hello)
	p.receiver.answer = func(r report, _ int) int {
		if r.eventType == event.TypeRunFinished {
			return http.StatusConflict
		}
		return http.StatusNoContent
	}
	if got := p.run(); got.code != 0 || got.termination.State != "succeeded" {
		t.Errorf("exit code = %d, termination message %+v", got.code, got.termination)
	}
	p.receiver.finished()
}

// TestTheCLIIsStartedOnlyForWhatIsNeeded counts its processes: each costs a run
// about 0.2 s.
func TestTheCLIIsStartedOnlyForWhatIsNeeded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		program      string
		unset        string
		shown, clear string
		want         event.Output
		commands     string
	}{
		"Outputs in clear are read once": {
			program: hello, unset: noAcquisition,
			shown: `{"a":"b"}`, clear: `{"a":"never read"}`, want: event.Output{Value: json.RawMessage(`"b"`)},
			commands: "stack select, up, stack output",
		},
		"A program of another language is installed": {
			program: "name: app\nruntime: nodejs\n", unset: noAcquisition,
			shown: `{"a":"b"}`, want: event.Output{Value: json.RawMessage(`"b"`)},
			commands: "install, stack select, up, stack output",
		},
		"A program with packages is installed": {
			program: packaged, unset: noAcquisition,
			shown: `{"a":"b"}`, want: event.Output{Value: json.RawMessage(`"b"`)},
			commands: "install, stack select, up, stack output",
		},
		"A program whose plugins an operation may not install is installed": {
			program: hello,
			shown:   `{"a":"b"}`, want: event.Output{Value: json.RawMessage(`"b"`)},
			commands: "install, stack select, up, stack output",
		},
		"Outputs that are masked are read again": {
			program: hello, unset: noAcquisition,
			shown: `{"a":{"b":"[secret]"}}`, clear: `{"a":{"b":"hunter2"}}`, want: event.Output{Value: json.RawMessage(`{"b":"hunter2"}`), Secret: true},
			commands: "stack select, up, stack output, stack output",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, t.TempDir(), autov1alpha1.UpType, c.program)
			p.unset = c.unset
			p.fakeCLI("3.276.0", `case "$*" in
				*"stack output"*--show-secrets*) echo '`+c.clear+`'; exit 0;;
				*"stack output"*) echo '`+c.shown+`'; exit 0;;
			esac`)
			if got := p.run(); got.code != 0 {
				t.Fatalf("exit code = %d: %s", got.code, got.termination.Message)
			}
			if diff := cmp.Diff(map[string]event.Output{"a": c.want}, p.receiver.finished().Outputs, asJSON); diff != "" {
				t.Errorf("outputs: -want +got:\n%s", diff)
			}
			var commands []string
			for line := range strings.Lines(p.read(filepath.Join(p.root, "arguments"))) {
				words := strings.Fields(line)[1:] // after --non-interactive
				if words[0] == "stack" {
					words[0] += " " + words[1]
				}
				commands = append(commands, words[0])
			}
			if diff := cmp.Diff(c.commands, strings.Join(commands, ", ")); diff != "" {
				t.Errorf("processes of the CLI: -want +got:\n%s", diff)
			}
		})
	}
}
