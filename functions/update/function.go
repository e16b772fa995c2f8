package update

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/measure"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/pkg/transport"
)

// Name of the function, and of its ServiceAccount.
const Name = "updraft-update"

// maxSteps is how many writes one look may lead to: finalizer, lock, launch, and
// one more to see that nothing is left.
const maxSteps = 4

// Function is the update function.
type Function struct {
	Clients  *record.Clients
	Alarms   *record.Alarms
	Settings run.Settings
	Now      func() time.Time
	Log      *slog.Logger
}

// Handle looks at the Update that an event is about.
func (f *Function) Handle(ctx context.Context, e cloudevents.Event) error {
	about, err := event.About(e)
	if err != nil {
		return transport.Never(err)
	}
	switch about.Kind {
	case event.KindUpdate:
		if err := f.look(ctx, about); err != nil || e.Type() != event.TypePing {
			return err
		}
		return f.silence(ctx, about)
	case event.KindStack:
		return f.lookAtStack(ctx, about)
	default:
		return transport.Never(fmt.Errorf("the update function does not look at a %s", about.Kind))
	}
}

// lookAtStack looks at the Updates that a Stack's annotation asks to cancel, and at
// the claimed one if the Stack has changed since: it may have become needless.
func (f *Function) lookAtStack(ctx context.Context, about event.Ref) error {
	s, err := record.Found(f.Clients.Pulumi.PulumiV1().Stacks(about.Namespace).Get(ctx, about.Name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Stack %s: %w", about.Name, err)
	}
	if s == nil {
		return nil
	}
	canceled := s.AsksToCancel()
	for _, name := range canceled {
		if err := f.look(ctx, event.Ref{Kind: event.KindUpdate, Namespace: about.Namespace, Name: name}); err != nil {
			return err
		}
	}
	claim := s.Status.CurrentUpdate
	if claim == nil || slices.Contains(canceled, claim.Name) || claim.Generation == s.Generation && claim.ReconcileRequest == s.Annotations[pulumiv1.AnnotationReconcileRequest] {
		return nil
	}
	return f.look(ctx, event.Ref{Kind: event.KindUpdate, Namespace: about.Namespace, Name: claim.Name})
}

func (f *Function) look(ctx context.Context, about event.Ref) error {
	for range maxSteps {
		w, err := f.world(ctx, about)
		if err != nil || w == nil {
			return err
		}
		v := run.AssessLaunch(*w)
		if v.Action != run.LaunchNothing {
			f.Log.InfoContext(ctx, "Update needs a write", "namespace", about.Namespace, "name", about.Name, "action", string(v.Action), "reason", string(v.Reason))
		}
		again, err := f.act(ctx, w, v)
		if err != nil || !again {
			return err
		}
	}
	return fmt.Errorf("update %s needed more than %d steps", about.Name, maxSteps)
}

// world reads the Workspace, then the Update, then the Stack. It is nil if there
// is no Update, or one that is settled.
func (f *Function) world(ctx context.Context, about event.Ref) (*run.LaunchWorld, error) {
	updates := f.Clients.Pulumi.AutoV1alpha1().Updates(about.Namespace)
	first, err := record.Found(updates.Get(ctx, about.Name, metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("cannot get Update %s: %w", about.Name, err)
	}
	if first == nil {
		return nil, nil
	}
	observe.Saw(ctx, first)
	if first.Settled() {
		return nil, nil
	}
	w := &run.LaunchWorld{}
	if w.Workspace, err = f.workspace(ctx, first); err != nil {
		return nil, err
	}
	// The Update is read again, after the Workspace whose lock it may take.
	if w.Update, err = record.Found(updates.Get(ctx, about.Name, metav1.GetOptions{})); err != nil {
		return nil, fmt.Errorf("cannot get Update %s: %w", about.Name, err)
	}
	if w.Update == nil || w.Update.Settled() {
		return nil, nil
	}
	if err := f.complete(ctx, w); err != nil {
		return nil, err
	}
	return w, nil
}

func (f *Function) workspace(ctx context.Context, u *autov1alpha1.Update) (*autov1alpha1.Workspace, error) {
	if u.Spec.WorkspaceName == "" {
		return nil, nil
	}
	ws, err := record.Found(f.Clients.Pulumi.AutoV1alpha1().Workspaces(u.Namespace).Get(ctx, u.Spec.WorkspaceName, metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("cannot get Workspace %s: %w", u.Spec.WorkspaceName, err)
	}
	return ws, nil
}

// complete reads the rest of the world: Stack, Program, and whether another
// holder of the lock has ended.
func (f *Function) complete(ctx context.Context, w *run.LaunchWorld) error {
	namespace := w.Update.Namespace
	var err error
	if name := stackOf(w); name != "" {
		w.Stack, err = record.Found(f.Clients.Pulumi.PulumiV1().Stacks(namespace).Get(ctx, name, metav1.GetOptions{}))
		if err != nil {
			return fmt.Errorf("cannot get Stack %s: %w", name, err)
		}
	}
	if w.Workspace == nil {
		return nil
	}
	if p := w.Workspace.Spec.Program; p != nil {
		w.Program, err = record.Found(f.Clients.Pulumi.PulumiV1().Programs(namespace).Get(ctx, p.Name, metav1.GetOptions{}))
		if err != nil {
			return fmt.Errorf("cannot get Program %s: %w", p.Name, err)
		}
	}
	if holder := w.Workspace.Status.Run; holder != nil && holder.UID != w.Update.UID {
		w.HolderEnded, err = record.HolderEnded(ctx, f.Clients.Pulumi, w.Workspace)
	}
	return err
}

// stackOf is the name of the Stack that the Update or its Workspace was made
// for, "" if there is none.
func stackOf(w *run.LaunchWorld) string {
	if name := w.Update.Labels[pulumiv1.LabelStackName]; name != "" {
		return name
	}
	if w.Workspace != nil {
		return w.Workspace.Labels[pulumiv1.LabelStackName]
	}
	return ""
}

// act does the write that the verdict asks for, and says whether to look again.
func (f *Function) act(ctx context.Context, w *run.LaunchWorld, v run.LaunchVerdict) (again bool, err error) {
	now := metav1.NewTime(f.Now())
	switch v.Action {
	case run.LaunchFinalize:
		u := w.Update.DeepCopy()
		record.AddFinalizer(u)
		observe.Stamp(ctx, u)
		_, err := f.Clients.Pulumi.AutoV1alpha1().Updates(u.Namespace).Update(ctx, u, metav1.UpdateOptions{FieldManager: Name})
		return true, wrote(u, err)
	case run.LaunchWait:
		return false, f.writeStatus(ctx, w.Update, func(u *autov1alpha1.Update) { u.MarkWaiting(now, v.Reason, v.Message) })
	case run.LaunchSettle:
		return false, f.settle(ctx, w.Update, v, now)
	case run.LaunchStop:
		return false, record.DeleteRun(ctx, f.Clients.Batch, w.Update)
	case run.LaunchLock:
		ws := w.Workspace.DeepCopy()
		ws.Status.Run = &autov1alpha1.RunLock{Name: w.Update.Name, UID: w.Update.UID}
		_, err := f.Clients.Pulumi.AutoV1alpha1().Workspaces(ws.Namespace).UpdateStatus(ctx, ws, metav1.UpdateOptions{FieldManager: Name})
		if err != nil {
			return false, fmt.Errorf("cannot lock Workspace %s: %w", ws.Name, err)
		}
		return true, nil
	case run.LaunchRun:
		return false, f.launch(ctx, w, now)
	default:
		return false, f.alarm(ctx, w.Update)
	}
}

// settle ends an Update that no pod took. Its Job, if there is one, goes after
// it: a pod that comes up meanwhile is refused, since the Update is Complete.
func (f *Function) settle(ctx context.Context, u *autov1alpha1.Update, v run.LaunchVerdict, now metav1.Time) error {
	state := autov1alpha1.ResultNotRun
	if v.Reason == autov1alpha1.ReasonCanceled {
		state = autov1alpha1.ResultCanceled
	}
	if v.Reason == autov1alpha1.ReasonInvalid {
		state = autov1alpha1.ResultFailed
	}
	err := f.writeStatus(ctx, u, func(u *autov1alpha1.Update) {
		u.Status.Result = &autov1alpha1.UpdateResult{State: state, Message: v.Message}
		u.MarkFailed(now, v.Reason, v.Message)
	})
	if err != nil {
		return err
	}
	return record.DeleteRun(ctx, f.Clients.Batch, u)
}

// alarm wakes the Update when a pod that is gone is proven to have ended.
func (f *Function) alarm(ctx context.Context, u *autov1alpha1.Update) error {
	if u.Status.Run == nil || u.Status.Run.AbsentSince == nil || u.Status.Run.Phase == autov1alpha1.RunEnded {
		return nil
	}
	about := event.Ref{Kind: event.KindUpdate, Namespace: u.Namespace, Name: u.Name}
	return f.Alarms.Set(ctx, u, autov1alpha1.SchemeGroupVersion.String(), about, run.AbsentUntil(u), f.Now())
}

// silence clears an alarm that rang for an Update which no longer waits for it.
func (f *Function) silence(ctx context.Context, about event.Ref) error {
	u, err := record.Found(f.Clients.Pulumi.AutoV1alpha1().Updates(about.Namespace).Get(ctx, about.Name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Update %s: %w", about.Name, err)
	}
	if u != nil && !u.Settled() {
		return nil
	}
	return f.Alarms.Clear(ctx, about)
}

func (f *Function) writeStatus(ctx context.Context, read *autov1alpha1.Update, change func(*autov1alpha1.Update)) error {
	u := read.DeepCopy()
	change(u)
	if equality.Semantic.DeepEqual(read.Status, u.Status) {
		return nil
	}
	_, err := f.Clients.Pulumi.AutoV1alpha1().Updates(u.Namespace).UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: Name})
	if err == nil {
		observe.Measured(ctx, measure.Update(read, u)...)
	}
	return wrote(u, err)
}

func wrote(u *autov1alpha1.Update, err error) error {
	if err != nil {
		return fmt.Errorf("cannot write Update %s: %w", u.Name, err)
	}
	return nil
}
