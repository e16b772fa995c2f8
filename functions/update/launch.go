package update

import (
	"context"
	"fmt"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/run"
)

// launch makes the run's ConfigMap and Job, where they are missing, and records
// that the Update progresses. The lock is held.
func (f *Function) launch(ctx context.Context, w *run.LaunchWorld, now metav1.Time) error {
	job, err := record.Found(f.Clients.Batch.Jobs(w.Update.Namespace).Get(ctx, w.Update.Name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Job %s: %w", w.Update.Name, err)
	}
	if job == nil {
		invalid, err := f.create(ctx, w)
		if err != nil {
			return err
		}
		if invalid != "" {
			return f.settle(ctx, w.Update, run.LaunchVerdict{Reason: autov1alpha1.ReasonInvalid, Message: invalid}, now)
		}
		f.Log.InfoContext(ctx, "Run launched", "namespace", w.Update.Namespace, "name", w.Update.Name, "type", string(w.Update.Spec.Type))
	} else if !run.OwnedByUpdate(job, w.Update) {
		return f.settle(ctx, w.Update, run.LaunchVerdict{
			Reason:  autov1alpha1.ReasonInvalid,
			Message: fmt.Sprintf("Job %s exists and is not of this Update; delete it, or give the Update another name", job.Name),
		}, now)
	}
	if reason, _ := w.Update.PodWaits(); reason != "" && job != nil {
		return nil // the status function sees when it goes on
	}
	return f.writeStatus(ctx, w.Update, func(u *autov1alpha1.Update) {
		u.MarkProgressing(now, run.Launched(u))
	})
}

// create makes the ConfigMap, then the Job. What is not valid is said in words
// for the user; it would not be valid the next time either.
func (f *Function) create(ctx context.Context, w *run.LaunchWorld) (invalid string, err error) {
	settings := f.Settings
	settings.Traceparent = observe.Traceparent(ctx)
	job, err := run.Job(w.Update, w.Workspace, settings)
	if err != nil {
		return "Workspace " + w.Workspace.Name + ": " + err.Error(), nil //nolint:nilerr // it is said to the user, and a repeat would meet it again
	}
	ended, err := f.ended(ctx, w)
	if err != nil {
		return "", err
	}
	told, err := run.SpecConfigMap(w.Update, w.Workspace, w.Program, ended)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // it is said to the user, and a repeat would meet it again
	}
	_, err = f.Clients.Core.ConfigMaps(told.Namespace).Create(ctx, told, metav1.CreateOptions{FieldManager: Name})
	if refused := record.Refused(err); refused != "" {
		return "The run's ConfigMap was refused: " + refused, nil
	}
	if record.Made(err) != nil {
		return "", fmt.Errorf("cannot create ConfigMap %s: %w", told.Name, err)
	}
	_, err = f.Clients.Batch.Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: Name})
	if refused := record.Refused(err); refused != "" {
		return "The run's Job was refused: " + refused, nil
	}
	if record.Made(err) != nil {
		return "", fmt.Errorf("cannot create Job %s: %w", job.Name, err)
	}
	return "", nil
}

// ended are the processes of earlier runs in this Workspace. The lock is held,
// so each of these is proven to be gone.
func (f *Function) ended(ctx context.Context, w *run.LaunchWorld) ([]autov1alpha1.LockHolder, error) {
	list, err := f.Clients.Pulumi.AutoV1alpha1().Updates(w.Update.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.workspaceName=" + w.Workspace.Name})
	if err != nil {
		return nil, fmt.Errorf("cannot list the Updates of Workspace %s: %w", w.Workspace.Name, err)
	}
	var holders []autov1alpha1.LockHolder
	for i := range list.Items {
		r := list.Items[i].Status.Run
		if r == nil || list.Items[i].UID == w.Update.UID {
			continue
		}
		if r.PodName != "" {
			holders = append(holders, autov1alpha1.LockHolder{Host: r.PodName})
		}
		if r.Holder != nil {
			holders = append(holders, *r.Holder)
		}
	}
	sort.Slice(holders, func(i, j int) bool {
		a, b := holders[i], holders[j]
		return a.Host < b.Host || a.Host == b.Host && a.Pid < b.Pid
	})
	return holders, nil
}
