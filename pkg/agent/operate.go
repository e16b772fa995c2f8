package agent

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

// result is what an operation came to.
type result struct {
	permalink string
	changes   map[string]int64
	outputs   map[string]event.Output
}

// operate runs the operation. If the dead hold the stack's lock, it takes the
// lock away and runs the operation once more, refreshing first where it can,
// since what the dead were at is left pending.
func (w *workspace) operate(ctx context.Context, log *slog.Logger) (r result, err error) {
	err = w.cli.tracing.phase(ctx, run.PhaseOperation, func(ctx context.Context) (err error) {
		r, err = w.operateOn(ctx, log)
		return err
	})
	return r, err
}

func (w *workspace) operateOn(ctx context.Context, log *slog.Logger) (result, error) {
	o := operation{Operation: w.spec.Operation, stack: &w.stack, verbosity: w.spec.LogVerbosity, streams: w.streams}
	r, process, err := w.once(ctx, o)
	if err == nil || process.stopped || r.begun {
		return r.result, err
	}
	lock := parseLock(process.stderr)
	if !lock.heldByEnded(w.spec.Ended) {
		return r.result, err
	}
	log.Warn("the stack is locked by earlier runs that have ended: taking their lock away", "holders", fmt.Sprint(lock.holders))
	if last, err := w.cli.try(func() error { return w.stack.Cancel(ctx) }); err != nil {
		return r.result, w.faultOfStep("The lock of an earlier run that has ended cannot be taken away", last, err)
	}
	o.Operation.Refresh = true
	r, _, err = w.once(ctx, o)
	return r.result, err
}

// attempt is one run of the operation.
type attempt struct {
	result
	progress
}

// once runs the operation once. Whether it succeeded is what its own process
// says: the Automation API also fails if it cannot read something afterwards.
func (w *workspace) once(ctx context.Context, o operation) (attempt, ended, error) {
	channel, seen := watch()
	var outputs auto.OutputMap
	process, err := w.cli.operate(func() (err error) {
		outputs, err = o.do(ctx, channel)
		return err
	})
	a := attempt{progress: seen()}
	a.result = result{permalink: permalink(process.stdout), changes: a.progress.changes}
	switch {
	case process.ran && process.code == 0:
		a.outputs, err = w.after(ctx, outputs, err)
	case process.stopped:
		err = errStopped
	case process.ran:
		err = w.faultOfOperation(a.progress, process)
	default:
		err = w.faultOfStep("The operation cannot be begun", ended{}, err)
	}
	return a, process, err
}

// faultOfOperation sorts the failure of an operation. A backend refuses before
// the engine begins; what is said later is the program's.
func (w *workspace) faultOfOperation(p progress, e ended) error {
	words := p.explain(e)
	if !p.begun {
		if f := faultOfBackend(w.spec.Stack.Name, e.stderr, words); f != nil {
			return f
		}
	}
	if f := faultOfProgram(words); f != nil {
		return f
	}
	return faultf(autov1alpha1.ReasonUpdateFailed, "%s", hinted(words))
}

// after does what follows a success: it reads the outputs of an up or a
// refresh, and removes a destroyed stack if that is asked for. A failure here
// is one of the run, and a repeat is harmless.
func (w *workspace) after(ctx context.Context, outputs auto.OutputMap, earlier error) (map[string]event.Output, error) {
	switch w.spec.Operation.Type {
	case autov1alpha1.UpType, autov1alpha1.RefreshType:
		if outputs == nil || earlier != nil {
			last, err := w.cli.try(func() (err error) {
				outputs, err = w.stack.Outputs(ctx)
				return err
			})
			if err != nil {
				return nil, w.faultAfter("The operation succeeded, but its outputs cannot be read", last, err)
			}
		}
		return encodeOutputs(outputs)
	case autov1alpha1.DestroyType:
		if !w.spec.Operation.Remove {
			return nil, nil
		}
		last, err := w.cli.try(func() error { return w.local.RemoveStack(ctx, w.spec.Stack.Name) })
		if err != nil {
			return nil, w.faultAfter("The resources were destroyed, but the stack cannot be removed", last, err)
		}
	case autov1alpha1.PreviewType: // leaves nothing behind
	}
	return nil, nil
}

// faultAfter is the fault of what follows a success.
func (w *workspace) faultAfter(what string, last ended, err error) error {
	f := faultOf(w.faultOfStep(what, last, err))
	if f.reason == autov1alpha1.ReasonWorkspaceFailed {
		f.reason = autov1alpha1.ReasonUpdateFailed
	}
	return f
}
