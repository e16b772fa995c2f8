package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/measure"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/stack"
	"github.com/updraft-dev/updraft/pkg/transport"
)

// Name of the function, and of its ServiceAccount.
const Name = "updraft-stack"

// maxSteps is how many writes one look may lead to: finalizer, withdrawal,
// claim, Workspace and Update, and one more to see that nothing is left.
const maxSteps = 6

// Function is the stack function.
type Function struct {
	Clients *record.Clients
	Alarms  *record.Alarms
	Broker  transport.Sender
	Now     func() time.Time
	Log     *slog.Logger

	seen seen
}

// Handle looks at what an event is about.
func (f *Function) Handle(ctx context.Context, e cloudevents.Event) error {
	about, err := event.About(e)
	if err != nil {
		return transport.Never(err)
	}
	switch about.Kind {
	case event.KindStack:
		f.seen.add(about)
		alarm, err := f.lookAtStack(ctx, about.Namespace, about.Name)
		if err != nil || e.Type() != event.TypePing || !alarm.IsZero() {
			return err
		}
		return f.Alarms.Clear(ctx, about) // a claim that was cut off left it
	case event.KindProgram:
		return f.lookAtProgram(ctx, about.Namespace, about.Name)
	case event.KindWorkspace:
		return f.lookAtWorkspace(ctx, about.Namespace, about.Name)
	case event.KindPoll: // it rang, and nobody needs it
		return f.Alarms.SyncPoll(ctx, f.Clients.Pulumi, about.Namespace, about.Name)
	default:
		return transport.Never(fmt.Errorf("the stack function does not look at a %s", about.Kind))
	}
}

// lookAtStack does what the Stack needs, and says when it has to be looked at
// again though nothing changes.
func (f *Function) lookAtStack(ctx context.Context, namespace, name string) (alarm time.Time, err error) {
	s, err := record.Found(f.Clients.Pulumi.PulumiV1().Stacks(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return alarm, fmt.Errorf("cannot get Stack %s: %w", name, err)
	}
	if s == nil {
		return alarm, f.cleanUp(ctx, namespace, name, "")
	}
	if err := f.Alarms.KeepPoll(ctx, f.Clients.Pulumi, s); err != nil {
		return alarm, err
	}
	for range maxSteps {
		w, err := record.World(ctx, f.Clients.Pulumi, s)
		if err != nil {
			return alarm, err
		}
		v := stack.Assess(w, f.Now())
		next, err := f.act(ctx, w, v)
		if err != nil || next == nil {
			return v.Alarm, err
		}
		s = next
	}
	return alarm, fmt.Errorf("stack %s needed more than %d steps", name, maxSteps)
}

// act does the one write that the verdict asks for. It returns the Stack as that
// write left it, to look again, or nil if the look is done.
func (f *Function) act(ctx context.Context, w stack.World, v stack.Verdict) (*pulumiv1.Stack, error) {
	if v.Action != stack.Nothing {
		f.Log.InfoContext(ctx, "Stack needs a write", "namespace", w.Stack.Namespace, "name", w.Stack.Name, "generation", w.Stack.Generation, "action", string(v.Action))
	}
	switch v.Action {
	case stack.AddFinalizer:
		s := w.Stack.DeepCopy()
		record.AddFinalizer(s)
		return f.writeStack(ctx, s)
	case stack.Claim:
		return f.claim(ctx, w, v)
	case stack.Finish:
		return f.finish(ctx, w, v)
	case stack.Withdraw:
		return f.writeStatus(ctx, w.Stack, v.Status)
	case stack.Reclaim:
		return nil, f.reclaim(ctx, w, v)
	case stack.Release:
		return nil, f.release(ctx, w, v)
	default:
		return nil, f.rest(ctx, w, v)
	}
}

// rest records where the Stack stands, sets its alarm and asks prerequisites
// that are out of date for a run.
func (f *Function) rest(ctx context.Context, w stack.World, v stack.Verdict) error {
	if err := f.alarm(ctx, w.Stack, v); err != nil {
		return err
	}
	for _, name := range v.Poke {
		if err := f.poke(ctx, w.Prerequisites[name]); err != nil {
			return err
		}
	}
	_, err := f.writeStatus(ctx, w.Stack, v.Status)
	return err
}

func (f *Function) alarm(ctx context.Context, s *pulumiv1.Stack, v stack.Verdict) error {
	about := event.Ref{Kind: event.KindStack, Namespace: s.Namespace, Name: s.Name}
	if v.Alarm.IsZero() {
		return nil // the claim cleared it
	}
	return f.Alarms.Set(ctx, s, pulumiv1.SchemeGroupVersion.String(), about, v.Alarm, f.Now())
}

func (f *Function) poke(ctx context.Context, prerequisite *pulumiv1.Stack) error {
	s := prerequisite.DeepCopy()
	value := stack.PokeValue(s)
	if s.Annotations[pulumiv1.AnnotationReconcileRequest] == value {
		return nil
	}
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	s.Annotations[pulumiv1.AnnotationReconcileRequest] = value
	_, err := f.writeStack(ctx, s)
	return err
}

// writeStack writes a Stack's finalizers and annotations, onto the version that
// was read. It does not send the spec: what a user wrote there comes out of Go's
// types a little different, an empty list is left out, and that would be a change
// of the spec by us.
func (f *Function) writeStack(ctx context.Context, s *pulumiv1.Stack) (*pulumiv1.Stack, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": s.ResourceVersion, "finalizers": s.Finalizers, "annotations": s.Annotations,
	}})
	if err != nil {
		return nil, fmt.Errorf("cannot write Stack %s: %w", s.Name, err)
	}
	written, err := f.Clients.Pulumi.PulumiV1().Stacks(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Name})
	if err != nil {
		return nil, fmt.Errorf("cannot write Stack %s: %w", s.Name, err)
	}
	return written, nil
}

// writeStatus writes a status that differs from the one that was read.
func (f *Function) writeStatus(ctx context.Context, read *pulumiv1.Stack, status pulumiv1.StackStatus) (*pulumiv1.Stack, error) {
	if equality.Semantic.DeepEqual(read.Status, status) {
		return read, nil
	}
	if err := f.tellStalled(ctx, read, &status); err != nil {
		return nil, err
	}
	s := read.DeepCopy()
	s.Status = status
	written, err := f.Clients.Pulumi.PulumiV1().Stacks(s.Namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{FieldManager: Name})
	if err != nil {
		return nil, fmt.Errorf("cannot write the status of Stack %s: %w", s.Name, err)
	}
	observe.Measured(ctx, measure.Stack(s.Namespace, &read.Status, &status)...)
	return written, nil
}
