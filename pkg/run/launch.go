package run

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// LaunchWorld is all that the decision to launch an Update rests on. The
// Workspace is read first, then the Update, then the Stack: the lock is taken
// with that Workspace's resourceVersion, so that whoever took it in between
// makes the write fail.
type LaunchWorld struct {
	// Workspace that the Update names; nil if there is none.
	Workspace *autov1alpha1.Workspace
	// Update to launch.
	Update *autov1alpha1.Update
	// Stack that the Workspace was made for; nil if there is none.
	Stack *pulumiv1.Stack
	// Program that the Workspace names; nil if there is none.
	Program *pulumiv1.Program
	// HolderEnded says that the Update which holds the Workspace's lock, another
	// than this one, is gone, or is Complete and its run has ended.
	HolderEnded bool
}

// LaunchAction is the next write on the way to a run.
type LaunchAction string

const (
	// LaunchNothing is to be done.
	LaunchNothing LaunchAction = "Nothing"
	// LaunchFinalize puts the finalizer onto the Update.
	LaunchFinalize LaunchAction = "Finalize"
	// LaunchWait records why the Update is not launched yet.
	LaunchWait LaunchAction = "Wait"
	// LaunchSettle settles the Update without a run.
	LaunchSettle LaunchAction = "Settle"
	// LaunchStop deletes the Job, which stops the run.
	LaunchStop LaunchAction = "Stop"
	// LaunchLock takes the Workspace's lock.
	LaunchLock LaunchAction = "Lock"
	// LaunchRun makes the run's ConfigMap and Job, where they are missing.
	LaunchRun LaunchAction = "Run"
)

// LaunchVerdict is what an Update needs to be launched.
type LaunchVerdict struct {
	Action  LaunchAction
	Reason  autov1alpha1.ConditionReason
	Message string
}

// AssessLaunch decides whether an Update may be launched, and what to write
// next.
func AssessLaunch(w LaunchWorld) LaunchVerdict {
	u := w.Update
	switch {
	case u.Settled():
		return LaunchVerdict{Action: LaunchNothing}
	case asksToStop(w):
		return stop(u)
	case Taken(u):
		return LaunchVerdict{Action: LaunchNothing} // once taken it is never launched again
	case !hasFinalizer(u):
		return LaunchVerdict{Action: LaunchFinalize}
	}
	if problem := invalid(&u.Spec); problem != "" {
		return LaunchVerdict{Action: LaunchSettle, Reason: autov1alpha1.ReasonInvalid, Message: problem}
	}
	if made(u) {
		if why := superseded(w); why != "" {
			return LaunchVerdict{Action: LaunchSettle, Reason: autov1alpha1.ReasonSuperseded, Message: why}
		}
		return lock(w)
	}
	return handMade(w)
}

// Launched is the message of the condition Progressing of an Update whose run
// was launched.
func Launched(u *autov1alpha1.Update) string { return "The run was launched as Job " + u.Name }

// Taken says whether a pod has taken the Update's run.
func Taken(u *autov1alpha1.Update) bool { return u.Status.Run != nil && u.Status.Run.PodUID != "" }

// made says whether the Update was made for a Stack, by the stack function.
func made(u *autov1alpha1.Update) bool { return u.Annotations[pulumiv1.AnnotationStackUID] != "" }

func asksToStop(w LaunchWorld) bool {
	if w.Update.DeletionTimestamp != nil {
		return true
	}
	return w.Stack != nil && slices.Contains(w.Stack.AsksToCancel(), w.Update.Name)
}

func stop(u *autov1alpha1.Update) LaunchVerdict {
	if Taken(u) {
		return LaunchVerdict{Action: LaunchStop, Message: "The run was asked to stop"}
	}
	return LaunchVerdict{Action: LaunchSettle, Reason: autov1alpha1.ReasonCanceled, Message: "Cancelled before it was run"}
}

func invalid(spec *autov1alpha1.UpdateSpec) string {
	switch spec.Type {
	case autov1alpha1.UpType, autov1alpha1.PreviewType, autov1alpha1.RefreshType, autov1alpha1.DestroyType:
	default:
		return fmt.Sprintf("spec.type: unsupported update type %q; use up, preview, refresh or destroy", spec.Type)
	}
	if spec.WorkspaceName == "" {
		return "spec.workspaceName: must name a Workspace of the same namespace"
	}
	if spec.StackName == "" {
		return "spec.stackName: must name a stack"
	}
	return ""
}

// superseded says why an Update that was made for a Stack no longer stands for
// what is wanted, or "".
func superseded(w LaunchWorld) string {
	u, s := w.Update, w.Stack
	switch {
	case s == nil || string(s.UID) != u.Annotations[pulumiv1.AnnotationStackUID]:
		return "The Stack that it was made for is gone"
	case s.Status.CurrentUpdate == nil || s.Status.CurrentUpdate.Name != u.Name:
		return "The Stack no longer claims it"
	case s.DeletionTimestamp != nil && u.Spec.Type != autov1alpha1.DestroyType:
		return "The Stack is being deleted"
	case w.Workspace == nil || w.Workspace.DeletionTimestamp != nil:
		return "The Workspace that it was made for is gone"
	case fmt.Sprintf("%s/%d", w.Workspace.UID, w.Workspace.Generation) != u.Annotations[pulumiv1.AnnotationWorkspace]:
		return "The Workspace has changed"
	case waitsInVain(u, s):
		return "The Stack has changed while the run could not begin"
	default:
		return programChanged(w)
	}
}

// waitsInVain says whether an Update's pod cannot begin and its Stack asks for
// something else by now: then what was corrected need not wait for the timeout of
// what was wrong. A run that can begin is not given up for a change.
func waitsInVain(u *autov1alpha1.Update, s *pulumiv1.Stack) bool {
	if reason, _ := u.PodWaits(); reason == "" {
		return false
	}
	var stands struct {
		Generation int64  `json:"generation"`
		Request    string `json:"request"`
	}
	if err := json.Unmarshal([]byte(u.Annotations[pulumiv1.AnnotationFor]), &stands); err != nil {
		return false
	}
	return stands.Generation != s.Generation || stands.Request != s.Annotations[pulumiv1.AnnotationReconcileRequest]
}

func programChanged(w LaunchWorld) string {
	source := w.Workspace.Spec.Program
	switch {
	case source == nil || source.Generation == 0 && w.Program != nil:
		return ""
	case w.Program == nil:
		return fmt.Sprintf("Program %s is gone", source.Name)
	case w.Program.Generation != source.Generation:
		return fmt.Sprintf("Program %s has changed", source.Name)
	default:
		return ""
	}
}

func handMade(w LaunchWorld) LaunchVerdict {
	wait := func(reason autov1alpha1.ConditionReason, message string) LaunchVerdict {
		return LaunchVerdict{Action: LaunchWait, Reason: reason, Message: message}
	}
	switch {
	case w.Workspace == nil:
		return wait(autov1alpha1.ReasonWorkspaceNotFound, fmt.Sprintf("Workspace %s does not exist; create it, or correct spec.workspaceName", w.Update.Spec.WorkspaceName))
	case w.Stack != nil && w.Stack.DeletionTimestamp != nil:
		return LaunchVerdict{Action: LaunchSettle, Reason: autov1alpha1.ReasonSuperseded, Message: "The Stack of its Workspace is being deleted"}
	case w.Workspace.DeletionTimestamp != nil:
		return wait(autov1alpha1.ReasonWorkspaceNotReady, fmt.Sprintf("Workspace %s is being deleted", w.Workspace.Name))
	}
	if why := programChanged(w); why != "" && w.Program == nil {
		return wait(autov1alpha1.ReasonWorkspaceNotReady, fmt.Sprintf("%s; create it, or correct Workspace %s", why, w.Workspace.Name))
	} else if why != "" {
		return wait(autov1alpha1.ReasonWorkspaceNotReady, fmt.Sprintf("%s; Workspace %s names another generation of it", why, w.Workspace.Name))
	}
	return lock(w)
}

func lock(w LaunchWorld) LaunchVerdict {
	holder := w.Workspace.Status.Run
	switch {
	case holder == nil:
		return LaunchVerdict{Action: LaunchLock}
	case holder.UID == w.Update.UID:
		return LaunchVerdict{Action: LaunchRun}
	case w.HolderEnded:
		return LaunchVerdict{Action: LaunchLock}
	default:
		return LaunchVerdict{Action: LaunchWait, Reason: autov1alpha1.ReasonWorkspaceBusy, Message: fmt.Sprintf("Waiting for Update %s, which runs in Workspace %s", holder.Name, w.Workspace.Name)}
	}
}

func hasFinalizer(object metav1.Object) bool {
	return slices.Contains(object.GetFinalizers(), pulumiv1.Finalizer)
}

// Ended says whether nothing of the Update's run goes on or can begin: it was
// settled before any pod took it, or the pod that took it has ended.
func Ended(u *autov1alpha1.Update, pod *corev1.Pod) bool {
	if !Taken(u) {
		return u.Settled()
	}
	if u.Status.Run.Phase == autov1alpha1.RunEnded {
		return true
	}
	return pod != nil && pod.UID == u.Status.Run.PodUID && terminated(pod) != nil
}
