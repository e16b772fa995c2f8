package run

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// noon is the time of all cases.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func at(t time.Time) metav1.Time { return metav1.NewTime(t) }

const (
	stackUID  = "uid-of-app"
	updateUID = types.UID("uid-of-app-1")
	podUID    = types.UID("uid-of-pod")
)

// madeUpdate is app-1 as the stack function makes it.
func madeUpdate(changes ...func(*autov1alpha1.Update)) *autov1alpha1.Update {
	u := &autov1alpha1.Update{
		TypeMeta: metav1.TypeMeta{APIVersion: "auto.pulumi.com/v1alpha1", Kind: "Update"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "app-1", UID: updateUID, Generation: 1,
			Finalizers: []string{pulumiv1.Finalizer},
			Labels:     map[string]string{pulumiv1.LabelStackName: "app"},
			Annotations: map[string]string{
				pulumiv1.AnnotationStackUID:  stackUID,
				pulumiv1.AnnotationWorkspace: "uid-of-workspace/4",
			},
		},
		Spec: autov1alpha1.UpdateSpec{WorkspaceName: "app", StackName: "dev", Type: autov1alpha1.UpType},
	}
	for _, change := range changes {
		change(u)
	}
	return u
}

// handMadeUpdate is by-hand as a user makes it.
func handMadeUpdate(changes ...func(*autov1alpha1.Update)) *autov1alpha1.Update {
	u := madeUpdate(func(u *autov1alpha1.Update) {
		u.Name, u.Annotations, u.Labels, u.Spec.Type = "by-hand", nil, nil, autov1alpha1.RefreshType
	})
	for _, change := range changes {
		change(u)
	}
	return u
}

func deletedUpdate(u *autov1alpha1.Update) {
	t := at(noon)
	u.DeletionTimestamp = &t
}

// taken is an Update whose run pod app-1-abcde took.
func taken(u *autov1alpha1.Update) {
	u.Status.Run = &autov1alpha1.RunStatus{PodName: "app-1-abcde", PodUID: podUID, Node: "node", Phase: autov1alpha1.RunTaken}
}

func settled(u *autov1alpha1.Update) { u.MarkSucceeded(at(noon)) }

func ended(u *autov1alpha1.Update) {
	if u.Status.Run == nil {
		u.Status.Run = &autov1alpha1.RunStatus{}
	}
	u.Status.Run.Phase = autov1alpha1.RunEnded
}

func absentFor(d time.Duration) func(*autov1alpha1.Update) {
	return func(u *autov1alpha1.Update) {
		t := at(noon.Add(-d))
		u.Status.Run.AbsentSince, u.Status.Run.Phase = &t, autov1alpha1.RunUnknown
	}
}

func aWorkspace(changes ...func(*autov1alpha1.Workspace)) *autov1alpha1.Workspace {
	ws := &autov1alpha1.Workspace{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "app", UID: "uid-of-workspace", Generation: 4,
			Annotations: map[string]string{pulumiv1.AnnotationStackUID: stackUID},
		},
		Spec: autov1alpha1.WorkspaceSpec{
			ServiceAccountName: "deployer", SecurityProfile: autov1alpha1.SecurityProfileRestricted,
			Program: &autov1alpha1.ProgramSource{Name: "web", Generation: 7},
		},
	}
	for _, change := range changes {
		change(ws)
	}
	return ws
}

func lockedBy(name string, uid types.UID) func(*autov1alpha1.Workspace) {
	return func(ws *autov1alpha1.Workspace) { ws.Status.Run = &autov1alpha1.RunLock{Name: name, UID: uid} }
}

func podTemplate(text string) func(*autov1alpha1.Workspace) {
	return func(ws *autov1alpha1.Workspace) { ws.Spec.PodTemplate = &runtime.RawExtension{Raw: []byte(text)} }
}

func aStack(changes ...func(*pulumiv1.Stack)) *pulumiv1.Stack {
	s := &pulumiv1.Stack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: stackUID}}
	s.Status.CurrentUpdate = &pulumiv1.CurrentStackUpdate{Name: "app-1"}
	for _, change := range changes {
		change(s)
	}
	return s
}

func deletedStack(s *pulumiv1.Stack) {
	t := at(noon)
	s.DeletionTimestamp = &t
}

func aProgram(generation int64) *pulumiv1.Program {
	return &pulumiv1.Program{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", Generation: generation}}
}

// aPod is the run's pod in this phase.
func aPod(phase corev1.PodPhase, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app-1-abcde", UID: podUID},
		Status:     corev1.PodStatus{Phase: phase},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// exited is a container that ended; our own and those of users are told apart by
// their names.
func exited(name string, code int32, changes ...func(*corev1.ContainerStateTerminated)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		t := &corev1.ContainerStateTerminated{ExitCode: code}
		for _, change := range changes {
			change(t)
		}
		status := corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: t}}
		if name == Container {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
		} else {
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, status)
		}
	}
}

func saying(message string) func(*corev1.ContainerStateTerminated) {
	return func(t *corev1.ContainerStateTerminated) { t.Message = message }
}

func because(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = reason, message }
}

func waitingFor(name, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name: name, Image: "x", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		})
	}
}

func sidecar(name string) func(*corev1.Pod) {
	always := corev1.ContainerRestartPolicyAlways
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name, RestartPolicy: &always})
	}
}

// aJob is the run's Job with this condition.
func aJob(kind batchv1.JobConditionType, reason, message string) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app-1", UID: "uid-of-job"}}
	if kind != "" {
		j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}}
	}
	return j
}

// unscheduled is a pod that the scheduler has found no node for.
func unscheduled(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		})
	}
}

// disrupted is a pod that somebody is about to take away.
func disrupted(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		})
	}
}

// waits is an Update of which it was told what it waits for.
func waits(reason autov1alpha1.ConditionReason, message string) func(*autov1alpha1.Update) {
	return func(u *autov1alpha1.Update) { u.MarkWaiting(at(noon), reason, message) }
}

// begun is the run's Job once its controller has looked at it.
func begun(changes ...func(*batchv1.Job)) *batchv1.Job {
	j, t := aJob("", "", ""), at(noon)
	j.Status.StartTime = &t
	for _, change := range changes {
		change(j)
	}
	return j
}
