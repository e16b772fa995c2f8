package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	project "github.com/pulumi/pulumi/sdk/v3/go/common/workspace"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/run"
)

// streams get what the CLI prints: the pod's log.
type streams struct {
	out, err io.Writer
}

// workspace is the folder of a run, and the CLI in it.
type workspace struct {
	cli     *command
	local   auto.Workspace
	stack   auto.Stack
	spec    run.Spec
	streams streams
	// project and runtime of the program.
	project, runtime string
	// installs says that the program has something to install that the operation
	// would not.
	installs bool
	// borrowed is the stack's configuration in a folder that is not the run's
	// own, as it was.
	borrowed *keptFile
}

// openWorkspace opens the folder that holds Pulumi.yaml.
func openWorkspace(ctx context.Context, c Config, spec run.Spec, cli *command) (*workspace, error) {
	dir, err := projectFolder(c, spec.Source)
	if err != nil {
		return nil, err
	}
	local, err := auto.NewLocalWorkspace(ctx, auto.WorkDir(dir), auto.Pulumi(cli), auto.SecretsProvider(spec.Stack.SecretsProvider))
	if err != nil {
		return nil, faultf(autov1alpha1.ReasonWorkspaceFailed, "The workspace cannot be opened: %v", err)
	}
	settings, err := local.ProjectSettings(ctx)
	if err != nil {
		return nil, faultf(autov1alpha1.ReasonWorkspaceFailed, "The project cannot be read: %v", err)
	}
	w := &workspace{
		cli: cli, local: local, spec: spec, streams: streams{out: c.Stdout, err: c.Stderr},
		project: settings.Name.String(), runtime: settings.Runtime.Name(), installs: needsInstall(settings, cli.env),
	}
	if spec.Source.Local != nil {
		name := spec.Stack.Name[strings.LastIndex(spec.Stack.Name, "/")+1:]
		if w.borrowed, err = keep(filepath.Join(dir, settings.StackConfigDir, "Pulumi."+name+".yaml")); err != nil {
			return nil, faultf(autov1alpha1.ReasonWorkspaceFailed, "The stack's configuration cannot be read: %v", err)
		}
	}
	return w, nil
}

// needsInstall is false for a Pulumi YAML program without packages of its own: that
// language has no dependencies to install, and each operation installs the plugins
// that it lacks by itself, if it may. To find that out the CLI would be started for
// 0.3 s.
func needsInstall(settings *project.Project, env environment) bool {
	forbidden, _ := env.lookup(envNoAcquisition)
	return settings.Runtime.Name() != "yaml" || len(settings.Packages) > 0 || forbidden != ""
}

// envNoAcquisition has operations install no plugin; "pulumi install" does all the same.
const envNoAcquisition = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"

// leave gives back what is not the run's own. Any other workspace is new for
// each run; a local folder may be in a volume that outlives it, and what one
// run configures is not for the next.
func (w *workspace) leave(log *slog.Logger) {
	if w.borrowed == nil {
		return
	}
	if err := w.borrowed.restore(); err != nil {
		log.Warn("cannot restore the stack's configuration in the local folder", "error", err)
	}
}

// projectFolder finds the folder that holds the project, or says what is
// missing.
func projectFolder(c Config, source run.Source) (string, error) {
	dir, err := filepath.EvalSymlinks(c.workspace())
	switch {
	case err != nil && source.Local != nil:
		return "", faultf(autov1alpha1.ReasonWorkspaceFailed,
			"The folder %s of the source local is not in the image and in no volume: %v", source.Local.Dir, reasonOf(err))
	case err != nil:
		return "", faultf(autov1alpha1.ReasonWorkspaceFailed,
			"There is no workspace: set a source, or make %s in an init container: %v", c.workspace(), reasonOf(err))
	}
	for _, name := range []string{"Pulumi.yaml", "Pulumi.yml", "Pulumi.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return dir, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", faultf(autov1alpha1.ReasonWorkspaceFailed, "The project cannot be read: %v", err)
		}
	}
	return "", faultf(autov1alpha1.ReasonWorkspaceFailed, "There is no Pulumi.yaml in the source's folder %s: correct its dir", dir)
}

// reasonOf takes the path off an error of the file system.
func reasonOf(err error) error {
	if why, ok := errors.AsType[*fs.PathError](err); ok {
		return why.Err
	}
	return err
}

// prepare makes the workspace ready for an operation.
func (w *workspace) prepare(ctx context.Context, settings []setting) error {
	for _, step := range []struct {
		phase, what string
		needed      bool
		do          func(context.Context) error
	}{
		{run.PhaseInstall, "The project's dependencies cannot be installed", w.installs, w.install},
		{run.PhaseSelect, "The stack cannot be selected", true, w.selectStack},
		{run.PhaseConfig, "The configuration cannot be set", len(settings) > 0, func(ctx context.Context) error { return w.configure(ctx, settings) }},
		{run.PhaseEnvironments, "The environments cannot be added", len(w.spec.Stack.Environment) > 0, w.addEnvironments},
	} {
		if !step.needed {
			continue
		}
		err := w.cli.tracing.phase(ctx, step.phase, func(ctx context.Context) error {
			last, err := w.cli.try(func() error { return step.do(ctx) })
			if err != nil {
				return w.faultOfStep(step.what, last, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// faultOfStep sorts the error of a step by what the CLI said.
func (w *workspace) faultOfStep(what string, last ended, err error) error {
	var known *fault
	switch {
	case errors.As(err, &known):
		return err
	case last.stopped, errors.Is(err, errStopped):
		return errStopped
	case !last.ran:
		return faultf(autov1alpha1.ReasonWorkspaceFailed, "%s: %v", what, err)
	}
	words := explain(last.stdout, last.stderr)
	if words == "" {
		words = silence(last.code)
	}
	if f := faultOfBackend(w.spec.Stack.Name, last.stderr, words); f != nil {
		return f
	}
	if f := faultOfProgram(words); f != nil { // whichever step came upon it
		return f
	}
	return faultf(autov1alpha1.ReasonWorkspaceFailed, "%s: %s", what, hinted(words))
}

// faultOfProgram tells that a program cannot be read; nil is another error.
func faultOfProgram(words string) *fault {
	if !mistake.MatchString(words) {
		return nil
	}
	words = strings.Replace(words, lookingForPackages, "", 1)
	return faultf(autov1alpha1.ReasonUpdateFailed, "The program is not valid: %s", strings.TrimRight(words, "; \n"))
}

// mistake is how the CLI tells where in a Pulumi YAML program something is wrong,
// when it looks there for the providers to install: an install says just that, an
// operation what it was about.
var mistake = regexp.MustCompile(`(?m)^(?:error: )?(?:` + lookingForPackages + `)?Pulumi\.ya?ml:\d+,\d+`)

const lookingForPackages = "failed to discover package requirements: "

// tokenTexts are the errors of a backend that does not take the access token.
var tokenTexts = []string{"invalid access token", "[401] Unauthorized", "Unauthorized: No credentials provided or are invalid",
	"PULUMI_ACCESS_TOKEN must be set"}

// faultOfBackend tells the errors of a state backend that have a reason of
// their own; nil is none of them.
func faultOfBackend(stack, stderr, words string) *fault {
	if lock := parseLock(stderr); lock.locked {
		return lock.fault(stack)
	}
	for _, text := range tokenTexts {
		if strings.Contains(stderr, text) {
			return faultf(autov1alpha1.ReasonInvalidAccessToken, "%s", hinted(words))
		}
	}
	return nil
}

func (w *workspace) install(ctx context.Context) error {
	return w.local.Install(ctx, &auto.InstallOptions{Stdout: w.streams.out, Stderr: w.streams.err})
}

// selectStack selects the stack, or creates it if it is missing and may be. The CLI
// does both in one start; the Automation API would start it twice.
func (w *workspace) selectStack(ctx context.Context) error {
	name := w.spec.Stack.Name
	if create := w.spec.Stack.Create; create == nil || *create {
		w.cli.selecting = []string{"--create"}
		if provider := w.spec.Stack.SecretsProvider; provider != "" {
			w.cli.selecting = append(w.cli.selecting, "--secrets-provider", provider)
		}
	}
	stack, err := auto.SelectStack(ctx, name, w.local)
	if err != nil && auto.IsSelectStack404Error(err) {
		return faultf(autov1alpha1.ReasonWorkspaceFailed,
			"The stack %s does not exist and may not be created: create it with pulumi stack init, or allow that it is created", name)
	}
	w.stack = stack
	return err
}

func (w *workspace) configure(ctx context.Context, settings []setting) error {
	calls, err := plan(settings, w.spec.Stack.Name, w.cli.version)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if _, _, code, err := w.cli.Run(ctx, w.local.WorkDir(), strings.NewReader(c.stdin), nil, nil, c.env, c.args...); err != nil {
			return fmt.Errorf("pulumi %s %s ended with exit code %d: %w", c.args[0], c.args[1], code, err)
		}
	}
	return nil
}

func (w *workspace) addEnvironments(ctx context.Context) error {
	return w.stack.AddEnvironments(ctx, w.spec.Stack.Environment...)
}
