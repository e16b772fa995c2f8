package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

// soon is how long it may take from what is wrong with a pod until its Stack says
// so, on a machine that is busy: far from the hour of a Job's deadline, and from
// the sweep, which is not let into these namespaces.
const soon = 20 * time.Second

// awaitSoon waits until the one condition that is True has this reason, and its
// message these parts.
func awaitSoon(s *space, name string, reason pulumiv1.ReconcilingReason, parts ...string) *pulumiv1.Stack {
	s.Helper()
	stack := s.awaitWithin(soon, name, "says "+string(reason), func(stack *pulumiv1.Stack) bool {
		return observed(stack) && current(stack) == string(reason)
	})
	for _, part := range parts {
		if !strings.Contains(message(stack), part) {
			s.Errorf("the message is %q, want %q in it", message(stack), part)
		}
	}
	return stack
}

// gated is a Stack whose pods the local runner leaves alone until a test lets
// them go: what a scheduler or a kubelet would write, the test writes.
func gated(stack *pulumiv1.Stack) {
	var template map[string]any
	if err := json.Unmarshal(stack.Spec.WorkspaceTemplate.Raw, &template); err != nil {
		panic(err)
	}
	pod := template["spec"].(map[string]any)["podTemplate"].(map[string]any)["spec"].(map[string]any)
	pod["schedulingGates"] = []any{map[string]any{"name": "updraft.dev/test"}}
	text, err := json.Marshal(template)
	if err != nil {
		panic(err)
	}
	stack.Spec.WorkspaceTemplate.Raw = text
}

// podOf waits for the pod of the Stack's claimed Update, other than those before.
func (s *space) podOf(name string, before ...string) string {
	s.Helper()
	pod := ""
	s.eventually("a pod is made", func() error {
		claim := s.get(name).Status.CurrentUpdate
		if claim == nil {
			return fmt.Errorf("nothing is claimed")
		}
		list, err := s.kube.CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: pulumiv1.LabelUpdate + "=" + claim.Name})
		if err != nil {
			return err
		}
		for _, p := range list.Items {
			if !slices.Contains(before, p.Name) {
				pod = p.Name
				return nil
			}
		}
		return fmt.Errorf("Update %s has no pod", claim.Name)
	})
	return pod
}

// setPod writes a pod's status, as its kubelet or the scheduler would.
func (s *space) setPod(name string, status corev1.PodStatus) {
	s.Helper()
	text, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		s.Fatal(err)
	}
	_, err = s.kube.CoreV1().Pods(s.namespace).Patch(s.Context(), name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
	if err != nil {
		s.Fatal(err)
	}
}

// letGo takes the gates off a pod, so that the local runner runs it.
func (s *space) letGo(pod string) {
	s.Helper()
	_, err := s.kube.CoreV1().Pods(s.namespace).Patch(s.Context(), pod, types.JSONPatchType, []byte(`[{"op": "remove", "path": "/spec/schedulingGates"}]`), metav1.PatchOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

func waitingStatus(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: run.Container, Image: "registry.test/cli:none",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}

// course follows what a Stack says, from now on: each reason and message that is
// another than the one before.
type course struct {
	*space
	mu   sync.Mutex
	said []string
}

func (s *space) follow(name string) *course {
	s.Helper()
	c := &course{space: s}
	w, err := s.pulumi.PulumiV1().Stacks(s.namespace).Watch(s.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			stack, ok := e.Object.(*pulumiv1.Stack)
			if !ok || current(stack) == "" {
				continue
			}
			now := current(stack) + ": " + message(stack)
			c.mu.Lock()
			if len(c.said) == 0 || c.said[len(c.said)-1] != now {
				c.said = append(c.said, now)
			}
			c.mu.Unlock()
		}
	}()
	return c
}

// expect says which reasons followed each other, each with one message.
func (c *course) expect(reasons ...string) {
	c.Helper()
	var said []string
	c.eventually("all is seen", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		said = slices.Clone(c.said)
		if len(said) < len(reasons) {
			return fmt.Errorf("%v", said)
		}
		return nil
	})
	var got []string
	for _, s := range said {
		reason, _, _ := strings.Cut(s, ":")
		if reason == string(pulumiv1.ReconcilingProcessing) && len(got) > 0 && got[len(got)-1] == reason {
			continue // why it is wanted, then that it is processed
		}
		got = append(got, reason)
	}
	if !slices.Equal(got, reasons) {
		c.Errorf("it said\n%s\nwant %v", strings.Join(said, "\n"), reasons)
	}
}

const (
	processing = string(pulumiv1.ReconcilingProcessing)
	completed  = string(pulumiv1.ReadyCompleted)
)

func (s *space) makeAccount(name string) {
	s.Helper()
	_, err := s.kube.CoreV1().ServiceAccounts(s.namespace).Create(s.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

func runsAs(account string) func(*pulumiv1.Stack) {
	return func(stack *pulumiv1.Stack) { stack.Spec.ServiceAccountName = account }
}

func TestAPodWithoutItsServiceAccountIsToldAndRunsOnceItIsThere(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	c := s.follow("app")
	s.create(s.stackOf("app", "greets", runsAs("deployer")))
	refused := awaitSoon(s, "app", pulumiv1.ReconcilingPodRefused, "ServiceAccount deployer does not exist; create it")
	u := s.update(refused.Status.CurrentUpdate.Name)
	if reason, _ := u.PodWaits(); reason != autov1alpha1.ReasonPodRefused {
		t.Errorf("the Update says %+v", u.Status.Conditions)
	}
	s.makeAccount("deployer")
	if ready := s.awaitReady("app"); ready.Status.LastUpdate.Name != u.Name {
		t.Errorf("another run took its place: %s", summary(ready))
	}
	c.expect(processing, string(pulumiv1.ReconcilingPodRefused), processing, completed)
	s.awaitRest()
}

func TestAPodThatIsRefusedIsToldThoughEventsAreLost(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, lossy)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets", runsAs("deployer")))
	awaitReason(s, "app", pulumiv1.ReconcilingPodRefused)
	s.makeAccount("deployer")
	s.awaitReady("app")
}

func TestARunThatIsRefusedUntilItsDeadlineFailsAsThatAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets", runsAs("deployer"), spec("updateTemplate: {spec: {timeout: 6s}}")))
	first := awaitSoon(s, "app", pulumiv1.ReconcilingPodRefused).Status.CurrentUpdate.Name
	failed := s.awaitAttempts("app", 1)
	if last := failed.Status.LastUpdate; last.Name != first || last.Reason != string(autov1alpha1.ReasonPodRefused) ||
		!strings.Contains(last.Message, "did not begin before its timeout: The run's pod is refused: ServiceAccount deployer does not exist") {
		t.Errorf("it is told as %s", summary(failed))
	}
	s.makeAccount("deployer")
	s.change("app", func(stack *pulumiv1.Stack) { stack.Spec.UpdateTemplate = nil })
	s.awaitReady("app")
	s.awaitRest()
}

func TestARunThatIsRefusedByAQuotaBeginsOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	quotas := s.kube.CoreV1().ResourceQuotas(s.namespace)
	// set is the quota, and what the quota controller, which does not run here,
	// would say of it.
	set := func(quota *corev1.ResourceQuota, pods string) *corev1.ResourceQuota {
		hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
		quota.Name, quota.Spec.Hard = "few", hard
		var err error
		if quota.UID == "" {
			quota, err = quotas.Create(t.Context(), quota, metav1.CreateOptions{})
		} else {
			quota, err = quotas.Update(t.Context(), quota, metav1.UpdateOptions{})
		}
		if err == nil {
			quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
			quota, err = quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return quota
	}
	quota := set(&corev1.ResourceQuota{}, "0")
	s.create(s.stackOf("app", "greets"))
	awaitSoon(s, "app", pulumiv1.ReconcilingPodRefused, "exceeded quota: few, requested: pods=1, limited: pods=0; raise the quota")
	set(quota, "10")
	s.awaitReady("app")
	s.awaitRest()
}

func TestARunThatPodSecurityRefusesBeginsOnceTheStackIsCorrected(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	_, err := s.kube.CoreV1().Namespaces().Patch(t.Context(), s.namespace, types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.program("greets", greets)
	stack := s.stackOf("app", "greets")
	correct := stack.Spec.WorkspaceTemplate.DeepCopy()
	stack.Spec.WorkspaceTemplate.Raw = []byte(strings.Replace(string(correct.Raw), `"spec":{`, `"spec":{"securityProfile":"baseline",`, 1))
	s.create(stack)
	refused := awaitSoon(s, "app", pulumiv1.ReconcilingPodRefused, `it violates PodSecurity "restricted:latest"`, "correct securityProfile")
	s.change("app", func(stack *pulumiv1.Stack) { stack.Spec.WorkspaceTemplate = correct })
	s.awaitReady("app")
	old := s.awaitUpdate(refused.Status.CurrentUpdate.Name, "is superseded", (*autov1alpha1.Update).Settled)
	if old.FailedReason() != autov1alpha1.ReasonSuperseded {
		t.Errorf("it is settled as %s", old.FailedReason())
	}
	s.awaitRest()
}

func TestAStackWhosePodIsRefusedGoesAtOnceWhenItIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets", runsAs("deployer")))
	awaitSoon(s, "app", pulumiv1.ReconcilingPodRefused)
	s.kubectl("delete", "stack", "app", "--timeout=30s")
	s.kubectl("delete", "program", "greets")
	s.awaitNothing()
}

func TestAnImageThatCannotBePulledIsToldOnceAndTheRunGoesOnByItself(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	c := s.follow("app")
	s.create(s.stackOf("app", "greets", gated))
	pod := s.podOf("app")
	const cause = `failed to resolve reference "registry.test/cli:none": not found`
	for range 3 {
		s.setPod(pod, waitingStatus("ErrImagePull", cause))
		awaitSoon(s, "app", pulumiv1.ReconcilingImagePullBackOff, "of container pulumi cannot be pulled: "+cause+"; correct it")
		s.setPod(pod, waitingStatus("ImagePullBackOff", `Back-off pulling image "registry.test/cli:none": ErrImagePull: `+cause))
	}
	told := s.get("app").Status.CurrentUpdate.Name
	s.letGo(pod)
	if ready := s.awaitReady("app"); ready.Status.LastUpdate.Name != told {
		t.Errorf("another run took its place: %s", summary(ready))
	}
	c.expect(processing, string(pulumiv1.ReconcilingImagePullBackOff), processing, completed)
	s.awaitRest()
}

func TestAPodThatNoNodeCanTakeIsToldOnceAndTheRunGoesOnByItself(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	c := s.follow("app")
	s.create(s.stackOf("app", "greets", gated))
	pod := s.podOf("app")
	for nodes := 1; nodes < 4; nodes++ {
		s.setPod(pod, corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: fmt.Sprintf("0/%d nodes are available: %d Insufficient cpu. preemption: 0/%d nodes are available.", nodes, nodes, nodes),
		}}})
		awaitSoon(s, "app", pulumiv1.ReconcilingUnschedulable, "No node can take the run's pod: Insufficient cpu; lower what it requests")
	}
	s.letGo(pod)
	s.awaitReady("app")
	c.expect(processing, string(pulumiv1.ReconcilingUnschedulable), processing, completed)
	s.awaitRest()
}

func TestAContainerThatWantsASecretIsToldAndTheRunBeginsOnceItIsThere(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets", spec("envSecrets: [later]")))
	awaitSoon(s, "app", pulumiv1.ReconcilingCreateContainerError, "Container pulumi cannot be created: ", "later")
	_, err := s.kube.CoreV1().Secrets(s.namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "later"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.awaitReady("app")
	s.awaitRest()
}

func TestARunThatIsOutOfMemorySaysSoAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets", gated))
	pod := s.podOf("app")
	u := s.update(s.get("app").Status.CurrentUpdate.Name)
	// The test is the agent that takes the run, and the kubelet that kills it.
	taken, err := event.New(event.TypeRunTaken, "agent", string(u.UID), event.Ref{Kind: event.KindUpdate, Namespace: s.namespace, Name: u.Name}, event.Taken{UID: string(u.UID)})
	if err != nil {
		t.Fatal(err)
	}
	s.eventually("the run is taken", func() error {
		if status := send(t.Context(), t, s.Functions["updraft-status"], taken, s.token(pod, run.TokenAudience)); status != 204 {
			return fmt.Errorf("answer %d", status)
		}
		return nil
	})
	killed := corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	s.setPod(pod, corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
		Name: run.Container, State: corev1.ContainerState{Terminated: &killed},
	}}})
	failed := s.awaitAttempts("app", 1)
	if last := failed.Status.LastUpdate; last.Name != u.Name || last.Reason != string(autov1alpha1.ReasonOutOfMemory) || !strings.Contains(last.Message, "raise resources.limits.memory") {
		t.Errorf("it is told as %s", summary(failed))
	}
	s.letGo(s.podOf("app", pod))
	s.awaitReady("app")
	s.awaitRest()
}

func TestARunThatIsEvictedSaysSoAndRunsAgain(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, lab.main, plain))
	h.gate.openNext("again")
	err := h.kube.CoreV1().Pods(h.namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: h.pod(), Namespace: h.namespace}})
	if err != nil {
		t.Fatal(err)
	}
	evicted := h.awaitSettled(autov1alpha1.ReasonEvicted)
	if !strings.Contains(evicted.Status.Message, "The run's pod was evicted: EvictionByEvictionAPI") {
		t.Errorf("it is told as %q", evicted.Status.Message)
	}
	ready := h.awaitReady("app")
	if ready.Status.LastUpdate.Name == h.update || meta.FindStatusCondition(ready.Status.Conditions, pulumiv1.ReconcilingCondition) != nil {
		t.Errorf("it did not run again: %s", summary(ready))
	}
	if locks := h.locks("state"); len(locks) != 0 {
		t.Errorf("the locks %v are left", locks)
	}
	h.awaitRest()
}
