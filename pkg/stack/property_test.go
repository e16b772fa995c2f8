package stack

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// dice makes worlds, strange ones too, from a seed.
type dice struct{ *rand.Rand }

func (d dice) once(in int) bool { return d.IntN(in) == 0 }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// world is any world that the API server would hold, and some that only another
// controller or a hand would leave.
func (d dice) world() World {
	w := World{Stack: d.stack(), HolderEnded: d.once(4)}
	w.Source.Revision = pick(d, "", revision, "8")
	if d.once(6) {
		w.Source.Problem = "Program web does not exist"
	}
	if w.Stack.Status.CurrentUpdate != nil && d.once(2) {
		w.Update = d.update()
	}
	if d.once(2) {
		w.Workspace = aWorkspace(pick[types.UID](d, stackUID, stackUID, "uid-of-another"))
		if d.once(2) {
			w.Workspace.Status.Run = &autov1alpha1.RunLock{Name: pick(d, claimed, "other"), UID: "uid"}
		}
		if d.once(5) {
			w.Workspace.DeletionTimestamp = d.time()
		}
		if d.once(5) {
			w.Workspace.Annotations = nil
		}
	}
	w.Prerequisites = map[string]*pulumiv1.Stack{}
	for _, name := range []string{"net", "db"} {
		if d.once(3) {
			w.Prerequisites[name] = d.stack()
		}
	}
	return w
}

func (d dice) time() *metav1.Time {
	t := at(noon.Add(-time.Duration(d.IntN(4000)) * time.Second))
	return &t
}

func (d dice) stack() *pulumiv1.Stack {
	s := aStack()
	s.Generation = int64(1 + d.IntN(3))
	if d.once(2) {
		s.DeletionTimestamp = d.time()
	}
	if d.once(6) {
		s.Finalizers = pick(d, nil, []string{"others.example.com/x"}, []string{"others.example.com/x", pulumiv1.Finalizer})
	}
	for key, values := range map[string][]string{
		pulumiv1.AnnotationReconcileRequest: {"", "a", "b"},
		pulumiv1.AnnotationSuspend:          {"", "", "", "true", "false"},
		pulumiv1.AnnotationLetGo:            {"", "", "", "true", "yes"},
	} {
		if value := pick(d, values...); value != "" {
			annotated(key, value)(s)
		}
	}
	d.spec(&s.Spec)
	d.status(s)
	return s
}

func (d dice) spec(spec *pulumiv1.StackSpec) {
	spec.DestroyOnFinalize, spec.Preview = d.once(2), d.once(4)
	spec.RunProgram, spec.RetryOnUpdateConflict = d.once(3), d.once(3)
	spec.ContinueResyncOnCommitMatch = d.once(3)
	spec.ResyncFrequencySeconds = pick[int64](d, 0, 30, 600, -1, 1<<62, -1<<62)
	spec.RetryMaxBackoffDurationSeconds = pick[int64](d, 0, 1, 40, -5, 1<<62, -1<<62)
	spec.WorkspaceReclaimPolicy = pick[pulumiv1.WorkspaceReclaimPolicy](d, "", "Retain", "Delete")
	if d.once(8) {
		spec.ProgramRef = pick(d, nil, &pulumiv1.ProgramReference{})
	}
	if d.once(12) {
		spec.FluxSource = &pulumiv1.FluxSource{}
	}
	if d.once(12) {
		spec.GitSource = pick(d, &pulumiv1.GitSource{}, &pulumiv1.GitSource{ProjectRepo: "x"},
			&pulumiv1.GitSource{ProjectRepo: repo, Branch: "main"}, &pulumiv1.GitSource{ProjectRepo: repo, Commit: commitA})
	}
	if d.once(4) {
		spec.EnvRefs = map[string]pulumiv1.ResourceRef{"A": d.ref(), "B": d.ref()}
	}
	if d.once(4) {
		spec.SecretRefs = map[string]pulumiv1.ResourceRef{"a": d.ref(), "b:c": d.ref()}
	}
	if d.once(4) {
		spec.Config = map[string]apiextensionsv1.JSON{"a": pick(d, jsonOf(1), jsonOf("x"), apiextensionsv1.JSON{})}
		spec.Secrets = map[string]string{"a": "hunter2"}
		spec.ConfigRef = map[string]pulumiv1.ConfigMapRef{"z": {Name: "settings", Key: "z"}}
	}
	if d.once(6) {
		spec.WorkspaceTemplate = raw(pick(d, `{}`, `null`, ``, `[]`, `{"spec":{"x":1}}`, `{"metadata":null}`, `{"$patch":"delete"}`, `{"spec":{"image":"x"}}`))
	}
	if d.once(6) {
		spec.UpdateTemplate = raw(pick(d, `{}`, `null`, `"x"`, `{"spec":{"type":"refresh"}}`, `{"spec":{"message":null}}`, `{"metadata":{"annotations":null}}`, `{"$patch":"replace"}`))
	}
	for _, name := range []string{"net", "db"} {
		if d.once(4) {
			spec.Prerequisites = append(spec.Prerequisites, pulumiv1.PrerequisiteRef{Name: name, Requirement: pick(d, nil,
				&pulumiv1.RequirementSpec{}, &pulumiv1.RequirementSpec{SucceededWithinDuration: &metav1.Duration{Duration: time.Minute}})})
		}
	}
}

func (d dice) ref() pulumiv1.ResourceRef {
	return pick(d, literal("x"), literal("x"), secretRef("", "token", "key"), secretRef("team", "token", "key"), secretRef("other", "token", "key"),
		fromEnv, fromFile, pulumiv1.ResourceRef{}, pulumiv1.ResourceRef{SelectorType: pulumiv1.ResourceSelectorSecret},
		pulumiv1.ResourceRef{SelectorType: pulumiv1.ResourceSelectorLiteral})
}

var failures = []autov1alpha1.ConditionReason{
	"", autov1alpha1.ReasonUpdateFailed, autov1alpha1.ReasonUpdateConflict, autov1alpha1.ReasonInvalidAccessToken,
	autov1alpha1.ReasonPulumiVersionTooLow, autov1alpha1.ReasonWorkspaceFailed, autov1alpha1.ReasonCanceled,
	autov1alpha1.ReasonAborted, autov1alpha1.ReasonInvalid, autov1alpha1.ReasonDeadlineExceeded, autov1alpha1.ReasonUnknown,
	autov1alpha1.ReasonOutOfMemory, autov1alpha1.ReasonEvicted, autov1alpha1.ReasonImagePullBackOff, autov1alpha1.ReasonPodRefused,
}

func (d dice) message() string {
	return pick(d, "", "\n\n", "error: no.\nmore\n", "...", "Fine", "  \r\n\tindented:\n", "ärger")
}

func (d dice) status(s *pulumiv1.Stack) {
	if d.once(3) {
		claims(claimed)(s)
	}
	if d.once(2) {
		known(s)
	}
	if !d.once(4) {
		s.Status.LastUpdate = &pulumiv1.StackUpdateState{
			Generation: s.Generation - int64(d.IntN(2)), ReconcileRequest: pick(d, request(s), request(s), "a"),
			Name: "app-last", Type: pick[pulumiv1.UpdateType](d, "up", "up", "preview", "destroy", "destroy", "refresh", ""),
			State:  pick[pulumiv1.StackUpdateStateMessage](d, "succeeded", "succeeded", "failed", "failed", ""),
			Reason: string(pick(d, failures...)), Message: d.message(),
			LastAttemptedCommit: pick(d, "", revision), LastSuccessfulCommit: pick(d, "", revision),
			LastResyncTime: *d.time(), Failures: pick[int64](d, 0, 1, 2, 3, 4, 100),
		}
		if d.once(20) {
			s.Status.LastUpdate.LastResyncTime = metav1.Time{}
		}
	}
	for range d.IntN(3) {
		s.Status.Conditions = append(s.Status.Conditions, d.condition(s))
	}
}

// condition is one as a hand or another controller may have left it, but each
// type once, which the API server sees to.
func (d dice) condition(s *pulumiv1.Stack) metav1.Condition {
	kind := pick(d, "Ready", "Reconciling", "Stalled")
	for _, c := range s.Status.Conditions {
		if c.Type == kind {
			kind = "Others" + fmt.Sprint(len(s.Status.Conditions))
		}
	}
	return metav1.Condition{
		Type: kind, Status: pick[metav1.ConditionStatus](d, "True", "False", "Unknown"),
		Reason: pick(d, "StackProcessing", "StackProcessing", "ProcessingCompleted", "Odd"), Message: pick(d, "stack is being processed", "", "Initial stack update", "two\nlines."),
		ObservedGeneration: s.Generation - int64(d.IntN(2)), LastTransitionTime: *d.time(),
	}
}

func (d dice) update() *autov1alpha1.Update {
	u := anUpdate(pick[types.UID](d, stackUID, stackUID, "uid-of-another", ""), pick(d, autov1alpha1.UpType, autov1alpha1.PreviewType, autov1alpha1.DestroyType, autov1alpha1.RefreshType),
		stands(For{Generation: int64(1 + d.IntN(3)), Request: pick(d, "", "a"), Revision: pick(d, "", revision), Type: autov1alpha1.UpType}))
	switch d.IntN(6) {
	case 3:
		u.MarkWaiting(at(noon), pick(d, autov1alpha1.ReasonImagePullBackOff, autov1alpha1.ReasonUnschedulable, autov1alpha1.ReasonPodRefused,
			autov1alpha1.ReasonCreateContainerError, autov1alpha1.ReasonWorkspaceBusy), d.message())
	case 0:
		succeeded(u)
	case 1:
		failed(pick(d, autov1alpha1.ResultFailed, autov1alpha1.ResultCanceled, autov1alpha1.ResultNotRun), pick(d, failures[1:]...), d.message())(u)
	case 2:
		u.MarkProgressing(at(noon), "The run goes on")
	}
	if d.once(4) {
		u.Status.Result = nil
	}
	if d.once(3) {
		u.Finalizers = nil
	}
	if d.once(6) {
		u.Annotations = pick(d, nil, map[string]string{}, map[string]string{pulumiv1.AnnotationStackUID: string(stackUID)})
	}
	if d.once(6) {
		u.DeletionTimestamp = d.time()
	}
	return u
}

// without takes out conditions that are not ours to keep or to judge.
func without(status *pulumiv1.StackStatus) {
	var ours []metav1.Condition
	for _, c := range status.Conditions {
		if _, ok := reasons[c.Type+"=True"]; ok {
			ours = append(ours, c)
		}
	}
	status.Conditions = ours
}

// broken lists what a verdict on a world must not be.
func broken(w World, v Verdict, now time.Time) []string {
	var problems []string
	must := func(holds bool, why string) {
		if !holds {
			problems = append(problems, why)
		}
	}
	s, last := w.Stack, w.Stack.Status.LastUpdate
	runs := v.Action == Claim || v.Action == Finish
	must(runs == (v.Plan != nil), "there is a plan for what is to run, and only then")
	must(v.Alarm.IsZero() || v.Alarm.After(now), "an alarm is never due already")
	must(v.Action != AddFinalizer || !deleting(s) && !hasFinalizer(s), "only what lives gets our finalizer, once")
	must(v.Action == Withdraw || reflect.DeepEqual(v.Status.CurrentUpdate, s.Status.CurrentUpdate), "the claim stays unless it is withdrawn")
	must(v.Action != Withdraw || s.Status.CurrentUpdate != nil && v.Status.CurrentUpdate == nil, "a withdrawal takes the claim out")
	must(v.Action != Finish || s.Status.CurrentUpdate != nil && w.Update == nil, "only a claim without Update is finished")
	must(v.Poke == nil || v.Action == Nothing || v.Action == Withdraw, "who is asked for a run is waited for")
	if !deleting(s) {
		must(v.Action != Release, "what is not deleted is not released")
		return problems
	}
	if runs {
		must(wantsDestroy(s), "a deleted Stack without destroyOnFinalize starts nothing")
		must(v.Plan.Wanted.Type == autov1alpha1.DestroyType && v.Plan.update.Spec.Type == autov1alpha1.DestroyType, "a deleted Stack runs nothing but its destroy")
		must(v.Plan.update.OwnerReferences == nil && v.Plan.Workspace.OwnerReferences == nil, "a foreground deletion would delete them")
	}
	if v.Action == Release {
		must(s.Status.CurrentUpdate == nil, "a claimed Stack is not released")
		must(!locked(w), "a Stack is not released while something runs")
		must(!wantsDestroy(s) || last != nil && last.Type == pulumiv1.DestroyUpdateType && last.State == pulumiv1.SucceededStackStateMessage && last.Generation == s.Generation,
			"a Stack with destroyOnFinalize is not released before its destroy")
	}
	return problems
}

// TestAnyWorld assesses random worlds. Each verdict keeps the rules of
// conditions, and carried out it comes to rest.
func TestAnyWorld(t *testing.T) {
	const worlds = 8000
	for seed := range uint64(worlds) {
		w := dice{rand.New(rand.NewPCG(seed, 1))}.world()
		without(&w.Stack.Status)
		if problems := judge(w); problems != nil {
			t.Fatalf("seed %d: %v\nworld: %+v\nstack: %+v", seed, problems, w, *w.Stack)
		}
	}
}

// judge carries out the verdicts on a world until it rests.
func judge(w World) (problems []string) {
	defer func() {
		if r := recover(); r != nil {
			problems = append(problems, fmt.Sprint("panic: ", r))
		}
	}()
	for range 6 {
		read := w.Stack.DeepCopy()
		v := Assess(w, noon)
		problems = append(problems, broken(w, v, noon)...)
		if !reflect.DeepEqual(read, w.Stack) {
			problems = append(problems, "the Stack that was read changed: "+cmp.Diff(read, w.Stack))
		}
		if deleting(w.Stack) && !hasFinalizer(w.Stack) {
			return problems
		}
		problems = append(problems, brokenRules(w.Stack, &v.Status)...)
		if diff := brokenRepeat(w, v, noon); diff != "" && !timely(w) {
			problems = append(problems, "the conditions flap: "+diff)
		}
		if problems != nil || v.Action == Nothing {
			return problems
		}
		next, there := after(w, v)
		if !there {
			return problems
		}
		w = next
	}
	return append(problems, "it does not come to rest")
}

// timely says whether time alone may change what is wanted between two looks.
func timely(w World) bool {
	for _, p := range w.Prerequisites {
		if p.Status.LastUpdate != nil && noon.Sub(p.Status.LastUpdate.LastResyncTime.Time) == time.Minute {
			return true
		}
	}
	return false
}

// TestFoldOfAnyWorld folds random Updates into random Stacks: nothing but the
// claim, lastUpdate, outputs and projectInfo changes, and a fold always takes
// the claim.
func TestFoldOfAnyWorld(t *testing.T) {
	for seed := range uint64(4000) {
		d := dice{rand.New(rand.NewPCG(seed, 2))}
		s, u := d.stack(), d.update()
		got, folds := Fold(s, u)
		want := *s.Status.DeepCopy()
		if folds {
			if got.CurrentUpdate != nil || !u.Settled() || !MadeFor(u, s.UID) {
				t.Fatalf("seed %d: folded %+v into %+v", seed, u, s)
			}
			want.CurrentUpdate, want.LastUpdate, want.Outputs, want.ProjectInfo = nil, got.LastUpdate, got.Outputs, got.ProjectInfo
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("seed %d: more changed than may: %s", seed, cmp.Diff(want, got))
		}
		if l := got.LastUpdate; folds && l != nil && l.Type == pulumiv1.DestroyUpdateType && l.Name == u.Name && u.Spec.Type != autov1alpha1.DestroyType {
			t.Fatalf("seed %d: an Update of type %s became a destroy", seed, u.Spec.Type)
		}
	}
}
