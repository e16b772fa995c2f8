package stack

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// release takes the finalizer off a Stack, and deletes what was made for it and
// bears no owner.
func (f *Function) release(ctx context.Context, w stack.World, v stack.Verdict) error {
	s := w.Stack.DeepCopy()
	s.Status = v.Status
	record.RemoveFinalizer(s)
	if err := f.tellDeleted(ctx, s); err != nil {
		return err
	}
	if _, err := f.writeStack(ctx, s); err != nil {
		return err
	}
	f.Log.InfoContext(ctx, "Stack released", "namespace", s.Namespace, "name", s.Name)
	return f.cleanUp(ctx, s.Namespace, s.Name, "")
}

// cleanUp deletes the Workspace and the Updates of this name that were made for
// a Stack of another UID than this one ("" if there is no Stack).
func (f *Function) cleanUp(ctx context.Context, namespace, name string, uid types.UID) error {
	updates, err := f.updatesOf(ctx, namespace, name)
	if err != nil {
		return err
	}
	for i := range updates {
		if err := f.deleteOrphan(ctx, &updates[i], uid); err != nil {
			return err
		}
	}
	ws, err := record.Found(f.Clients.Pulumi.AutoV1alpha1().Workspaces(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Workspace %s: %w", name, err)
	}
	if ws == nil || ws.Annotations[pulumiv1.AnnotationStackUID] == "" || ws.Annotations[pulumiv1.AnnotationStackUID] == string(uid) {
		return nil
	}
	if ws.DeletionTimestamp != nil {
		return f.releaseWorkspace(ctx, ws)
	}
	err = f.Clients.Pulumi.AutoV1alpha1().Workspaces(namespace).Delete(ctx, name, record.Only(ws))
	if record.Gone(err) != nil {
		return fmt.Errorf("cannot delete Workspace %s: %w", name, err)
	}
	return nil
}

// reclaim deletes the Workspace of a Stack that is up to date.
func (f *Function) reclaim(ctx context.Context, w stack.World, v stack.Verdict) error {
	err := f.Clients.Pulumi.AutoV1alpha1().Workspaces(w.Workspace.Namespace).Delete(ctx, w.Workspace.Name, record.Only(w.Workspace))
	if record.Gone(err) != nil {
		return fmt.Errorf("cannot delete Workspace %s: %w", w.Workspace.Name, err)
	}
	return f.rest(ctx, w, v)
}

// lookAtWorkspace lets a deleted Workspace go once no run is in it, wakes the
// Updates that waited for one, then looks at the Stack of its name.
func (f *Function) lookAtWorkspace(ctx context.Context, namespace, name string) error {
	ws, err := record.Found(f.Clients.Pulumi.AutoV1alpha1().Workspaces(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Workspace %s: %w", name, err)
	}
	if ws != nil && ws.DeletionTimestamp != nil {
		if err := f.releaseWorkspace(ctx, ws); err != nil {
			return err
		}
	}
	if ws != nil && ws.DeletionTimestamp == nil && ws.Status.Run == nil {
		if err := f.wakeWaiting(ctx, ws); err != nil {
			return err
		}
	}
	_, err = f.lookAtStack(ctx, namespace, name)
	return err
}

// wakeWaiting asks for a look at each Update that waits for this Workspace to be
// there, or to be as it can run.
func (f *Function) wakeWaiting(ctx context.Context, ws *autov1alpha1.Workspace) error {
	list, err := f.Clients.Pulumi.AutoV1alpha1().Updates(ws.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.workspaceName=" + ws.Name})
	if err != nil {
		return fmt.Errorf("cannot list the Updates of Workspace %s: %w", ws.Name, err)
	}
	for i := range list.Items {
		u := &list.Items[i]
		progress := meta.FindStatusCondition(u.Status.Conditions, autov1alpha1.UpdateProgressing)
		if u.Settled() || progress == nil || progress.Reason != string(autov1alpha1.ReasonWorkspaceNotFound) && progress.Reason != string(autov1alpha1.ReasonWorkspaceNotReady) {
			continue
		}
		about := event.Ref{Kind: event.KindUpdate, Namespace: u.Namespace, Name: u.Name}
		id := fmt.Sprintf("%s/workspace/%s/%d", u.UID, ws.UID, ws.Generation)
		if err := f.Broker.Send(ctx, event.NewDue(Name, id, about)); err != nil {
			return err
		}
	}
	return nil
}

// releaseWorkspace takes the finalizer off a deleted Workspace whose lock is
// nobody's.
func (f *Function) releaseWorkspace(ctx context.Context, ws *autov1alpha1.Workspace) error {
	if !record.HasFinalizer(ws) {
		return nil
	}
	ended, err := record.HolderEnded(ctx, f.Clients.Pulumi, ws)
	if err != nil || !ended {
		return err
	}
	next := ws.DeepCopy()
	record.RemoveFinalizer(next)
	_, err = f.Clients.Pulumi.AutoV1alpha1().Workspaces(ws.Namespace).Update(ctx, next, metav1.UpdateOptions{FieldManager: Name})
	if err != nil {
		return fmt.Errorf("cannot release Workspace %s: %w", ws.Name, err)
	}
	return nil
}

// lookAtProgram records that the Program was seen, and asks for a look at each
// Stack that names it.
func (f *Function) lookAtProgram(ctx context.Context, namespace, name string) error {
	program, err := record.Found(f.Clients.Pulumi.PulumiV1().Programs(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Program %s: %w", name, err)
	}
	if program != nil && program.Status.ObservedGeneration == program.Generation {
		return nil // an event of our own write
	}
	stacks, err := f.Clients.Pulumi.PulumiV1().Stacks(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.programRef.name=" + name})
	if err != nil {
		return fmt.Errorf("cannot list the Stacks of Program %s: %w", name, err)
	}
	for i := range stacks.Items {
		s := &stacks.Items[i]
		about := event.Ref{Kind: event.KindStack, Namespace: namespace, Name: s.Name}
		if err := f.Broker.Send(ctx, event.NewDue(Name, string(s.UID)+"/program/"+name+"/"+generation(program), about)); err != nil {
			return err
		}
	}
	if program == nil {
		return nil
	}
	next := program.DeepCopy()
	next.Status.ObservedGeneration = program.Generation
	_, err = f.Clients.Pulumi.PulumiV1().Programs(namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: Name})
	if err != nil {
		return fmt.Errorf("cannot write the status of Program %s: %w", name, err)
	}
	return nil
}

func generation(program *pulumiv1.Program) string {
	if program == nil {
		return "gone"
	}
	return fmt.Sprint(program.Generation)
}
