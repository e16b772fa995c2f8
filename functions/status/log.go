package status

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/run"
)

const (
	// logLines is how many lines from its end a log is read. It bounds what is
	// read, not what is kept. A limit in bytes would not do: a kubelet counts it
	// from the first of these lines on, and so leaves out the end.
	logLines = 10_000
	// logTime is how long a log may take to be read: a node that does not answer
	// must not hold up the end of a run.
	logTime = 20 * time.Second
)

// keepLog keeps the tail of the log of a run that has ended.
func (f *Function) keepLog(ctx context.Context, u *autov1alpha1.Update) error {
	if u.Status.Run == nil {
		return nil // no pod came to anything
	}
	pod, err := f.podThatRan(ctx, u)
	if err != nil || pod == nil {
		return err
	}
	return f.keepLogOf(ctx, u, pod)
}

// podThatRan is the pod that took the run, or, if none did, the one that failed
// to; nil if it is gone.
func (f *Function) podThatRan(ctx context.Context, u *autov1alpha1.Update) (*corev1.Pod, error) {
	if run.Taken(u) {
		pod, err := record.Found(f.Clients.Core.Pods(u.Namespace).Get(ctx, u.Status.Run.PodName, metav1.GetOptions{}))
		if err != nil {
			return nil, fmt.Errorf("cannot get Pod %s: %w", u.Status.Run.PodName, err)
		}
		if pod == nil || pod.UID != u.Status.Run.PodUID {
			return nil, nil
		}
		return pod, nil
	}
	job, err := record.Found(f.Clients.Batch.Jobs(u.Namespace).Get(ctx, u.Name, metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("cannot get Job %s: %w", u.Name, err)
	}
	if job == nil || !run.OwnedByUpdate(job, u) {
		return nil, nil
	}
	return f.podOf(ctx, job)
}

// keepLogOf keeps the tail of a pod's log, unless one is kept already. A log
// that cannot be read, or that the namespace does not take, is no reason to hold
// up what follows: the outcome is on the Update.
func (f *Function) keepLogOf(ctx context.Context, u *autov1alpha1.Update, pod *corev1.Pod) error {
	container := run.Logged(pod)
	if container == "" || u.DeletionTimestamp != nil {
		return nil // nobody wrote, or it would go with the Update at once
	}
	log := f.Log.With("namespace", u.Namespace, "name", u.Name, "pod", pod.Name, "container", container)
	tail, err := f.readLog(ctx, pod, container)
	if err != nil {
		log.WarnContext(ctx, "The run's log cannot be read and is not kept", "error", err.Error())
		return nil
	}
	kept, err := run.LogConfigMap(u, container, tail)
	if err != nil {
		return err
	}
	_, err = f.Clients.Core.ConfigMaps(u.Namespace).Create(ctx, kept, metav1.CreateOptions{FieldManager: Name})
	if record.Refused(err) != "" || apierrors.IsForbidden(err) { // a quota, or a namespace that is being deleted
		log.WarnContext(ctx, "The run's log is refused and is not kept", "error", err.Error())
		return nil
	}
	if record.Made(err) != nil {
		return fmt.Errorf("cannot create ConfigMap %s: %w", kept.Name, err)
	}
	return nil
}

func (f *Function) readLog(ctx context.Context, pod *corev1.Pod, container string) (*run.Tail, error) {
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	lines := int64(logLines)
	stream, err := f.Clients.Core.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, TailLines: &lines,
	}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log: %w", err)
	}
	defer stream.Close()
	tail := &run.Tail{}
	if _, err := io.Copy(tail, stream); err != nil {
		return nil, fmt.Errorf("cannot read the log: %w", err)
	}
	return tail, nil
}
