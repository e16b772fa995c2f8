package status

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"

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
const Name = "updraft-status"

// Function is the status function.
type Function struct {
	Clients *record.Clients
	Tokens  authenticationv1client.TokenReviewsGetter
	Broker  transport.Sender
	Now     func() time.Time
	Log     *slog.Logger
}

// Handle takes a run's report, or looks at the Update that an event is about.
func (f *Function) Handle(ctx context.Context, e cloudevents.Event) error {
	about, err := event.About(e)
	if err != nil {
		return transport.Never(err)
	}
	switch e.Type() {
	case event.TypeRunTaken, event.TypeRunRunning, event.TypeRunFinished:
		return f.report(ctx, e, about)
	}
	switch about.Kind {
	case event.KindUpdate:
		_, err := f.look(ctx, about.Namespace, about.Name)
		return err
	case event.KindJob:
		return f.lookAtJob(ctx, about)
	case event.KindPod:
		return f.lookAtPod(ctx, about)
	default:
		return transport.Never(fmt.Errorf("the status function does not look at a %s", about.Kind))
	}
}

// lookAtJob looks at the Update of a run's Job, which has its name. A Job that
// was made too late, by a look that was held up until all was over, is deleted;
// its pod is refused.
//
// A Job that has no pod changes once, and then not again. The Event that says why
// comes just after it: until it is there the answer is "later", as often as the
// Trigger brings an event back. No other look waits for it.
func (f *Function) lookAtJob(ctx context.Context, about event.Ref) error {
	u, err := record.Found(f.Clients.Pulumi.AutoV1alpha1().Updates(about.Namespace).Get(ctx, about.Name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Update %s: %w", about.Name, err)
	}
	if u != nil && u.Settled() && !record.HasFinalizer(u) {
		return record.DeleteRun(ctx, f.Clients.Batch, u)
	}
	waits, err := f.look(ctx, about.Namespace, about.Name)
	if err == nil && waits == run.WaitUnknown {
		return fmt.Errorf("job %s has no pod, and no Event says why yet", about.Name)
	}
	return err
}

// lookAtPod looks at the Update of a run's pod. The name of one that is gone is
// its Job's, a dash and five letters.
func (f *Function) lookAtPod(ctx context.Context, about event.Ref) error {
	pod, err := record.Found(f.Clients.Core.Pods(about.Namespace).Get(ctx, about.Name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Pod %s: %w", about.Name, err)
	}
	if pod != nil {
		name := pod.Labels[pulumiv1.LabelUpdate]
		if name == "" {
			return nil
		}
		_, err := f.look(ctx, about.Namespace, name)
		return err
	}
	if cut := strings.LastIndexByte(about.Name, '-'); cut > 0 {
		_, err := f.look(ctx, about.Namespace, about.Name[:cut])
		return err
	}
	return nil
}

// look settles an Update whose run has ended and does what follows, or records
// what its run waits for, and says what is known of that.
func (f *Function) look(ctx context.Context, namespace, name string) (run.WaitAction, error) {
	u, err := record.Found(f.Clients.Pulumi.AutoV1alpha1().Updates(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return run.WaitNothing, fmt.Errorf("cannot get Update %s: %w", name, err)
	}
	if u == nil {
		return run.WaitNothing, nil
	}
	observe.Saw(ctx, u)
	if u.Settled() && !record.HasFinalizer(u) {
		return run.WaitNothing, nil
	}
	w, err := f.world(ctx, u)
	if err != nil {
		return run.WaitNothing, err
	}
	if u, err = f.end(ctx, w, run.AssessEnd(w, f.Now())); err != nil {
		return run.WaitNothing, err
	}
	if u.Settled() {
		return run.WaitNothing, f.finish(ctx, u)
	}
	w.Update = u
	v := run.AssessWait(w)
	return v.Action, f.wait(ctx, u, v)
}

// world reads the run's Job, its pod, and, for a pod that is gone, its node.
func (f *Function) world(ctx context.Context, u *autov1alpha1.Update) (run.SettleWorld, error) {
	w := run.SettleWorld{Update: u}
	if u.Settled() && (!run.Taken(u) || u.Status.Run.Phase == autov1alpha1.RunEnded) {
		return w, nil
	}
	job, err := record.Found(f.Clients.Batch.Jobs(u.Namespace).Get(ctx, u.Name, metav1.GetOptions{}))
	if err != nil {
		return w, fmt.Errorf("cannot get Job %s: %w", u.Name, err)
	}
	if job != nil && run.OwnedByUpdate(job, u) {
		w.Job = job
	}
	if !run.Taken(u) {
		if w.Pod, err = f.podOf(ctx, w.Job); err == nil && w.Pod == nil {
			w.Refusals, err = f.refusals(ctx, w.Job)
		}
		return w, err
	}
	w.Pod, err = record.Found(f.Clients.Core.Pods(u.Namespace).Get(ctx, u.Status.Run.PodName, metav1.GetOptions{}))
	if err != nil {
		return w, fmt.Errorf("cannot get Pod %s: %w", u.Status.Run.PodName, err)
	}
	if w.Pod == nil || w.Pod.UID != u.Status.Run.PodUID {
		err = f.node(ctx, &w)
		return w, err // in two steps: Go may read w before it calls node
	}
	return w, nil
}

// podOf is the newest pod of a Job.
func (f *Function) podOf(ctx context.Context, job *batchv1.Job) (*corev1.Pod, error) {
	if job == nil {
		return nil, nil
	}
	list, err := f.Clients.Core.Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pulumiv1.LabelUpdate + "=" + job.Name})
	if err != nil {
		return nil, fmt.Errorf("cannot list the pods of Job %s: %w", job.Name, err)
	}
	var newest *corev1.Pod
	for i := range list.Items {
		p := &list.Items[i]
		if owner := metav1.GetControllerOf(p); owner == nil || owner.UID != job.UID {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&p.CreationTimestamp) {
			newest = p
		}
	}
	return newest, nil
}

func (f *Function) node(ctx context.Context, w *run.SettleWorld) error {
	name := w.Update.Status.Run.Node
	node, err := record.Found(f.Clients.Core.Nodes().Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Node %s: %w", name, err)
	}
	if node == nil {
		w.NodeGone = true
		return nil
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			w.NodeReadySince = c.LastTransitionTime.Time
		}
	}
	return nil
}

// end records what is known of the run's end, in one write.
func (f *Function) end(ctx context.Context, w run.SettleWorld, v run.SettleVerdict) (*autov1alpha1.Update, error) {
	u := w.Update.DeepCopy()
	now := metav1.NewTime(f.Now())
	switch v.Action {
	case run.SettleNothing:
	case run.SettleAbsent:
		if u.Status.Run.AbsentSince == nil {
			u.Status.Run.AbsentSince = &now
		}
		u.Status.Run.Phase = autov1alpha1.RunUnknown
	case run.SettleEnd:
		if u.Status.Run == nil {
			u.Status.Run = &autov1alpha1.RunStatus{}
		}
		u.Status.Run.Phase = autov1alpha1.RunEnded
		if !u.Settled() {
			settleFound(u, v.Outcome, now)
			f.Log.InfoContext(ctx, "Update settled from its pod", "namespace", u.Namespace, "name", u.Name, "state", v.Outcome.State, "reason", v.Outcome.Reason)
		}
	}
	return f.writeStatus(ctx, w.Update, u)
}

func (f *Function) writeStatus(ctx context.Context, read, u *autov1alpha1.Update) (*autov1alpha1.Update, error) {
	if equality.Semantic.DeepEqual(read.Status, u.Status) {
		return read, nil
	}
	written, err := f.Clients.Pulumi.AutoV1alpha1().Updates(u.Namespace).UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: Name})
	if err != nil {
		return nil, fmt.Errorf("cannot write the status of Update %s: %w", u.Name, err)
	}
	observe.Measured(ctx, measure.Update(read, u)...)
	return written, nil
}

// stackOf reads the Stack of the name that an Update was made for, which may be a
// later one of that name. The name is "" if the Update was made for none, and the
// Stack nil if it is gone.
func (f *Function) stackOf(ctx context.Context, u *autov1alpha1.Update) (name string, s *pulumiv1.Stack, err error) {
	name = u.Labels[pulumiv1.LabelStackName]
	if name == "" || u.Annotations[pulumiv1.AnnotationStackUID] == "" {
		return "", nil, nil
	}
	s, err = record.Found(f.Clients.Pulumi.PulumiV1().Stacks(u.Namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return name, nil, fmt.Errorf("cannot get Stack %s: %w", name, err)
	}
	return name, s, nil
}
