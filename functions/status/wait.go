package status

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// wait records what a run that was launched waits for, and makes its Stack show
// it.
func (f *Function) wait(ctx context.Context, u *autov1alpha1.Update, v run.WaitVerdict) error {
	next, now := u.DeepCopy(), metav1.NewTime(f.Now())
	switch v.Action {
	case run.WaitTell:
		next.MarkWaiting(now, v.Reason, v.Message)
	case run.WaitOver:
		next.MarkProgressing(now, run.Launched(u))
	case run.WaitNothing, run.WaitUnknown: // what the Update says stays
	}
	written, err := f.writeStatus(ctx, u, next)
	if err != nil {
		return err
	}
	if v.Action == run.WaitTell || v.Action == run.WaitOver {
		f.Log.InfoContext(ctx, "Run waits", "namespace", u.Namespace, "name", u.Name, "action", string(v.Action), "reason", string(v.Reason))
	}
	return f.show(ctx, written)
}

// show asks for a look at the Stack of an Update if it does not say what the
// Update waits for, or says so still. It rests on the Stack as it is, not on what
// was just written: that may have been the last act of a look that was cut off.
func (f *Function) show(ctx context.Context, u *autov1alpha1.Update) error {
	_, s, err := f.stackOf(ctx, u)
	if err != nil {
		return err
	}
	if s == nil || stack.Shows(s, u) {
		return nil
	}
	about := event.Ref{Kind: event.KindStack, Namespace: s.Namespace, Name: s.Name}
	return f.Broker.Send(ctx, event.NewDue(Name, string(u.UID)+"/waits/"+u.ResourceVersion, about))
}

// refusals are the Events that say why a Job has no pod.
func (f *Function) refusals(ctx context.Context, job *batchv1.Job) ([]corev1.Event, error) {
	if !run.MayBeRefused(job) {
		return nil, nil
	}
	list, err := f.Clients.Core.Events(job.Namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.uid": string(job.UID), "reason": run.ReasonFailedCreate,
	}.String()})
	if err != nil {
		return nil, fmt.Errorf("cannot list the Events of Job %s: %w", job.Name, err)
	}
	return list.Items, nil
}
