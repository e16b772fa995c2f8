package run

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

// failedCreate is an Event of the Job, so long after noon.
func failedCreate(name, message string, after time.Duration) corev1.Event {
	return corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Reason: ReasonFailedCreate,
		Message: message, LastTimestamp: at(noon.Add(after)),
	}
}

func active(j *batchv1.Job) { j.Status.Active = 1 }

const (
	notFound       = "Image x of container pulumi cannot be pulled: registry.test/x:1: not found; correct it or its pull secret, or wait for the registry"
	noCause        = "Image x of container pulumi cannot be pulled; correct it or its pull secret, or wait for the registry"
	unknownAccount = "The run's pod is refused: ServiceAccount deployer does not exist; create it and the run begins by itself, or correct serviceAccountName"
	accountIs      = `Error creating: pods "app-1-abcde" is forbidden: error looking up service account team/deployer: serviceaccount "deployer" not found`
)

func TestWhatARunWaitsFor(t *testing.T) {
	nothing, over, unknown := WaitVerdict{Action: WaitNothing}, WaitVerdict{Action: WaitOver}, WaitVerdict{Action: WaitUnknown}
	tell := func(reason autov1alpha1.ConditionReason, message string) WaitVerdict {
		return WaitVerdict{Action: WaitTell, Reason: reason, Message: message}
	}
	pod := func(changes ...func(*corev1.Pod)) SettleWorld {
		return SettleWorld{Update: madeUpdate(), Job: begun(active), Pod: aPod(corev1.PodPending, changes...)}
	}
	refusals := func(events ...corev1.Event) SettleWorld {
		return SettleWorld{Update: madeUpdate(), Job: begun(), Refusals: events}
	}
	with := func(w SettleWorld, changes ...func(*autov1alpha1.Update)) SettleWorld {
		w.Update = madeUpdate(changes...)
		return w
	}
	job := func(w SettleWorld, j *batchv1.Job) SettleWorld {
		w.Job = j
		return w
	}
	pulling := waitingFor(Container, "ErrImagePull", "registry.test/x:1: not found")
	backingOff := waitingFor(Container, "ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: registry.test/x:1: not found`)
	untold := waitingFor(Container, "ImagePullBackOff", `Back-off pulling image "x"`)
	image, refusedPod := autov1alpha1.ReasonImagePullBackOff, autov1alpha1.ReasonPodRefused
	now := at(noon)
	for name, c := range map[string]struct {
		why   string
		world SettleWorld
		want  WaitVerdict
	}{
		"A pod that is set up waits for nothing": {world: pod(waitingFor(Container, "PodInitializing", "")), want: nothing},
		"A pod that nobody has looked at":        {world: pod(), want: nothing},
		"A pull that failed":                     {world: pod(pulling), want: tell(image, notFound)},
		"A pull that is tried again later":       {world: pod(backingOff), want: tell(image, notFound)},
		"It is told once":                        {world: with(pod(pulling), waits(image, notFound)), want: nothing},
		"It does not flap":                       {world: with(pod(backingOff), waits(image, notFound)), want: nothing},
		"A kubelet that names no cause":          {world: pod(untold), want: tell(image, noCause)},
		"A cause that was told is kept":          {why: "older kubelets name it only at each try", world: with(pod(untold), waits(image, notFound)), want: nothing},
		"A cause that was not told is":           {world: with(pod(pulling), waits(image, noCause)), want: tell(image, notFound)},
		"The image of an init container": {
			world: pod(waitingFor(Bootstrap, "InvalidImageName", `Failed to apply default image tag "x:"`), waitingFor(Container, "PodInitializing", "")),
			want:  tell(image, `Image x of container bootstrap cannot be pulled: Failed to apply default image tag "x:"; correct it or its pull secret, or wait for the registry`)},
		"The image as the pod names it": {
			world: pod(waitingFor(Container, "ErrImageNeverPull", "Not present"), func(p *corev1.Pod) {
				p.Spec.Containers = []corev1.Container{{Name: Container, Image: "team/cli:3"}}
			}),
			want: tell(image, `Image team/cli:3 of container pulumi cannot be pulled: Not present; correct it or its pull secret, or wait for the registry`)},
		"A registry that is unavailable": {
			world: pod(waitingFor(Container, "RegistryUnavailable", "image pull failed for x because the registry is unavailable")),
			want:  tell(image, `Image x of container pulumi cannot be pulled: image pull failed for x because the registry is unavailable; correct it or its pull secret, or wait for the registry`)},
		"A Secret that is missing": {
			world: pod(waitingFor(Container, "CreateContainerConfigError", `secret "token" not found`)),
			want:  tell(autov1alpha1.ReasonCreateContainerError, `Container pulumi cannot be created: secret "token" not found; create what is missing and it begins by itself`)},
		"An image that runs as root": {
			world: pod(waitingFor(Container, "CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "app-1-abcde_team(uid)", container: pulumi)`)),
			want:  tell(autov1alpha1.ReasonCreateContainerError, `Container pulumi cannot be created: container has runAsNonRoot and image will run as root; create what is missing and it begins by itself`)},
		"A name that is taken": {
			world: pod(waitingFor(Container, "CreateContainerError", `name is reserved for "`+strings.Repeat("0a", 32)+`"`)),
			want:  tell(autov1alpha1.ReasonCreateContainerError, `Container pulumi cannot be created: name is reserved for "..."; create what is missing and it begins by itself`)},
		"No node has room": {
			world: pod(unscheduled("0/7 nodes are available: 1 node(s) had untolerated taint {a: b, c}, 6 Insufficient cpu. preemption: 0/7 nodes are available: 7 No preemption victims found for incoming pod.")),
			want:  tell(autov1alpha1.ReasonUnschedulable, "No node can take the run's pod: Insufficient cpu, nodes had untolerated taint {a: b, c}; lower what it requests, or add or free a node, and it begins by itself")},
		"Another node that has no room is no news": {
			world: with(pod(unscheduled("0/9 nodes are available: 9 Insufficient cpu.")),
				waits(autov1alpha1.ReasonUnschedulable, "No node can take the run's pod: Insufficient cpu; lower what it requests, or add or free a node, and it begins by itself")),
			want: nothing},
		"There is no node": {
			world: pod(unscheduled("no nodes available to schedule pods")),
			want:  tell(autov1alpha1.ReasonUnschedulable, "No node can take the run's pod: no nodes available to schedule pods; lower what it requests, or add or free a node, and it begins by itself")},
		"A gate is not for us to open": {world: pod(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated"}}
		}), want: nothing},

		"A Job that nobody has looked at":      {world: job(refusals(), aJob("", "", "")), want: nothing},
		"A Job whose pod is to come":           {world: job(refusals(), begun(active)), want: nothing},
		"A Job without a pod, nobody said why": {world: refusals(), want: unknown},
		"A Job without a pod, and another Event": {
			world: refusals(corev1.Event{Reason: "SuccessfulCreate", Message: "Created pod"}), want: unknown},
		"A ServiceAccount that is missing":    {world: refusals(failedCreate("a", accountIs, 0)), want: tell(refusedPod, unknownAccount)},
		"It is told once, too":                {world: with(refusals(failedCreate("a", accountIs, 0)), waits(refusedPod, unknownAccount)), want: nothing},
		"Combined Events say the same":        {world: with(refusals(failedCreate("b", "(combined from similar events): "+accountIs, 0)), waits(refusedPod, unknownAccount)), want: nothing},
		"An Event that is no longer kept":     {world: with(refusals(), waits(refusedPod, unknownAccount)), want: nothing},
		"What another pod waited for is over": {world: with(refusals(), waits(image, notFound)), want: unknown},
		"A quota": {
			world: refusals(failedCreate("a", `Error creating: pods "app-1-x" is forbidden: exceeded quota: compute, requested: cpu=150m,pods=1, used: cpu=1,pods=3, limited: cpu=1,pods=3`, 0)),
			want:  tell(refusedPod, "The run's pod is refused: exceeded quota: compute, requested: cpu=150m,pods=1, limited: cpu=1,pods=3; raise the quota or free some of it and the run begins by itself")},
		"A quota that wants limits": {
			world: refusals(failedCreate("a", `Error creating: pods "app-1-x" is forbidden: failed quota: compute: must specify limits.cpu for: bootstrap,pulumi`, 0)),
			want:  tell(refusedPod, "The run's pod is refused: failed quota: compute: must specify limits.cpu for: bootstrap,pulumi; raise the quota or free some of it and the run begins by itself")},
		"Pod security": {
			world: refusals(failedCreate("a", `Error creating: pods "app-1-x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`, 0)),
			want:  tell(refusedPod, `The run's pod is refused: it violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false; correct securityProfile or podTemplate, or the namespace's level`)},
		"A webhook": {
			world: refusals(failedCreate("a", `Error creating: admission webhook "policy.test" denied the request: no label`, 0)),
			want:  tell(refusedPod, `The run's pod is refused: admission webhook "policy.test" denied the request: no label; correct what refuses it and the run begins by itself`)},
		"What is not valid": {
			world: refusals(failedCreate("a", `Error creating: Pod "app-1-x" is invalid: spec.x: Required value`, 0)),
			want:  tell(refusedPod, `The run's pod is refused: is invalid: spec.x: Required value; correct what refuses it and the run begins by itself`)},
		"The newest Event counts": {
			world: refusals(failedCreate("a", "Error creating: second", time.Minute), failedCreate("b", "Error creating: first", 0)),
			want:  tell(refusedPod, "The run's pod is refused: second; correct what refuses it and the run begins by itself")},

		"It goes on once its image is there": {world: with(pod(waitingFor(Container, "PodInitializing", "")), waits(image, notFound)), want: over},
		"It goes on once it has a pod":       {world: with(pod(), waits(refusedPod, unknownAccount)), want: over},
		"It waits for something else":        {world: with(pod(backingOff), waits(refusedPod, unknownAccount)), want: tell(image, notFound)},
		"It waited for another Update":       {world: with(pod(), waits(autov1alpha1.ReasonWorkspaceBusy, "Busy")), want: nothing},

		"A run that was taken":      {world: with(pod(backingOff), taken), want: nothing},
		"An Update that is settled": {world: with(pod(backingOff), settled), want: nothing},
		"An Update that is deleted": {world: with(pod(backingOff), deletedUpdate), want: nothing},
		"A Job that is gone":        {world: job(pod(backingOff), nil), want: nothing},
		"A Job that goes":           {world: job(refusals(failedCreate("a", "x", 0)), begun(func(j *batchv1.Job) { j.DeletionTimestamp = &now })), want: nothing},
		"A Job that failed":         {why: "what it waited for last is why", world: with(job(pod(), aJob(batchv1.JobFailed, "x", "x")), waits(image, notFound)), want: nothing},
		"A pod that goes":           {world: with(pod(func(p *corev1.Pod) { p.DeletionTimestamp = &now }), waits(image, notFound)), want: nothing},
		"A pod that ended":          {world: with(pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), waits(image, notFound)), want: nothing},
		"A pod that is gone":        {world: with(job(refusals(), begun(func(j *batchv1.Job) { j.Status.Failed = 1 })), waits(image, notFound)), want: nothing},
		"A pod that is about to go": {world: with(job(refusals(), begun(func(j *batchv1.Job) { one := int32(1); j.Status.Terminating = &one })), waits(image, notFound)), want: nothing},
		"A pod that is not counted": {world: job(refusals(), begun(func(j *batchv1.Job) {
			j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"a"}}
		})), want: nothing},
	} {
		t.Run(name, func(t *testing.T) {
			got := AssessWait(c.world)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("%s\n-want +got:\n%s", c.why, diff)
			}
			if got.Action != WaitTell {
				return
			}
			if strings.ContainsAny(got.Message, "\n\r") || strings.HasSuffix(got.Message, ".") || strings.ToUpper(got.Message[:1]) != got.Message[:1] {
				t.Errorf("The message is not one line as it should be: %q", got.Message)
			}
			c.world.Update = madeUpdate(waits(got.Reason, got.Message))
			if again := AssessWait(c.world); again.Action != WaitNothing {
				t.Errorf("It is told again: %+v", again)
			}
		})
	}
}

func TestReasonsThatOnlyAPodTells(t *testing.T) {
	for reason, want := range map[autov1alpha1.ConditionReason]bool{
		autov1alpha1.ReasonEvicted: true, autov1alpha1.ReasonOutOfMemory: false, autov1alpha1.ReasonPodRefused: true,
		autov1alpha1.ReasonAborted: false, autov1alpha1.ReasonUpdateFailed: false, "": false,
	} {
		if got := OnlyFound(reason); got != want {
			t.Errorf("OnlyFound(%s) = %t", reason, got)
		}
	}
}
