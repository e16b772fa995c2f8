package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/measure"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/pkg/transport"
)

// report takes what a run's pod says of it. The token, not the event, tells
// which pod speaks; the event tells of which Update, and the pod must be of that
// Update's Job.
func (f *Function) report(ctx context.Context, e cloudevents.Event, about event.Ref) error {
	pod, err := f.speaker(ctx, about.Namespace)
	if err != nil {
		return err
	}
	u, err := record.Found(f.Clients.Pulumi.AutoV1alpha1().Updates(about.Namespace).Get(ctx, about.Name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Update %s: %w", about.Name, err)
	}
	if u == nil {
		return transport.Refuse(http.StatusConflict, fmt.Errorf("update %s is gone", about.Name))
	}
	observe.Saw(ctx, u)
	switch e.Type() {
	case event.TypeRunTaken:
		return f.taken(ctx, e, u, pod)
	case event.TypeRunRunning:
		return f.running(ctx, e, u, pod)
	default:
		return f.finished(ctx, e, u, pod)
	}
}

// Keys of a TokenReview's answer for a token that is bound to a pod.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

// speaker reviews the token and reads the pod that it is bound to: the API
// server accepts a deleted pod's token from its cache for some seconds.
func (f *Function) speaker(ctx context.Context, namespace string) (*corev1.Pod, error) {
	token, ok := strings.CutPrefix(transport.Authorization(ctx), "Bearer ")
	if !ok || token == "" {
		return nil, transport.Refuse(http.StatusUnauthorized, errors.New("a report needs the token of its pod"))
	}
	review, err := f.Tokens.TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{run.TokenAudience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot review a token: %w", err)
	}
	name, uid, err := boundPod(review.Status)
	if err != nil {
		return nil, transport.Refuse(http.StatusUnauthorized, err)
	}
	if !strings.HasPrefix(review.Status.User.Username, "system:serviceaccount:"+namespace+":") {
		return nil, transport.Refuse(http.StatusForbidden, errors.New("the token is of another namespace than the Update"))
	}
	pod, err := record.Found(f.Clients.Core.Pods(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("cannot get Pod %s: %w", name, err)
	}
	if pod == nil || pod.UID != uid {
		return nil, transport.Refuse(http.StatusForbidden, fmt.Errorf("pod %s of the token is gone", name))
	}
	return pod, nil
}

func boundPod(status authenticationv1.TokenReviewStatus) (name string, uid types.UID, err error) {
	if !status.Authenticated || !slices.Contains(status.Audiences, run.TokenAudience) {
		return "", "", errors.New("the token is not valid for a report")
	}
	names, uids := status.User.Extra[extraPodName], status.User.Extra[extraPodUID]
	if len(names) != 1 || len(uids) != 1 {
		return "", "", errors.New("the token is not bound to a pod")
	}
	return names[0], types.UID(uids[0]), nil
}

// taken gives the run to a pod of the Update's Job, once: another pod is
// refused, and so is any once the Update is Complete or being deleted.
func (f *Function) taken(ctx context.Context, e cloudevents.Event, u *autov1alpha1.Update, pod *corev1.Pod) error {
	var data event.Taken
	if err := e.DataAs(&data); err != nil {
		return transport.Refuse(http.StatusBadRequest, err)
	}
	if data.UID != string(u.UID) || u.Settled() || u.DeletionTimestamp != nil {
		return transport.Refuse(http.StatusConflict, fmt.Errorf("update %s is not to be run", u.Name))
	}
	if run.Taken(u) {
		if u.Status.Run.PodUID == pod.UID {
			return nil
		}
		return transport.Refuse(http.StatusConflict, fmt.Errorf("update %s was taken by pod %s", u.Name, u.Status.Run.PodName))
	}
	job, err := record.Found(f.Clients.Batch.Jobs(u.Namespace).Get(ctx, u.Name, metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("cannot get Job %s: %w", u.Name, err)
	}
	owner := metav1.GetControllerOf(pod)
	if job == nil || job.DeletionTimestamp != nil || !run.OwnedByUpdate(job, u) || owner == nil || owner.UID != job.UID {
		return transport.Refuse(http.StatusForbidden, fmt.Errorf("pod %s is not of the Job of Update %s", pod.Name, u.Name))
	}
	next := u.DeepCopy()
	next.Status.Run = &autov1alpha1.RunStatus{PodName: pod.Name, PodUID: pod.UID, Node: pod.Spec.NodeName, Phase: autov1alpha1.RunTaken}
	next.Status.StartTime = metav1.NewTime(f.Now())
	next.MarkProgressing(metav1.NewTime(f.Now()), "The run goes on in Pod "+pod.Name)
	if _, err := f.writeStatus(ctx, u, next); err != nil {
		return err
	}
	f.Log.InfoContext(ctx, "Run taken", "namespace", u.Namespace, "name", u.Name, "pod", pod.Name)
	return nil
}

// running records which process runs the operation, so that a lock which it may
// leave in the state backend can be told.
func (f *Function) running(ctx context.Context, e cloudevents.Event, u *autov1alpha1.Update, pod *corev1.Pod) error {
	var data event.Running
	if err := e.DataAs(&data); err != nil {
		return transport.Refuse(http.StatusBadRequest, err)
	}
	if !run.Taken(u) || u.Status.Run.PodUID != pod.UID || u.Settled() {
		return transport.Refuse(http.StatusConflict, fmt.Errorf("pod %s does not run Update %s", pod.Name, u.Name))
	}
	next := u.DeepCopy()
	next.Status.Run.Phase = autov1alpha1.RunRunning
	if data.Host != "" {
		next.Status.Run.Holder = &autov1alpha1.LockHolder{Host: data.Host, Pid: data.Pid}
	}
	if _, err := f.writeStatus(ctx, u, next); err != nil {
		return err
	}
	return f.tell(ctx, u, event.KindUpdate, u.Name, started(u))
}

// finished settles the Update by the word of the pod that took it. A repeat of
// the same is accepted and goes on; another outcome is refused.
func (f *Function) finished(ctx context.Context, e cloudevents.Event, u *autov1alpha1.Update, pod *corev1.Pod) error {
	var data event.Finished
	if err := e.DataAs(&data); err != nil {
		return transport.Refuse(http.StatusBadRequest, err)
	}
	switch autov1alpha1.ResultState(data.State) {
	case autov1alpha1.ResultSucceeded, autov1alpha1.ResultFailed, autov1alpha1.ResultCanceled:
	default:
		return transport.Refuse(http.StatusBadRequest, fmt.Errorf("%q is no state in which a run ends", data.State))
	}
	if !run.Taken(u) || u.Status.Run.PodUID != pod.UID {
		return transport.Refuse(http.StatusConflict, fmt.Errorf("pod %s does not run Update %s", pod.Name, u.Name))
	}
	if u.Settled() {
		if !repeats(u, data.State) {
			return transport.Refuse(http.StatusConflict, fmt.Errorf("update %s is settled otherwise", u.Name))
		}
		return f.finish(ctx, u)
	}
	mark := settle
	if data.State == string(autov1alpha1.ResultCanceled) {
		job, err := record.Found(f.Clients.Batch.Jobs(u.Namespace).Get(ctx, u.Name, metav1.GetOptions{}))
		if err != nil {
			return fmt.Errorf("cannot get Job %s: %w", u.Name, err)
		}
		told := run.AsTold(event.Termination{State: data.State, Reason: data.Reason, Message: data.Message}, u, job, pod)
		if told.State != data.State {
			mark = put // the reason is what was found
		}
		data.State, data.Reason, data.Message = told.State, told.Reason, told.Message
	}
	if data.Outputs != nil {
		if err := f.keepOutputs(ctx, u, &data); err != nil {
			return err
		}
	}
	next := u.DeepCopy()
	mark(next, data, metav1.NewTime(f.Now()))
	settled, err := f.writeStatus(ctx, u, next)
	if err != nil {
		return err
	}
	observe.Measured(ctx, measure.Phases(u, data.Phases)...)
	f.Log.InfoContext(ctx, "Update settled", "namespace", u.Namespace, "name", u.Name, "state", data.State, "reason", data.Reason)
	if pod.DeletionTimestamp != nil {
		// It was stopped, and may be gone before its end is looked at.
		if err := f.keepLogOf(ctx, settled, pod); err != nil {
			return err
		}
	}
	return f.finish(ctx, settled)
}

// repeats says whether a report's state is what the Update was settled by. A run
// that was told to stop says canceled, whatever it was settled as.
func repeats(u *autov1alpha1.Update, state string) bool {
	switch {
	case u.Status.Result == nil:
		return false
	case state == string(u.Status.Result.State):
		return true
	case state != string(autov1alpha1.ResultCanceled):
		return false
	}
	switch u.FailedReason() {
	case autov1alpha1.ReasonDeadlineExceeded, autov1alpha1.ReasonAborted, autov1alpha1.ReasonEvicted:
		return true
	default:
		return false
	}
}

// keepOutputs writes the outputs Secret before the Update is settled. Outputs
// that a Secret cannot hold do not fail the run; the message says so.
func (f *Function) keepOutputs(ctx context.Context, u *autov1alpha1.Update, data *event.Finished) error {
	secret, err := outputsSecret(u, data.Outputs)
	if err != nil {
		return transport.Refuse(http.StatusBadRequest, err)
	}
	_, err = f.Clients.Core.Secrets(u.Namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: Name})
	if record.Refused(err) != "" {
		f.Log.WarnContext(ctx, "Outputs are too large for a Secret and are not kept", "namespace", u.Namespace, "name", u.Name)
		data.Outputs = nil
		data.Message = "The outputs are too large for a Secret and are not kept"
		return nil
	}
	if apierrors.IsForbidden(err) { // a quota, or a namespace that is being deleted
		f.Log.WarnContext(ctx, "Outputs are not kept", "namespace", u.Namespace, "name", u.Name, "error", err.Error())
		data.Outputs = nil
		data.Message = "The outputs are not kept: " + err.Error()
		return nil
	}
	if record.Made(err) != nil {
		return fmt.Errorf("cannot create Secret %s: %w", secret.Name, err)
	}
	return nil
}
