package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/debug"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/events"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optdestroy"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optpreview"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optrefresh"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optup"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

const (
	// userAgent names Updraft to the backend.
	userAgent = "updraft"
	// noColor keeps colours out of the log.
	noColor = "never"
)

// operation is one operation on a stack.
type operation struct {
	run.Operation
	stack *auto.Stack
	// verbosity of the CLI's own log; 0 is off.
	verbosity int32
	// streams get what the CLI prints.
	streams streams
}

// known says whether the type of an operation is one that can be run.
func known(t autov1alpha1.UpdateType) bool {
	switch t {
	case autov1alpha1.UpType, autov1alpha1.PreviewType, autov1alpha1.RefreshType, autov1alpha1.DestroyType:
		return true
	default:
		return false
	}
}

// do runs the operation. The outputs are those that the Automation API has read
// along the way; nil if it has read none.
func (o operation) do(ctx context.Context, channel chan<- events.EngineEvent) (auto.OutputMap, error) {
	switch o.Type {
	case autov1alpha1.UpType:
		result, err := o.stack.Up(ctx, o.up(channel)...)
		return result.Outputs, err
	case autov1alpha1.PreviewType:
		_, err := o.stack.Preview(ctx, o.preview(channel)...)
		return nil, err
	case autov1alpha1.RefreshType:
		_, err := o.stack.Refresh(ctx, o.refresh(channel)...)
		return nil, err
	case autov1alpha1.DestroyType:
		_, err := o.stack.Destroy(ctx, o.destroy(channel)...)
		return nil, err
	default:
		return nil, fmt.Errorf("unsupported type of operation %q", o.Type)
	}
}

func (o operation) up(channel chan<- events.EngineEvent) []optup.Option {
	options := []optup.Option{
		optup.UserAgent(userAgent), optup.Color(noColor), optup.Diff(), optup.SuppressProgress(), optup.ShowSecrets(false),
		optup.Message(o.Message), optup.Parallel(o.parallel()), optup.Replace(o.Replace), optup.Target(o.Target),
		optup.DebugLogging(o.debug()), optup.EventStreams(channel),
		optup.ProgressStreams(o.streams.out), optup.ErrorProgressStreams(o.streams.err),
	}
	options = addIf(options, o.ExpectNoChanges, optup.ExpectNoChanges)
	options = addIf(options, o.TargetDependents, optup.TargetDependents)
	options = addIf(options, o.Operation.Refresh, optup.Refresh)
	return addIf(options, o.ContinueOnError, optup.ContinueOnError)
}

func (o operation) preview(channel chan<- events.EngineEvent) []optpreview.Option {
	options := []optpreview.Option{
		optpreview.UserAgent(userAgent), optpreview.Color(noColor), optpreview.Diff(),
		optpreview.Message(o.Message), optpreview.Parallel(o.parallel()), optpreview.Replace(o.Replace), optpreview.Target(o.Target),
		optpreview.DebugLogging(o.debug()), optpreview.EventStreams(channel),
		optpreview.ProgressStreams(o.streams.out), optpreview.ErrorProgressStreams(o.streams.err),
	}
	options = addIf(options, o.ExpectNoChanges, optpreview.ExpectNoChanges)
	options = addIf(options, o.TargetDependents, optpreview.TargetDependents)
	return addIf(options, o.Operation.Refresh, optpreview.Refresh)
}

func (o operation) refresh(channel chan<- events.EngineEvent) []optrefresh.Option {
	options := []optrefresh.Option{
		optrefresh.UserAgent(userAgent), optrefresh.Color(noColor), optrefresh.ShowSecrets(false),
		optrefresh.Message(o.Message), optrefresh.Parallel(o.parallel()), optrefresh.Target(o.Target),
		optrefresh.DebugLogging(o.debug()), optrefresh.EventStreams(channel),
		optrefresh.ProgressStreams(o.streams.out), optrefresh.ErrorProgressStreams(o.streams.err),
	}
	options = addIf(options, o.ExpectNoChanges, optrefresh.ExpectNoChanges)
	return addIf(options, o.RunProgram, func() optrefresh.Option { return optrefresh.RunProgram(true) })
}

// destroy leaves the removal of the stack to its caller: the Automation API
// skips it if it cannot read the history first.
func (o operation) destroy(channel chan<- events.EngineEvent) []optdestroy.Option {
	options := []optdestroy.Option{
		optdestroy.UserAgent(userAgent), optdestroy.Color(noColor), optdestroy.ShowSecrets(false),
		optdestroy.Message(o.Message), optdestroy.Parallel(o.parallel()), optdestroy.Target(o.Target),
		optdestroy.DebugLogging(o.debug()), optdestroy.EventStreams(channel),
		optdestroy.ProgressStreams(o.streams.out), optdestroy.ErrorProgressStreams(o.streams.err),
	}
	options = addIf(options, o.TargetDependents, optdestroy.TargetDependents)
	options = addIf(options, o.Operation.Refresh, optdestroy.Refresh)
	options = addIf(options, o.ContinueOnError, optdestroy.ContinueOnError)
	return addIf(options, o.RunProgram, func() optdestroy.Option { return optdestroy.RunProgram(true) })
}

// addIf adds an option that is a mere yes.
func addIf[T any](options []T, yes bool, option func() T) []T {
	if yes {
		return append(options, option())
	}
	return options
}

func (o operation) parallel() int {
	if o.Parallel == nil {
		return 0
	}
	return int(*o.Parallel)
}

func (o operation) debug() debug.LoggingOptions {
	if o.verbosity <= 0 {
		return debug.LoggingOptions{}
	}
	level := uint(o.verbosity)
	return debug.LoggingOptions{LogLevel: &level, LogToStdErr: true}
}

// encodeOutputs turns outputs into what a report holds.
func encodeOutputs(outputs auto.OutputMap) (map[string]event.Output, error) {
	encoded := make(map[string]event.Output, len(outputs))
	for name, output := range outputs {
		value, err := encode(output.Value)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the output %s: %w", name, err)
		}
		encoded[name] = event.Output{Value: json.RawMessage(bytes.Clone(value)), Secret: output.Secret}
	}
	return encoded, nil
}

// permalink finds the address of an operation in the backend's console. A
// backend of files has no console.
func permalink(stdout string) string {
	link, err := auto.GetPermalink(stdout)
	if err != nil || (!strings.HasPrefix(link, "https://") && !strings.HasPrefix(link, "http://")) {
		return ""
	}
	return strings.TrimSpace(plain(link))
}
