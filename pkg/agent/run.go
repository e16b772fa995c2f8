package agent

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/blang/semver"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

// Run does a run: it takes it, prepares the workspace, operates and settles.
// When stop is done it ends as soon and as gracefully as the CLI can. The
// answer is the exit code.
func Run(stop context.Context, c Config) int {
	spec, err := c.readSpec()
	if err != nil {
		c.terminate(faultf(autov1alpha1.ReasonWorkspaceFailed, "%v", err))
		return 1
	}
	if c.ReportURL == "" {
		c.terminate(faultf(autov1alpha1.ReasonWorkspaceFailed, "There is nobody to report to: %s is not set", run.EnvReportURL))
		return 1
	}
	r := &runner{Config: c, spec: spec, reporter: newReporter(c, spec), scrubber: newScrubber(c.Environ),
		finished: event.Finished{UID: spec.UID, Commit: c.revision()}, oomKilled: c.oomKills()}
	// It only looks, so that it need not wait for the answer.
	r.cli = sync.OnceValues(findCLI)
	go func() { _, _ = r.cli() }()
	stop, r.tracing = c.trace(stop)
	c.fetched(r.tracing.took)
	defer func() { r.tracing.close() }() // with the relay that it has by then
	stop, r.span = r.tracing.Start(stop, "run", ofRun(spec)...)
	defer r.span.End()
	r.reporter.tracing = r.tracing
	taken := r.reporter.post(stop, event.TypeRunTaken, "taken", event.Taken{UID: spec.UID})
	switch taken {
	case accepted:
	case refused:
		c.Log.Info("the run is another pod's, or settled: nothing to do")
		return 0
	case unsent:
		c.terminate(faultf(autov1alpha1.ReasonCanceled, "Stopped before the run was taken"))
		return 1
	default:
		c.terminate(faultf(autov1alpha1.ReasonUnknown, "The run cannot be taken: its report was rejected"))
		return 1
	}
	return r.settle(context.WithoutCancel(stop), r.perform(stop))
}

// runner is a run that was taken.
type runner struct {
	Config
	spec     run.Spec
	reporter *reporter
	scrubber *scrubber
	// finished is what there is to report, as far as it is known.
	finished event.Finished
	// running is the report that the operation has begun, if it goes on.
	running background
	// cli finds the version of the image's CLI.
	cli func() (semver.Version, error)
	// tracing of the run, and the run's own span.
	tracing tracing
	span    trace.Span
	// oomKilled is what oomKills was when the run began.
	oomKilled int
}

// perform prepares and operates. It fails with a fault or errStopped.
func (r *runner) perform(stop context.Context) error {
	// The stop is for the CLI, which ends gracefully, and not for the
	// Automation API, which would kill it and could do nothing more.
	ctx := context.WithoutCancel(stop)
	if !known(r.spec.Operation.Type) {
		return faultf(autov1alpha1.ReasonInvalid, "The type of operation %q is not known: use up, preview, refresh or destroy", r.spec.Operation.Type)
	}
	env, err := cliEnvironment(r.Config)
	if err != nil {
		return faultf(autov1alpha1.ReasonWorkspaceFailed, "%v", err)
	}
	r.scrubber = newScrubber(env)
	version, err := r.cli()
	if err != nil {
		return err
	}
	r.finished.PulumiVersion = version.String()
	if err := gate(version, false); err != nil {
		return err
	}
	cli := &command{version: version, env: env, started: r.begun}
	defer context.AfterFunc(stop, cli.Stop)()

	w, err := openWorkspace(ctx, r.Config, r.spec, cli)
	if err != nil {
		return err
	}
	defer w.leave(r.Log)
	r.finished.Project, r.finished.Runtime = w.project, w.runtime
	settings, err := r.settings(w.project, env)
	if err != nil {
		return err
	}
	if err := gate(version, isStructured(settings)); err != nil {
		return err
	}
	r.tracing.open(ctx, r.Config, r.scrubber.scrub) // it knows all secrets by now
	cli.tracing = r.tracing
	if err := w.prepare(ctx, settings); err != nil {
		return err
	}
	result, err := w.operate(ctx, r.Log)
	r.finished.Permalink, r.finished.Changes, r.finished.Outputs = result.permalink, result.changes, result.outputs
	return err
}

// settings finds the configuration, and makes its secrets known to whom must
// not tell them.
func (r *runner) settings(project string, env environment) ([]setting, error) {
	found, err := places{root: r.Root, lookup: env.lookup, readFile: os.ReadFile}.settings(project, r.spec.Stack.Config)
	for _, s := range found {
		if s.secret {
			r.scrubber.addSetting(s)
		}
	}
	return found, err
}

// begun reports that the CLI has begun the operation: whom its lock will name.
func (r *runner) begun(of context.Context, pid int) {
	r.running.stop()
	data := event.Running{UID: r.spec.UID, Host: r.Host, Pid: int64(pid)}
	r.running.start(context.WithoutCancel(of), func(ctx context.Context) {
		r.reporter.post(ctx, event.TypeRunRunning, "running/"+strconv.Itoa(pid), data)
	})
}

// settle tells how the run ended, twice: in the termination message, which
// cannot be lost, and in the report, which has all. A stop does not end it: the
// pod's grace does.
func (r *runner) settle(ctx context.Context, err error) int {
	r.running.stop()
	r.judge(err)
	say(r.span, err, semconv.CICDPipelineResultSuccess, semconv.CICDPipelineResultFailure, semconv.CICDPipelineResultCancellation)
	r.finished.Phases = r.tracing.took
	f := r.finished
	if f.Message != "" {
		r.Log.Error(f.Message, "state", f.State, "reason", f.Reason)
	}
	r.writeTermination(event.Termination{State: f.State, Reason: f.Reason, Message: f.Message})
	got := r.reporter.post(ctx, event.TypeRunFinished, "finished", f)
	if f.State != string(autov1alpha1.ResultSucceeded) || got == rejected {
		return 1
	}
	return 0
}

// judge fills in how the run ended.
func (r *runner) judge(err error) {
	f := &r.finished
	switch {
	case err == nil:
		f.State = string(autov1alpha1.ResultSucceeded)
		return
	case errors.Is(err, errStopped):
		f.State, f.Reason = string(autov1alpha1.ResultCanceled), string(autov1alpha1.ReasonCanceled)
		f.Message = "Stopped on request"
	default:
		why := faultOf(err)
		if r.oomKills() > r.oomKilled {
			why = faultf(autov1alpha1.ReasonOutOfMemory, "The run was out of memory and processes of it were killed; raise resources.limits.memory through workspaceTemplate: %s", why.message)
		}
		f.State, f.Reason = string(autov1alpha1.ResultFailed), string(why.reason)
		f.Message = shorten(r.scrubber.scrub(plain(why.message)), messageLimit)
	}
	f.Outputs = nil
}

// revision of the source, as init has left it.
func (c Config) revision() string {
	content, err := os.ReadFile(c.path(revisionFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// fetched adds how long the fetch took, as init has left it.
func (c Config) fetched(took map[string]float64) {
	if content, err := os.ReadFile(c.path(fetchedFile)); err == nil {
		if seconds, err := strconv.ParseFloat(string(content), 64); err == nil {
			took[run.PhaseFetch] = seconds
		}
	}
}

// background is one thing that goes on beside the run.
type background struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}
}

func (b *background) start(ctx context.Context, do func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	b.cancel, b.done = cancel, done
	go func() {
		defer close(done)
		do(ctx)
	}()
}

// stop ends it and waits until it has ended.
func (b *background) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel != nil {
		b.cancel()
		<-b.done
		b.cancel = nil
	}
}
