package record

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchv1client "k8s.io/client-go/kubernetes/typed/batch/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/run"
)

// DeleteRun deletes the Job of an Update, if it has one. A run that goes on is
// stopped by it: its pod is told to end and has its grace period.
func DeleteRun(ctx context.Context, client batchv1client.JobsGetter, u *autov1alpha1.Update) error {
	job, err := Found(client.Jobs(u.Namespace).Get(ctx, u.Name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Job %s: %w", u.Name, err)
	}
	if job == nil || !run.OwnedByUpdate(job, u) || job.DeletionTimestamp != nil {
		return nil
	}
	if err := Gone(client.Jobs(u.Namespace).Delete(ctx, job.Name, Only(job))); err != nil {
		return fmt.Errorf("cannot delete Job %s: %w", job.Name, err)
	}
	return nil
}
