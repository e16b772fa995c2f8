package status

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/measure"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// finish does all that follows once an Update is settled, as far as its run has
// ended.
func (f *Function) finish(ctx context.Context, u *autov1alpha1.Update) error {
	if err := f.fold(ctx, u); err != nil {
		return err
	}
	if !run.Ended(u, nil) {
		return nil // its pod's end wakes us again
	}
	if err := f.unlock(ctx, u); err != nil {
		return err
	}
	if err := f.tellEnd(ctx, u); err != nil {
		return err
	}
	if err := f.keepLog(ctx, u); err != nil {
		return err
	}
	if err := record.DeleteRun(ctx, f.Clients.Batch, u); err != nil {
		return err
	}
	return f.letGo(ctx, u)
}

// fold puts what the Update came to onto its Stack, conditions included, in one
// write. It is skipped if the Stack is gone or claims another Update.
func (f *Function) fold(ctx context.Context, u *autov1alpha1.Update) error {
	name, s, err := f.stackOf(ctx, u)
	if err != nil || s == nil {
		return err
	}
	status, folds := stack.Fold(s, u)
	if !folds {
		return nil
	}
	folded := s.DeepCopy()
	folded.Status = status
	w, err := record.World(ctx, f.Clients.Pulumi, folded)
	if err != nil {
		return err
	}
	folded.Status = stack.Assess(w, f.Now()).Status
	if equality.Semantic.DeepEqual(s.Status, folded.Status) {
		return nil
	}
	for _, n := range stalledNews(u, &s.Status, &folded.Status) {
		if err := f.tell(ctx, u, event.KindStack, name, n); err != nil {
			return err
		}
	}
	_, err = f.Clients.Pulumi.PulumiV1().Stacks(u.Namespace).UpdateStatus(ctx, folded, metav1.UpdateOptions{FieldManager: Name})
	if err != nil {
		return fmt.Errorf("cannot fold Update %s into Stack %s: %w", u.Name, name, err)
	}
	observe.Measured(ctx, measure.Stack(s.Namespace, &s.Status, &folded.Status)...)
	f.Log.InfoContext(ctx, "Update folded into its Stack", "namespace", u.Namespace, "name", u.Name, "stack", name)
	return nil
}

// unlock clears the Workspace's lock if this Update holds it.
func (f *Function) unlock(ctx context.Context, u *autov1alpha1.Update) error {
	if u.Spec.WorkspaceName == "" {
		return nil
	}
	ws, err := record.Found(f.Clients.Pulumi.AutoV1alpha1().Workspaces(u.Namespace).Get(ctx, u.Spec.WorkspaceName, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Workspace %s: %w", u.Spec.WorkspaceName, err)
	}
	if ws == nil || ws.Status.Run == nil || ws.Status.Run.UID != u.UID {
		return nil
	}
	next := ws.DeepCopy()
	next.Status.Run = nil
	next.Status.ObservedGeneration = ws.Generation
	if u.Status.Result != nil && u.Status.Result.PulumiVersion != "" {
		next.Status.PulumiVersion = u.Status.Result.PulumiVersion
	}
	_, err = f.Clients.Pulumi.AutoV1alpha1().Workspaces(u.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: Name})
	if err != nil {
		return fmt.Errorf("cannot unlock Workspace %s: %w", ws.Name, err)
	}
	return nil
}

func (f *Function) wakeUpdates(ctx context.Context, u *autov1alpha1.Update) error {
	list, err := f.Clients.Pulumi.AutoV1alpha1().Updates(u.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.workspaceName=" + u.Spec.WorkspaceName})
	if err != nil {
		return fmt.Errorf("cannot list the Updates of Workspace %s: %w", u.Spec.WorkspaceName, err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == u.UID || other.Settled() {
			continue
		}
		about := event.Ref{Kind: event.KindUpdate, Namespace: other.Namespace, Name: other.Name}
		if err := f.Broker.Send(ctx, event.NewDue(Name, string(other.UID)+"/after/"+u.Name, about)); err != nil {
			return err
		}
	}
	return nil
}

func (f *Function) wakeDependents(ctx context.Context, s *pulumiv1.Stack, u *autov1alpha1.Update) error {
	list, err := f.Clients.Pulumi.PulumiV1().Stacks(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list the Stacks that depend on Stack %s: %w", s.Name, err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if !stack.DependsOn(other, s.Name) {
			continue
		}
		about := event.Ref{Kind: event.KindStack, Namespace: other.Namespace, Name: other.Name}
		if err := f.Broker.Send(ctx, event.NewDue(Name, string(other.UID)+"/after/"+u.Name, about)); err != nil {
			return err
		}
	}
	return nil
}

// letGo takes the finalizer off: nothing follows from this Update any more.
func (f *Function) letGo(ctx context.Context, u *autov1alpha1.Update) error {
	if !record.HasFinalizer(u) {
		return nil
	}
	next := u.DeepCopy()
	record.RemoveFinalizer(next)
	_, err := f.Clients.Pulumi.AutoV1alpha1().Updates(u.Namespace).Update(ctx, next, metav1.UpdateOptions{FieldManager: Name})
	if err != nil {
		return fmt.Errorf("cannot release Update %s: %w", u.Name, err)
	}
	return nil
}
