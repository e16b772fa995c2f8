package stack

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// claim writes a new claim, or adopts an Update of this Stack that is not
// settled: after a wiped status or a restore it is that one which may run. The
// list comes after the Stack was read, whose resourceVersion the claim carries.
func (f *Function) claim(ctx context.Context, w stack.World, v stack.Verdict) (*pulumiv1.Stack, error) {
	open, err := f.openUpdate(ctx, w.Stack)
	if err != nil {
		return nil, err
	}
	current := &pulumiv1.CurrentStackUpdate{
		Generation: v.Plan.Wanted.Generation, ReconcileRequest: v.Plan.Wanted.Request,
		Commit: v.Plan.Wanted.Revision, Name: stack.ClaimName(w.Stack.Name, f.Now()),
		Traceparent: observe.Kept(ctx),
	}
	if open != nil {
		current.Name = open.Name
	}
	status := v.Status
	status.CurrentUpdate = current
	written, err := f.writeStatus(ctx, w.Stack, status)
	if err != nil {
		return nil, err
	}
	if w.Stack.Status.LastUpdate != nil {
		about := event.Ref{Kind: event.KindStack, Namespace: w.Stack.Namespace, Name: w.Stack.Name}
		if err := f.Alarms.Clear(ctx, about); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// openUpdate is the newest Update that was made for this Stack and is not
// settled. Updates of an earlier Stack of the same name are deleted.
func (f *Function) openUpdate(ctx context.Context, s *pulumiv1.Stack) (*autov1alpha1.Update, error) {
	list, err := f.updatesOf(ctx, s.Namespace, s.Name)
	if err != nil {
		return nil, err
	}
	var open *autov1alpha1.Update
	for i := range list {
		u := &list[i]
		switch {
		case u.Annotations[pulumiv1.AnnotationStackUID] != string(s.UID):
			if err := f.deleteOrphan(ctx, u, s.UID); err != nil {
				return nil, err
			}
		case !u.Settled() && u.DeletionTimestamp == nil && u.Annotations[pulumiv1.AnnotationFor] != "" && (open == nil || open.Name < u.Name):
			open = u
		}
	}
	return open, nil
}

func (f *Function) updatesOf(ctx context.Context, namespace, name string) ([]autov1alpha1.Update, error) {
	list, err := f.Clients.Pulumi.AutoV1alpha1().Updates(namespace).List(ctx, metav1.ListOptions{LabelSelector: pulumiv1.LabelStackName + "=" + name})
	if err != nil {
		return nil, fmt.Errorf("cannot list the Updates of Stack %s: %w", name, err)
	}
	return list.Items, nil
}

// deleteOrphan deletes what was made for a Stack that is not the one of this
// UID. What bears no Stack's UID is a user's own.
func (f *Function) deleteOrphan(ctx context.Context, u *autov1alpha1.Update, uid types.UID) error {
	marked := u.Annotations[pulumiv1.AnnotationStackUID]
	if marked == "" || marked == string(uid) || u.DeletionTimestamp != nil {
		return nil
	}
	err := f.Clients.Pulumi.AutoV1alpha1().Updates(u.Namespace).Delete(ctx, u.Name, record.Only(u))
	if record.Gone(err) != nil {
		return fmt.Errorf("cannot delete Update %s of a Stack that is gone: %w", u.Name, err)
	}
	return nil
}

// finish makes what the claim names and is missing: Workspace, inline Secret,
// Update.
func (f *Function) finish(ctx context.Context, w stack.World, v stack.Verdict) (*pulumiv1.Stack, error) {
	ws, done, err := f.workspace(ctx, w, v)
	if err != nil || done {
		return nil, f.terminating(ctx, w, v, err)
	}
	if err := f.secret(ctx, v.Plan.Secret, ws); err != nil {
		return nil, f.terminating(ctx, w, v, err)
	}
	update := v.Plan.Update(w.Stack.Status.CurrentUpdate.Name, ws)
	observe.Stamp(ctx, update)
	_, err = f.Clients.Pulumi.AutoV1alpha1().Updates(update.Namespace).Create(ctx, update, metav1.CreateOptions{FieldManager: Name})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, f.terminating(ctx, w, v, fmt.Errorf("cannot create Update %s: %w", update.Name, err))
	}
	if err == nil {
		f.Log.InfoContext(ctx, "Update created", "namespace", update.Namespace, "name", update.Name, "type", string(update.Spec.Type), "why", *update.Spec.Message)
	}
	// Already there: ours by its annotation, or else the next look claims anew.
	return f.writeStatus(ctx, w.Stack, v.Status)
}

// secret makes the Secret of inline values. Its name tells its content, so that
// one which is there is the same. It goes with the Stack, or, at a destroy, with
// the Workspace.
func (f *Function) secret(ctx context.Context, secret *corev1.Secret, ws *autov1alpha1.Workspace) error {
	if secret == nil {
		return nil
	}
	secret = secret.DeepCopy()
	if len(secret.OwnerReferences) == 0 {
		secret.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: autov1alpha1.SchemeGroupVersion.String(), Kind: "Workspace", Name: ws.Name, UID: ws.UID,
		}}
	}
	_, err := f.Clients.Core.Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: Name})
	if record.Made(err) != nil {
		return fmt.Errorf("cannot create Secret %s: %w", secret.Name, err)
	}
	return nil
}

// workspace makes the Workspace as it should be. It is done, and the look with
// it, if another Workspace must go first or stands in the way.
func (f *Function) workspace(ctx context.Context, w stack.World, v stack.Verdict) (ws *autov1alpha1.Workspace, done bool, err error) {
	wanted, existing := v.Plan.Workspace, w.Workspace
	client := f.Clients.Pulumi.AutoV1alpha1().Workspaces(wanted.Namespace)
	switch {
	case existing == nil:
		ws, err = client.Create(ctx, wanted, metav1.CreateOptions{FieldManager: Name})
		if err != nil {
			return nil, false, fmt.Errorf("cannot create Workspace %s: %w", wanted.Name, err)
		}
		return ws, false, nil
	case existing.DeletionTimestamp != nil:
		return nil, true, f.releaseWorkspace(ctx, existing)
	case !stack.MadeFor(existing, w.Stack.UID):
		return nil, true, f.makeRoom(ctx, w, v)
	}
	next := existing.DeepCopy()
	next.Spec = wanted.Spec
	next.OwnerReferences = wanted.OwnerReferences
	record.AddFinalizer(next)
	next.Labels, next.Annotations = merged(existing.Labels, wanted.Labels), merged(existing.Annotations, wanted.Annotations)
	if sameWorkspace(existing, next) {
		return existing, false, nil
	}
	ws, err = client.Update(ctx, next, metav1.UpdateOptions{FieldManager: Name})
	if err != nil {
		return nil, false, fmt.Errorf("cannot write Workspace %s: %w", next.Name, err)
	}
	return ws, false, nil
}

func sameWorkspace(a, b *autov1alpha1.Workspace) bool {
	return equality.Semantic.DeepEqual(a.ObjectMeta, b.ObjectMeta) && stack.SameSpec(&a.Spec, &b.Spec)
}

func merged(a, b map[string]string) map[string]string {
	m := map[string]string{}
	for _, from := range []map[string]string{a, b} {
		maps.Copy(m, from)
	}
	return m
}

// makeRoom deletes the Workspace that an earlier Stack of the same name left;
// its end wakes this Stack. One that a user made by hand is not ours to delete.
func (f *Function) makeRoom(ctx context.Context, w stack.World, v stack.Verdict) error {
	existing := w.Workspace
	if existing.Annotations[pulumiv1.AnnotationStackUID] != "" {
		err := f.Clients.Pulumi.AutoV1alpha1().Workspaces(existing.Namespace).Delete(ctx, existing.Name, record.Only(existing))
		if record.Gone(err) != nil {
			return fmt.Errorf("cannot delete Workspace %s of a Stack that is gone: %w", existing.Name, err)
		}
		return nil
	}
	status := v.Status
	status.CurrentUpdate = nil
	status.MarkStalled(w.Stack.Generation, metav1.NewTime(f.Now()), pulumiv1.StalledWorkspaceFailed,
		fmt.Sprintf("Workspace %s exists and was not made for this Stack; delete it, or give the Stack another name", existing.Name))
	_, err := f.writeStatus(ctx, w.Stack, status)
	return err
}

// terminating turns the refusal of a namespace that is being deleted into a
// condition: what the Stack needs can never be made there.
func (f *Function) terminating(ctx context.Context, w stack.World, v stack.Verdict, err error) error {
	if !record.Closed(err) {
		return err
	}
	status := v.Status
	status.MarkStalled(w.Stack.Generation, metav1.NewTime(f.Now()), pulumiv1.StalledNamespaceTerminating,
		fmt.Sprintf("Namespace %s is being deleted, so that no run can be made in it; destroy by hand, then annotate the Stack with %s=true", w.Stack.Namespace, pulumiv1.AnnotationLetGo))
	_, err = f.writeStatus(ctx, w.Stack, status)
	return err
}
