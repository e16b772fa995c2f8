package stack

import (
	"encoding/json"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// The Stack that most cases begin with: app, in namespace team, whose Program
// web is at generation 7. It is at generation 2 and has our finalizer.
const (
	stackUID = types.UID("uid-of-app")
	revision = "7"
	claimed  = "app-19cb6d0f8e0"
)

// noon is the time of most cases.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func at(t time.Time) metav1.Time { return metav1.NewTime(t) }

// edit changes a Stack for a case.
type edit func(*pulumiv1.Stack)

func aStack(edits ...edit) *pulumiv1.Stack {
	s := &pulumiv1.Stack{
		TypeMeta: metav1.TypeMeta{APIVersion: "pulumi.com/v1", Kind: "Stack"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "app", UID: stackUID, Generation: 2,
			Finalizers: []string{pulumiv1.Finalizer},
		},
		Spec: pulumiv1.StackSpec{Stack: "dev", ProgramRef: &pulumiv1.ProgramReference{Name: "web"}},
	}
	for _, change := range edits {
		change(s)
	}
	return s
}

// deleted is a Stack that a user deleted, which raises its generation.
func deleted(s *pulumiv1.Stack) {
	t := at(noon.Add(-time.Minute))
	s.DeletionTimestamp = &t
	s.Generation++
}

func destroys(s *pulumiv1.Stack)    { s.Spec.DestroyOnFinalize = true }
func previews(s *pulumiv1.Stack)    { s.Spec.Preview = true }
func reclaiming(s *pulumiv1.Stack)  { s.Spec.WorkspaceReclaimPolicy = pulumiv1.WorkspaceReclaimDelete }
func runsProgram(s *pulumiv1.Stack) { s.Spec.RunProgram = true }
func noFinalizer(s *pulumiv1.Stack) { s.Finalizers = nil }

func known(s *pulumiv1.Stack) {
	s.Status.ProjectInfo = &pulumiv1.ProjectInfo{Name: "web", Runtime: "yaml"}
}

func annotated(key, value string) edit {
	return func(s *pulumiv1.Stack) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[key] = value
	}
}

func claims(name string) edit {
	return func(s *pulumiv1.Stack) { s.Status.CurrentUpdate = &pulumiv1.CurrentStackUpdate{Name: name} }
}

// ran is a Stack that ran an up with success at its generation, request and
// revision, five minutes before noon.
func ran(changes ...func(*pulumiv1.StackUpdateState)) edit {
	return func(s *pulumiv1.Stack) {
		s.Status.LastUpdate = &pulumiv1.StackUpdateState{
			Generation: s.Generation, ReconcileRequest: request(s), Name: "app-last",
			Type: pulumiv1.UpUpdateType, State: pulumiv1.SucceededStackStateMessage,
			LastAttemptedCommit: revision, LastSuccessfulCommit: revision,
			LastResyncTime: at(noon.Add(-5 * time.Minute)),
		}
		for _, change := range changes {
			change(s.Status.LastUpdate)
		}
	}
}

// failing is an operation that failed as often as said beyond the first time,
// so long ago.
func failing(reason autov1alpha1.ConditionReason, failures int64, ago time.Duration) func(*pulumiv1.StackUpdateState) {
	return func(l *pulumiv1.StackUpdateState) {
		l.State, l.Reason, l.Failures = pulumiv1.FailedStackStateMessage, string(reason), failures
		l.Message = "error: no such bucket.\nand more"
		l.LastSuccessfulCommit = ""
		l.LastResyncTime = at(noon.Add(-ago))
	}
}

func ofType(kind pulumiv1.UpdateType) func(*pulumiv1.StackUpdateState) {
	return func(l *pulumiv1.StackUpdateState) { l.Type = kind }
}

func atRevision(revision string) func(*pulumiv1.StackUpdateState) {
	return func(l *pulumiv1.StackUpdateState) { l.LastAttemptedCommit, l.LastSuccessfulCommit = revision, revision }
}

func ago(d time.Duration) func(*pulumiv1.StackUpdateState) {
	return func(l *pulumiv1.StackUpdateState) { l.LastResyncTime = at(noon.Add(-d)) }
}

// shown is a Stack whose conditions say that something goes on, as an earlier
// look left them.
func shown(message string) edit {
	return func(s *pulumiv1.Stack) {
		s.Status.MarkReconciling(s.Generation, at(noon.Add(-time.Hour)), pulumiv1.ReconcilingProcessing, message)
	}
}

// waitsFor is a Stack whose conditions say what its Update waits for.
func waitsFor(reason pulumiv1.ReconcilingReason, message string) edit {
	return func(s *pulumiv1.Stack) {
		s.Status.MarkReconciling(s.Generation, at(noon.Add(-time.Hour)), reason, message)
	}
}

// podWaits is an Update that says what it waits for.
func podWaits(reason autov1alpha1.ConditionReason, message string) func(*autov1alpha1.Update) {
	return func(u *autov1alpha1.Update) { u.MarkWaiting(at(noon), reason, message) }
}

// tweak changes a World for a case.
type tweak func(*World)

// inWorld is the world of a Stack whose source is there.
func inWorld(s *pulumiv1.Stack, tweaks ...tweak) World {
	w := World{Stack: s, Source: Source{Revision: revision}}
	for _, change := range tweaks {
		change(&w)
	}
	return w
}

func atSource(revision string) tweak { return func(w *World) { w.Source.Revision = revision } }

func noSource(w *World) {
	w.Source = Source{Problem: "Program web does not exist in namespace team; create it, or correct programRef"}
}

// anUpdate is the claimed Update, made for a Stack of the given UID.
func anUpdate(uid types.UID, kind autov1alpha1.UpdateType, changes ...func(*autov1alpha1.Update)) *autov1alpha1.Update {
	u := &autov1alpha1.Update{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: claimed, UID: "uid-of-update", Generation: 1,
			Finalizers: []string{pulumiv1.Finalizer},
			Annotations: map[string]string{
				pulumiv1.AnnotationStackUID: string(uid),
				pulumiv1.AnnotationFor:      For{Generation: 2, Revision: revision, Type: kind}.String(),
			},
		},
		Spec: autov1alpha1.UpdateSpec{Type: kind, WorkspaceName: "app", StackName: "dev"},
	}
	for _, change := range changes {
		change(u)
	}
	return u
}

// stands sets what an Update stands for.
func stands(f For) func(*autov1alpha1.Update) {
	return func(u *autov1alpha1.Update) { u.Annotations[pulumiv1.AnnotationFor] = f.String() }
}

// succeeded settles an Update with success, at noon.
func succeeded(u *autov1alpha1.Update) {
	u.Status.Result = &autov1alpha1.UpdateResult{State: autov1alpha1.ResultSucceeded}
	u.MarkSucceeded(at(noon))
}

// failed settles an Update without success, at noon.
func failed(state autov1alpha1.ResultState, reason autov1alpha1.ConditionReason, message string) func(*autov1alpha1.Update) {
	return func(u *autov1alpha1.Update) {
		u.Status.Result = &autov1alpha1.UpdateResult{State: state, Message: message}
		u.MarkFailed(at(noon), reason, message)
	}
}

func released(u *autov1alpha1.Update) { u.Finalizers = nil }

func underWay(u *autov1alpha1.Update) tweak { return func(w *World) { w.Update = u } }

// aWorkspace of the Stack's name, made for a Stack of the given UID.
func aWorkspace(uid types.UID) *autov1alpha1.Workspace {
	return &autov1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "app", UID: "uid-of-workspace", Generation: 4,
		Annotations: map[string]string{pulumiv1.AnnotationStackUID: string(uid)},
		Finalizers:  []string{pulumiv1.Finalizer},
	}}
}

func withWorkspace(uid types.UID) tweak {
	return func(w *World) { w.Workspace = aWorkspace(uid) }
}

func lockedBy(update string) tweak {
	return func(w *World) {
		if w.Workspace == nil {
			w.Workspace = aWorkspace(stackUID)
		}
		w.Workspace.Status.Run = &autov1alpha1.RunLock{Name: update, UID: "uid-of-" + types.UID(update)}
	}
}

// needs adds a Stack of this name to the world, and to what the Stack
// needs. A nil one does not exist.
func needs(name string, within time.Duration, other *pulumiv1.Stack) tweak {
	return func(w *World) {
		ref := pulumiv1.PrerequisiteRef{Name: name}
		if within > 0 {
			ref.Requirement = &pulumiv1.RequirementSpec{SucceededWithinDuration: &metav1.Duration{Duration: within}}
		}
		w.Stack.Spec.Prerequisites = append(w.Stack.Spec.Prerequisites, ref)
		if w.Prerequisites == nil {
			w.Prerequisites = map[string]*pulumiv1.Stack{}
		}
		if other != nil {
			other.Name = name
			w.Prerequisites[name] = other
		}
	}
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

func jsonOf(value any) apiextensionsv1.JSON {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return apiextensionsv1.JSON{Raw: text}
}
