package status

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
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
	_, err = f.Clients.Pulumi.PulumiV1().Stacks(u.Namespace).UpdateStatus(ctx, folded, metav1.UpdateOptions{FieldManager: Name})
	if err != nil {
		return fmt.Errorf("cannot fold Update %s into Stack %s: %w", u.Name, name, err)
	}
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

// tellEnd wakes the Updates that wait for the Workspace and the Stacks that wait
// for this one, and tells other systems.
func (f *Function) tellEnd(ctx context.Context, u *autov1alpha1.Update) error {
	if err := f.wakeUpdates(ctx, u); err != nil {
		return err
	}
	state := ""
	if u.Status.Result != nil {
		state = string(u.Status.Result.State)
	}
	if state != string(autov1alpha1.ResultNotRun) {
		if err := record.Happened(ctx, f.Clients.Core, Name, updateHappening(u), f.Now()); err != nil {
			return err
		}
	}
	about := event.Ref{Kind: event.KindUpdate, Namespace: u.Namespace, Name: u.Name}
	if run.Taken(u) {
		if err := f.tell(ctx, event.TypeRunFinished, string(u.UID)+"/finished", about, told(u, state)); err != nil {
			return err
		}
	}
	return f.tellStack(ctx, u, state)
}

// ended is the data of an event for other systems: names, states, counts and
// links only.
type ended struct {
	Update    string           `json:"update"`
	Type      string           `json:"type"`
	State     string           `json:"state"`
	Reason    string           `json:"reason,omitempty"`
	Changes   map[string]int64 `json:"changes,omitempty"`
	Permalink string           `json:"permalink,omitempty"`
}

func told(u *autov1alpha1.Update, state string) *ended {
	e := &ended{Update: u.Name, Type: string(u.Spec.Type), State: state, Reason: string(u.FailedReason()), Permalink: u.Status.Permalink}
	if u.Status.Result != nil {
		e.Changes = u.Status.Result.Changes
	}
	return e
}

// tellStack tells what the Update made of its Stack, and wakes the Stacks that
// have it as a prerequisite.
func (f *Function) tellStack(ctx context.Context, u *autov1alpha1.Update, state string) error {
	if state == string(autov1alpha1.ResultNotRun) {
		return nil
	}
	name, s, err := f.stackOf(ctx, u)
	if err != nil || name == "" {
		return err
	}
	about := event.Ref{Kind: event.KindStack, Namespace: u.Namespace, Name: name}
	if s == nil || string(s.UID) != u.Annotations[pulumiv1.AnnotationStackUID] {
		if u.Spec.Type == autov1alpha1.DestroyType && state == string(autov1alpha1.ResultSucceeded) {
			return f.tell(ctx, event.TypeStackDeleted, string(u.UID)+"/"+state, about, told(u, state))
		}
		return nil
	}
	if s.Status.LastUpdate == nil || s.Status.LastUpdate.Name != u.Name {
		return nil
	}
	if err := record.Happened(ctx, f.Clients.Core, Name, stackHappening(s, u), f.Now()); err != nil {
		return err
	}
	kind := stackEvent(s, u)
	if err := f.tell(ctx, kind, string(u.UID)+"/"+state, about, told(u, state)); err != nil {
		return err
	}
	return f.wakeDependents(ctx, s, u)
}

func stackEvent(s *pulumiv1.Stack, u *autov1alpha1.Update) string {
	switch {
	case s.Status.LastUpdate.State != pulumiv1.SucceededStackStateMessage && meta.IsStatusConditionTrue(s.Status.Conditions, pulumiv1.StalledCondition):
		return event.TypeStackStalled
	case s.Status.LastUpdate.State != pulumiv1.SucceededStackStateMessage:
		return event.TypeStackFailed
	case u.Spec.Type == autov1alpha1.DestroyType:
		return event.TypeStackDeleted
	default:
		return event.TypeStackSucceeded
	}
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

func (f *Function) tell(ctx context.Context, kind, id string, about event.Ref, data any) error {
	e, err := event.New(kind, Name, id, about, data)
	if err != nil {
		return err
	}
	return f.Broker.Send(ctx, e)
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
