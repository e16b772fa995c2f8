package logs

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/run"
)

// period is how often a run that is waited for is looked at.
const period = 250 * time.Millisecond

// reader prints the log of one run.
type reader struct {
	clients       *record.Clients
	namespace     string
	stack, update string
	follow        bool
	// out gets the log, notes what is said beside it.
	out, notes io.Writer
	// noted is what was said last.
	noted string
}

// print prints the log. If it follows, it waits for a run to begin.
func (r *reader) print(ctx context.Context) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		u, wait, err := r.find(ctx)
		if err == nil && u != nil {
			wait, err = r.read(ctx, u)
		}
		switch {
		case err != nil || wait == "":
			return err
		case !r.follow:
			return fmt.Errorf("%s; --follow waits for it%s", wait, r.earlier(ctx))
		}
		r.note(wait)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// earlier names the run before the one that has not begun.
func (r *reader) earlier(ctx context.Context) string {
	if r.update != "" {
		return ""
	}
	s, err := r.clients.Pulumi.PulumiV1().Stacks(r.namespace).Get(ctx, r.stack, metav1.GetOptions{})
	if err != nil || s.Status.LastUpdate == nil {
		return ""
	}
	return fmt.Sprintf(", and --update %s prints the run before it", s.Status.LastUpdate.Name)
}

// note says something beside the log, once.
func (r *reader) note(text string) {
	if text != r.noted {
		_, _ = fmt.Fprintln(r.notes, text)
	}
	r.noted = text
}

// read prints the log of an Update, from its pod or as it was kept. If it has
// not begun, it says in wait what it waits for.
func (r *reader) read(ctx context.Context, u *autov1alpha1.Update) (wait string, err error) {
	pod, err := r.pod(ctx, u)
	if err != nil {
		return "", err
	}
	var unread error
	if pod != nil && run.Logged(pod) != "" {
		var opened, silent bool
		opened, silent, unread = r.fromPod(ctx, pod, run.Logged(pod))
		switch {
		case unread == nil && silent && !u.Settled():
			r.follow = true // nothing is no answer: wait for what is said, whatever was asked
			return fmt.Sprintf("The run of Update %s has begun in Pod %s and has said nothing yet: waiting for it", u.Name, pod.Name), nil
		case opened || !u.Settled():
			return "", unread
		}
	}
	kept, err := r.kept(ctx, u)
	if err != nil || kept {
		return "", err
	}
	if unread != nil {
		return "", unread
	}
	return r.absent(u, pod)
}

// pod of an Update: the one that took its run, or the newest of its Job; nil if
// there is none.
func (r *reader) pod(ctx context.Context, u *autov1alpha1.Update) (*corev1.Pod, error) {
	if run.Taken(u) {
		name := u.Status.Run.PodName
		pod, err := record.Found(r.clients.Core.Pods(u.Namespace).Get(ctx, name, metav1.GetOptions{}))
		if err != nil {
			return nil, fmt.Errorf("cannot get Pod %s: %w", name, err)
		}
		if pod == nil || pod.UID != u.Status.Run.PodUID {
			return nil, nil
		}
		return pod, nil
	}
	list, err := r.clients.Core.Pods(u.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pulumiv1.LabelUpdate + "=" + u.Name})
	if err != nil {
		return nil, fmt.Errorf("cannot list the pods of Update %s: %w", u.Name, err)
	}
	var newest *corev1.Pod
	for i := range list.Items {
		p := &list.Items[i]
		if owner := metav1.GetControllerOf(p); owner == nil || owner.Kind != "Job" || owner.Name != u.Name {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&p.CreationTimestamp) {
			newest = p
		}
	}
	return newest, nil
}

// fromPod prints a pod's log, and says whether it could be opened, and whether there
// was nothing in it.
func (r *reader) fromPod(ctx context.Context, pod *corev1.Pod, container string) (opened, silent bool, err error) {
	stream, err := r.clients.Core.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Follow: r.follow,
	}).Stream(ctx)
	if err != nil {
		return false, false, fmt.Errorf("cannot read the log of Pod %s: %w", pod.Name, err)
	}
	defer stream.Close()
	n, err := io.Copy(r.out, stream)
	if err != nil {
		return true, n == 0, fmt.Errorf("the log of Pod %s broke off: %w", pod.Name, err)
	}
	return true, n == 0, nil
}

// kept prints the log that was kept, and says whether there was one. One that is
// not of this very Update is an earlier one's, or somebody's own.
func (r *reader) kept(ctx context.Context, u *autov1alpha1.Update) (bool, error) {
	name := run.LogConfigMapName(u.Name)
	c, err := record.Found(r.clients.Core.ConfigMaps(u.Namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return false, fmt.Errorf("cannot get ConfigMap %s: %w", name, err)
	}
	if c == nil || !run.OwnedByUpdate(c, u) {
		return false, nil
	}
	text, leftOut, err := run.KeptLog(c)
	if err != nil {
		return false, err
	}
	if leftOut > 0 {
		r.note(fmt.Sprintf("What was said before, at least %d bytes, was not kept", leftOut))
	}
	if _, err := io.Copy(r.out, text); err != nil {
		return true, fmt.Errorf("cannot read the log in ConfigMap %s: %w", name, err)
	}
	return true, nil
}

// absent says why there is no log: an error, or what the run waits for.
func (r *reader) absent(u *autov1alpha1.Update, pod *corev1.Pod) (wait string, err error) {
	reason, message := u.FailedReason(), u.Status.Message
	switch {
	case u.Settled() && r.follow && r.update == "" && reason == autov1alpha1.ReasonSuperseded:
		return fmt.Sprintf("Update %s is superseded by a newer one: %s", u.Name, message), nil
	case u.Settled() && u.Status.Run == nil:
		return "", fmt.Errorf("update %s was never run: %s: %s", u.Name, reason, message)
	case u.Settled():
		return "", fmt.Errorf("the log of Update %s is not kept: its pod was gone, or never wrote one%s", u.Name, outcome(reason, message))
	case run.Taken(u):
		return fmt.Sprintf("Pod %s of Update %s is gone, and it is not known yet how it ended", u.Status.Run.PodName, u.Name), nil
	case pod != nil:
		return fmt.Sprintf("The run of Update %s has not begun in Pod %s%s", u.Name, pod.Name, because(run.Waiting(pod))), nil
	}
	c := meta.FindStatusCondition(u.Status.Conditions, autov1alpha1.UpdateProgressing)
	if c == nil {
		return fmt.Sprintf("Update %s is about to be launched", u.Name), nil
	}
	return fmt.Sprintf("Update %s has not begun: %s: %s", u.Name, c.Reason, c.Message), nil
}

func outcome(reason autov1alpha1.ConditionReason, message string) string {
	if reason == "" {
		return "; it succeeded"
	}
	return fmt.Sprintf("; it ended as %s: %s", reason, message)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}
