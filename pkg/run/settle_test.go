package run

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
)

func end(reason autov1alpha1.ConditionReason, message string) SettleVerdict {
	return SettleVerdict{Action: SettleEnd, Outcome: event.Termination{State: "failed", Reason: string(reason), Message: message}}
}

// settlement is a case of AssessEnd at noon.
type settlement struct {
	why   string
	world SettleWorld
	want  SettleVerdict
}

func settles(t *testing.T, cases map[string]settlement) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := AssessEnd(c.world, noon)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.why, diff)
			}
			if strings.ContainsAny(got.Outcome.Message, "\n\r") && got.Outcome.State != "succeeded" {
				t.Errorf("The message has more than one line: %q", got.Outcome.Message)
			}
		})
	}
}

func TestARunThatTookItsUpdateEnds(t *testing.T) {
	nothing := SettleVerdict{Action: SettleNothing}
	world := func(pod *corev1.Pod, job *batchv1.Job, changes ...func(*autov1alpha1.Update)) SettleWorld {
		return SettleWorld{Update: madeUpdate(append([]func(*autov1alpha1.Update){taken}, changes...)...), Pod: pod, Job: job}
	}
	job := aJob("", "", "")
	deadline := aJob(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	nearDeadline := aJob(batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	tooLong := end(autov1alpha1.ReasonDeadlineExceeded, "The run took longer than its timeout and was stopped; raise timeout through updateTemplate, or make it do less")
	oom := func(t *corev1.ContainerStateTerminated) { t.Reason = "OOMKilled" }
	stopped := saying(`{"state":"canceled","reason":"Canceled","message":"Stopped on request"}`)
	canceled := SettleVerdict{Action: SettleEnd, Outcome: event.Termination{State: "canceled", Reason: "Canceled", Message: "Stopped on request"}}
	settles(t, map[string]settlement{
		"It goes on while its container runs":          {world: world(aPod(corev1.PodRunning), job), want: nothing},
		"It goes on while another container has ended": {world: world(aPod(corev1.PodRunning, exited("side", 1)), job), want: nothing},
		"Its end is recorded once":                     {world: world(aPod(corev1.PodFailed, exited(Container, 1)), job, ended), want: nothing},
		"A settled one's end is recorded": {
			why:   "it reported before its container ended; the outcome does not count any more",
			world: world(aPod(corev1.PodSucceeded, exited(Container, 0, saying(`{"state":"succeeded"}`))), job, settled),
			want:  SettleVerdict{Action: SettleEnd, Outcome: event.Termination{State: "succeeded"}}},
		"Its termination message tells how it ended": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1, saying(`{"state":"failed","reason":"UpdateFailed","message":"error: no such bucket"}`))), job),
			want:  end(autov1alpha1.ReasonUpdateFailed, "error: no such bucket")},
		"A termination message that tells no state does not count": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1, saying(`{"message":"x"}`))), job),
			want:  end(autov1alpha1.ReasonAborted, "Container pulumi ended with exit code 1 before it could report")},
		"A termination message that is no JSON does not count": {
			why:   "what the program prints may hold secrets",
			world: world(aPod(corev1.PodFailed, exited(Container, 2, saying("panic: token=hunter2"))), job),
			want:  end(autov1alpha1.ReasonAborted, "Container pulumi ended with exit code 2 before it could report")},
		"Out of memory": {
			world: world(aPod(corev1.PodFailed, exited(Container, 137, oom)), job),
			want:  end(autov1alpha1.ReasonOutOfMemory, "Container pulumi ran out of memory; raise resources.limits.memory through workspaceTemplate")},
		"Killed, as the exit code tells": {
			world: world(aPod(corev1.PodFailed, exited(Container, 137)), job),
			want:  end(autov1alpha1.ReasonAborted, "Container pulumi ended with signal 9 before it could report")},
		"Killed, as the runtime tells": {
			world: world(aPod(corev1.PodFailed, exited(Container, 255, func(t *corev1.ContainerStateTerminated) { t.Signal = 11 })), job),
			want:  end(autov1alpha1.ReasonAborted, "Container pulumi ended with signal 11 before it could report")},
		"An end without any cause": {
			world: world(aPod(corev1.PodSucceeded, exited(Container, 0)), job),
			want:  end(autov1alpha1.ReasonAborted, "Container pulumi ended with exit code 0 before it could report")},
		"Evicted": {
			world: world(aPod(corev1.PodFailed, exited(Container, 137), because("Evicted", "The node was low on resource:\n ephemeral-storage.")), job),
			want:  end(autov1alpha1.ReasonEvicted, "The run's pod was evicted: The node was low on resource: ephemeral-storage")},
		"Evicted without a container's end": {
			world: world(aPod(corev1.PodFailed, because("Evicted", "")), job),
			want:  end(autov1alpha1.ReasonEvicted, "The run's pod was evicted: Evicted")},
		"Out of memory in a pod that is evicted": {
			why:   "the nearer cause is the one that can be mended",
			world: world(aPod(corev1.PodFailed, exited(Container, 137, oom), because("Evicted", "The node was low on resource: memory.")), job),
			want:  end(autov1alpha1.ReasonOutOfMemory, "Container pulumi ran out of memory; raise resources.limits.memory through workspaceTemplate")},
		"Evicted, and it had said how it ended": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1, saying(`{"state":"failed","reason":"UpdateFailed","message":"error: no such bucket"}`)), because("Evicted", "")), job),
			want:  end(autov1alpha1.ReasonUpdateFailed, "error: no such bucket")},
		"A run cannot say that it was evicted": {
			why:   "such a reason is found, not told",
			world: world(aPod(corev1.PodFailed, exited(Container, 1, saying(`{"state":"failed","reason":"Evicted","message":"x"}`))), job),
			want:  end(autov1alpha1.ReasonUnknown, "x")},
		"It was stopped since its pod had to make room": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1, stopped), disrupted("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")), job),
			want:  end(autov1alpha1.ReasonEvicted, "The run's pod was evicted: PreemptionByScheduler: default-scheduler: preempting to accommodate a higher priority pod")},
		"It was stopped on request in a pod that is evicted": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1, stopped), disrupted("EvictionByEvictionAPI", "Eviction API: evicting")), nil), want: canceled},
		"Failed by the control plane": {
			world: world(aPod(corev1.PodFailed, because("", "Preempted by a higher pod")), job),
			want:  end(autov1alpha1.ReasonAborted, "Container pulumi ended with exit code 1 before it could report (Preempted by a higher pod)")},
		"Its Job's deadline passed": {
			world: world(aPod(corev1.PodFailed, exited(Container, 137)), deadline), want: tooLong},
		"Its Job's deadline passed, and its pods have not all ended": {
			why:   "a Job is Failed only after its pods; until then its condition is FailureTarget",
			world: world(aPod(corev1.PodFailed, exited(Container, 137)), nearDeadline), want: tooLong},
		"It was stopped at its Job's deadline": {
			why:   "it knows that it was told to stop, and not why; a cancelled run would not be tried again",
			world: world(aPod(corev1.PodFailed, exited(Container, 1, stopped)), deadline), want: tooLong},
		"It succeeded in spite of its Job's deadline": {
			world: world(aPod(corev1.PodSucceeded, exited(Container, 0, saying(`{"state":"succeeded"}`))), deadline),
			want:  SettleVerdict{Action: SettleEnd, Outcome: event.Termination{State: "succeeded"}}},
		"It failed before its Job's deadline": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1, saying(`{"state":"failed","reason":"UpdateConflict","message":"Locked"}`))), deadline),
			want:  end(autov1alpha1.ReasonUpdateConflict, "Locked")},
		"Another failure of its Job says nothing": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1)), aJob(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "x")),
			want:  end(autov1alpha1.ReasonAborted, "Container pulumi ended with exit code 1 before it could report")},
		"A condition of its Job that does not hold says nothing": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1)), func() *batchv1.Job {
				j := aJob(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "")
				j.Status.Conditions[0].Status = corev1.ConditionFalse
				return j
			}()),
			want: end(autov1alpha1.ReasonAborted, "Container pulumi ended with exit code 1 before it could report")},
		"It was stopped on request: its Job is gone": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1, stopped)), nil), want: canceled},
		"It was stopped on request: its Job goes": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1, stopped)), func() *batchv1.Job {
				j, t := aJob("", "", ""), at(noon)
				j.DeletionTimestamp = &t
				return j
			}()), want: canceled},
		"It was stopped on request: its Update goes": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1, stopped)), job, deletedUpdate), want: canceled},
		"It was stopped by a drain": {
			why:   "nobody asked for it: it is tried again",
			world: world(aPod(corev1.PodFailed, exited(Container, 1, stopped)), job),
			want:  end(autov1alpha1.ReasonAborted, "The run was stopped with its pod, as when a node is drained")},
	})
}

func TestARunWhosePodIsGone(t *testing.T) {
	world := func(ready time.Duration, changes ...func(*autov1alpha1.Update)) SettleWorld {
		w := SettleWorld{Update: madeUpdate(append([]func(*autov1alpha1.Update){taken}, changes...)...)}
		if ready > 0 {
			w.NodeReadySince = noon.Add(-ready)
		}
		return w
	}
	gone := end(autov1alpha1.ReasonAborted, "Pod app-1-abcde is gone and left no report")
	absent := func(alarm time.Duration) SettleVerdict {
		return SettleVerdict{Action: SettleAbsent, Alarm: noon.Add(alarm)}
	}
	node := func(w SettleWorld) SettleWorld {
		w.NodeGone = true
		return w
	}
	other := func(w SettleWorld) SettleWorld {
		w.Pod = aPod(corev1.PodRunning, func(p *corev1.Pod) { p.UID = "uid-of-another" })
		return w
	}
	settles(t, map[string]settlement{
		"That it is gone is recorded first":                {world: world(time.Hour), want: absent(10 * time.Minute)},
		"Another pod of its name is not it":                {world: other(world(time.Hour)), want: absent(10 * time.Minute)},
		"It is waited for, for as long as its grace":       {world: world(time.Hour, absentFor(4*time.Minute)), want: absent(6 * time.Minute)},
		"Not a nanosecond less":                            {world: world(time.Hour, absentFor(10*time.Minute-1)), want: absent(1)},
		"It has ended once its node was Ready for so long": {world: world(time.Hour, absentFor(10*time.Minute)), want: gone},
		"A node that became Ready since counts from then": {
			why:   "while it was not, the pod may have gone on",
			world: world(3*time.Minute, absentFor(time.Hour)), want: absent(7 * time.Minute)},
		"A node that became Ready so long ago proves it": {world: world(10*time.Minute, absentFor(time.Hour)), want: gone},
		"A node that is not Ready proves nothing":        {world: world(0, absentFor(time.Hour)), want: absent(0)},
		"A node that is gone proves it":                  {world: node(world(0)), want: gone},
		"A settled one has ended":                        {why: "it reported after the CLI had ended", world: world(0, settled), want: gone},
		"One that is recorded as ended is left alone":    {world: node(world(0, ended)), want: SettleVerdict{Action: SettleNothing}},
	})
}

func TestARunThatNeverBegan(t *testing.T) {
	nothing := SettleVerdict{Action: SettleNothing}
	world := func(pod *corev1.Pod, job *batchv1.Job, changes ...func(*autov1alpha1.Update)) SettleWorld {
		return SettleWorld{Update: madeUpdate(changes...), Pod: pod, Job: job}
	}
	job := aJob("", "", "")
	const deadlineMessage = "Job was active longer than specified deadline"
	deadline := aJob(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, deadlineMessage)
	nearDeadline := aJob(batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded, deadlineMessage)
	backoff := aJob(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified\nbackoff limit")
	stopped := saying(`{"state":"canceled","reason":"Canceled","message":"Stopped before the run was taken"}`)
	settles(t, map[string]settlement{
		"Nothing is there yet":                     {world: world(nil, nil), want: nothing},
		"Its Job is there":                         {world: world(nil, job), want: nothing},
		"Its pod waits":                            {world: world(aPod(corev1.PodPending, waitingFor(Bootstrap, "ImagePullBackOff", "x")), job), want: nothing},
		"Its pod runs":                             {world: world(aPod(corev1.PodRunning, exited(Bootstrap, 0)), job), want: nothing},
		"A settled one is left alone":              {world: world(aPod(corev1.PodFailed, exited(Container, 1)), backoff, settled), want: nothing},
		"One that is recorded ended is left alone": {world: world(aPod(corev1.PodFailed, exited(Container, 1)), backoff, ended), want: nothing},
		"The source could not be fetched": {
			world: world(aPod(corev1.PodFailed, exited(Bootstrap, 1, saying(`{"state":"failed","reason":"WorkspaceFailed","message":"cannot fetch the source: no"}`))), backoff),
			want:  end(autov1alpha1.ReasonWorkspaceFailed, "cannot fetch the source: no")},
		"An init container of the user failed": {
			world: world(aPod(corev1.PodFailed, exited(Bootstrap, 0), exited("plugins", 2, saying("no such\nplugin\n"))), backoff),
			want:  end(autov1alpha1.ReasonWorkspaceFailed, "Container plugins ended with exit code 2 before it could report: no such plugin")},
		"The main container failed, and the sidecars ended with it": {
			why: "a sidecar is stopped last, and is not the cause",
			world: world(aPod(corev1.PodFailed, sidecar("proxy"), exited(Bootstrap, 0), exited("proxy", 143),
				exited(Container, 1, saying(`{"state":"failed","reason":"Unknown","message":"The run cannot be taken: its report was rejected"}`))), backoff),
			want: end(autov1alpha1.ReasonUnknown, "The run cannot be taken: its report was rejected")},
		"An init container failed after a sidecar had begun": {
			world: world(aPod(corev1.PodFailed, sidecar("proxy"), exited(Bootstrap, 0), exited("proxy", 143), exited("plugins", 2)), backoff),
			want:  end(autov1alpha1.ReasonWorkspaceFailed, "Container plugins ended with exit code 2 before it could report")},
		"Only a sidecar failed": {
			world: world(aPod(corev1.PodFailed, sidecar("proxy"), exited("proxy", 1)), backoff),
			want:  end(autov1alpha1.ReasonWorkspaceFailed, "Container proxy ended with exit code 1 before it could report")},
		"Out of memory": {
			world: world(aPod(corev1.PodFailed, exited(Bootstrap, 137, func(t *corev1.ContainerStateTerminated) { t.Reason = "OOMKilled" })), backoff),
			want:  end(autov1alpha1.ReasonOutOfMemory, "Container bootstrap ran out of memory; raise resources.limits.memory through workspaceTemplate")},
		"Evicted before anything ended": {
			world: world(aPod(corev1.PodFailed, because("Evicted", "The node was low on resource: memory.")), backoff),
			want:  end(autov1alpha1.ReasonEvicted, "The run's pod was evicted: The node was low on resource: memory")},
		"Evicted while it was set up": {
			why:   "what a container said last is not why it ended",
			world: world(aPod(corev1.PodFailed, exited(Bootstrap, 143, saying("cloning")), because("Evicted", "The node was low on resource: memory.")), backoff),
			want:  end(autov1alpha1.ReasonEvicted, "The run's pod was evicted: The node was low on resource: memory")},
		"Refused by its node": {
			world: world(aPod(corev1.PodFailed, because("OutOfcpu", "Node didn't have enough resource: cpu")), backoff),
			want:  end(autov1alpha1.ReasonWorkspaceFailed, "OutOfcpu: Node didn't have enough resource: cpu")},
		"Failed without a word, and its Job not yet": {
			world: world(aPod(corev1.PodFailed), job), want: nothing},
		"Failed without a word, and its Job": {
			world: world(aPod(corev1.PodFailed), backoff),
			want:  end(autov1alpha1.ReasonWorkspaceFailed, "The run's Job failed before it began: Job has reached the specified backoff limit")},
		"Its Job failed without a pod": {
			world: world(nil, aJob(batchv1.JobFailureTarget, "PodFailurePolicy", "no quota")),
			want:  end(autov1alpha1.ReasonWorkspaceFailed, "The run's Job failed before it began: no quota")},
		"It was not begun before its deadline, and no pod is left": {
			world: world(nil, deadline), want: end(autov1alpha1.ReasonDeadlineExceeded, "The run did not begin before its timeout")},
		"It was not begun before its deadline, for want of an image": {
			world: world(aPod(corev1.PodPending, waitingFor(Bootstrap, "ImagePullBackOff", "Back-off pulling image\n\"x\": ErrImagePull: not found")), nearDeadline),
			want:  end(autov1alpha1.ReasonImagePullBackOff, "The run did not begin before its timeout: Image x of container bootstrap cannot be pulled: not found; correct it or its pull secret, or wait for the registry")},
		"It was not begun before its deadline, for want of a node": {
			world: world(aPod(corev1.PodPending, unscheduled("0/3 nodes are available: 3 Insufficient cpu.")), deadline),
			want:  end(autov1alpha1.ReasonUnschedulable, "The run did not begin before its timeout: No node can take the run's pod: Insufficient cpu; lower what it requests, or add or free a node, and it begins by itself")},
		"It was not begun before its deadline, and was told why": {
			why:   "the Job's controller deletes the pod first",
			world: world(nil, deadline, waits(autov1alpha1.ReasonPodRefused, "The run's pod is refused")),
			want:  end(autov1alpha1.ReasonPodRefused, "The run did not begin before its timeout: The run's pod is refused")},
		"It was not begun before its deadline, and its pod was stopped": {
			why:   "a kubelet gives an exit code to what never began",
			world: world(aPod(corev1.PodFailed, exited(Container, 137)), deadline, waits(autov1alpha1.ReasonImagePullBackOff, "No image")),
			want:  end(autov1alpha1.ReasonImagePullBackOff, "The run did not begin before its timeout: No image")},
		"It was not begun before its deadline, for want of something else": {
			world: world(aPod(corev1.PodPending, waitingFor(Container, "ContainerCreating", "slow")), deadline),
			want:  end(autov1alpha1.ReasonDeadlineExceeded, "The run did not begin before its timeout: ContainerCreating: slow")},
		"It waited for another Update": {
			world: world(nil, deadline, waits(autov1alpha1.ReasonWorkspaceBusy, "Waiting for Update app-0")),
			want:  end(autov1alpha1.ReasonDeadlineExceeded, "The run did not begin before its timeout")},
		"It was fetching at its deadline": {
			why:   "the container was stopped because of the deadline, which is what to tell",
			world: world(aPod(corev1.PodFailed, exited(Bootstrap, 143)), deadline),
			want:  end(autov1alpha1.ReasonDeadlineExceeded, "The run did not begin before its timeout")},
		"It was stopped at its deadline": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1, stopped)), deadline),
			want:  end(autov1alpha1.ReasonDeadlineExceeded, "The run did not begin before its timeout")},
		"It was stopped by a drain": {
			why:   "nobody asked for it: it is tried again",
			world: world(aPod(corev1.PodFailed, exited(Container, 1, stopped)), job),
			want:  end(autov1alpha1.ReasonAborted, "The run was stopped with its pod, as when a node is drained")},
		"It was stopped on request": {
			world: world(aPod(corev1.PodFailed, exited(Container, 1, stopped)), job, deletedUpdate),
			want:  SettleVerdict{Action: SettleEnd, Outcome: event.Termination{State: "canceled", Reason: "Canceled", Message: "Stopped before the run was taken"}}},
		"It ended and never took the run": {
			why:   "a template may give the container another command; without this the Update would progress for ever",
			world: world(aPod(corev1.PodSucceeded, exited(Bootstrap, 0), exited(Container, 0)), job),
			want:  end(autov1alpha1.ReasonWorkspaceFailed, "The run's pod ended and never took the run; leave the command of container pulumi as it is")},
		"Its Job is complete and it never took the run": {
			world: world(nil, aJob(batchv1.JobComplete, "", "")),
			want:  end(autov1alpha1.ReasonWorkspaceFailed, "The run's pod ended and never took the run; leave the command of container pulumi as it is")},
		"It was refused the run because its Update goes": {
			world: world(aPod(corev1.PodSucceeded, exited(Bootstrap, 0), exited(Container, 0)), job, deletedUpdate),
			want:  SettleVerdict{Action: SettleEnd, Outcome: event.Termination{State: "canceled", Reason: "Canceled", Message: "Cancelled before it was run"}}},
	})
}

func TestAbsentUntil(t *testing.T) {
	for name, c := range map[string]struct {
		update *autov1alpha1.Update
		want   time.Time
	}{
		"Never taken": {madeUpdate(), time.Time{}},
		"There":       {madeUpdate(taken), time.Time{}},
		"Gone":        {madeUpdate(taken, absentFor(time.Minute)), noon.Add(9 * time.Minute)},
	} {
		if got := AbsentUntil(c.update); !got.Equal(c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
