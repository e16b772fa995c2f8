package request

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

const bot = "system:serviceaccount:ci:bot"

func ask(o Operation) Request {
	return Request{Operation: o, Namespace: "team", Stack: "app", Identity: Identity("/ci", string(o)), By: bot}
}

// world has a Stack that ran, and its Workspace.
func world(changes ...func(*World)) World {
	w := World{
		Stack: &pulumiv1.Stack{
			ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "team", UID: "u1", Annotations: map[string]string{}},
			Spec:       pulumiv1.StackSpec{Stack: "org/dev"},
		},
		Workspace: &autov1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{
			Name: "app", Namespace: "team", Annotations: map[string]string{pulumiv1.AnnotationStackUID: "u1"},
		}},
		Updates: map[string]*autov1alpha1.Update{},
	}
	for _, change := range changes {
		change(&w)
	}
	return w
}

func took(r Request) func(*World) {
	return func(w *World) {
		w.Stack.Annotations[pulumiv1.AnnotationRequests] = remember(w.Stack.Annotations[pulumiv1.AnnotationRequests], r)
	}
}

func deleting(w *World) { w.Stack.DeletionTimestamp = &metav1.Time{} }

func update(name string, settled bool) func(*World) {
	return func(w *World) {
		u := &autov1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: autov1alpha1.UpdateSpec{WorkspaceName: "app"}}
		if settled {
			u.Status.Conditions = []metav1.Condition{{Type: autov1alpha1.UpdateComplete, Status: metav1.ConditionTrue}}
		}
		w.Updates[name] = u
	}
}

func claims(name string) func(*World) {
	return func(w *World) { w.Stack.Status.CurrentUpdate = &pulumiv1.CurrentStackUpdate{Name: name} }
}

func canceled(names ...string) func(*World) {
	return func(w *World) { w.Stack.Annotations[pulumiv1.AnnotationCancel] = strings.Join(names, ",") }
}

func runs(name string) func(*World) {
	return func(w *World) { w.Workspace.Status.Run = &autov1alpha1.RunLock{Name: name} }
}

func TestDecideAnnotations(t *testing.T) {
	named := func(name string) Request { r := ask(Cancel); r.Update = name; return r }
	told := ask(Update)
	told.Message = "Image 1.2"
	cases := map[string]struct {
		r     Request
		world World
		key   string
		value string
		about string
		why   Why
		says  string
	}{
		"An update asks for a run, and tells who": {
			r: ask(Update), world: world(), key: pulumiv1.AnnotationReconcileRequest, value: ask(Update).Identity[:12] + " by " + bot,
		},
		"An update with a message": {
			r: told, world: world(), key: pulumiv1.AnnotationReconcileRequest, value: told.Identity[:12] + " by " + bot + ": Image 1.2",
		},
		"An update needs no Workspace": {
			r: ask(Update), world: world(func(w *World) { w.Workspace = nil }), key: pulumiv1.AnnotationReconcileRequest, value: ask(Update).Identity[:12] + " by " + bot,
		},
		"An update of a Stack that goes": {r: ask(Update), world: world(deleting), why: Conflict, says: "is being deleted"},
		"Cancel what runs": {
			r: ask(Cancel), world: world(runs("by-hand"), claims("app-1"), update("by-hand", false), update("app-1", false)),
			key: pulumiv1.AnnotationCancel, value: "by-hand", about: "by-hand",
		},
		"Cancel what is claimed, where the lock's holder is done": {
			r: ask(Cancel), world: world(runs("by-hand"), claims("app-1"), update("by-hand", true), update("app-1", false)),
			key: pulumiv1.AnnotationCancel, value: "app-1", about: "app-1",
		},
		"Cancel what is claimed and not created yet": {
			r: ask(Cancel), world: world(claims("app-1")), key: pulumiv1.AnnotationCancel, value: "app-1", about: "app-1",
		},
		"Cancel the destroy of a Stack that goes": {
			r: ask(Cancel), world: world(deleting, claims("app-1"), update("app-1", false)), key: pulumiv1.AnnotationCancel, value: "app-1", about: "app-1",
		},
		"Cancel what is named": {
			r: named("by-hand"), world: world(claims("app-1"), update("app-1", false), update("by-hand", false)),
			key: pulumiv1.AnnotationCancel, value: "by-hand", about: "by-hand",
		},
		"Cancel another beside what is to be cancelled": {
			r: named("by-hand"), world: world(canceled("done", "app-1", "gone", "others"), claims("app-1"), update("done", true), update("app-1", false), update("by-hand", false), func(w *World) {
				update("others", false)(w)
				w.Updates["others"].Spec.WorkspaceName = "other"
			}),
			key: pulumiv1.AnnotationCancel, value: "app-1,by-hand", about: "by-hand",
		},
		"Cancel what is to be cancelled": {
			r: ask(Cancel), world: world(canceled("app-1"), claims("app-1"), update("app-1", false)), key: pulumiv1.AnnotationCancel, value: "app-1", about: "app-1",
		},
		"Cancel where nothing runs":     {r: ask(Cancel), world: world(), why: NothingToCancel, says: "nothing to cancel"},
		"Cancel where all is done":      {r: ask(Cancel), world: world(claims("app-1"), update("app-1", true)), why: NothingToCancel, says: "nothing to cancel"},
		"Cancel where the holder goes":  {r: ask(Cancel), world: world(runs("gone")), why: NothingToCancel, says: "nothing to cancel"},
		"Cancel what is named and done": {r: named("app-1"), world: world(update("app-1", true)), why: NothingToCancel, says: "No Update app-1"},
		"Cancel what is named and gone": {r: named("app-1"), world: world(), why: NothingToCancel, says: "No Update app-1"},
		"Cancel what is another Stack's": {
			r: named("app-1"), world: world(update("app-1", false), func(w *World) { w.Updates["app-1"].Spec.WorkspaceName = "other" }), why: NothingToCancel, says: "No Update app-1",
		},
		"A source and id that asked for something else": {r: ask(Update), world: world(took(Request{Identity: ask(Update).Identity, Operation: Refresh})), why: IdentityUsed, says: "for refresh"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, problem := Decide(c.r, c.world)
			if c.why != "" {
				if problem == nil || problem.Why != c.why || !strings.Contains(problem.Detail, c.says) {
					t.Fatalf("problem = %+v", problem)
				}
				return
			}
			if problem != nil {
				t.Fatal(problem)
			}
			want := Verdict{About: c.about, Annotations: map[string]string{
				c.key: c.value, pulumiv1.AnnotationRequestedBy: bot, pulumiv1.AnnotationRequests: c.r.Identity + ":" + string(c.r.Operation),
			}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDecideCreates(t *testing.T) {
	gone := func(w *World) { w.Workspace = nil }
	for operation, kind := range map[Operation]autov1alpha1.UpdateType{Preview: "preview", Refresh: "refresh", Destroy: "destroy"} {
		r := ask(operation)
		r.Message = "Nightly"
		v, problem := Decide(r, world())
		if problem != nil {
			t.Fatal(problem)
		}
		u := v.Create
		if u == nil || u.Name != UpdateName(r) || u.Namespace != "team" || v.About != u.Name {
			t.Fatalf("%s: %+v", operation, v)
		}
		if u.Spec.Type != kind || u.Spec.WorkspaceName != "app" || u.Spec.StackName != "org/dev" || *u.Spec.Message != "Requested by "+bot+": Nightly" || u.Spec.TtlAfterCompleted == nil {
			t.Errorf("%s: spec = %+v", operation, u.Spec)
		}
		want := map[string]string{pulumiv1.AnnotationRequest: r.Identity, pulumiv1.AnnotationRequestedBy: bot}
		if diff := cmp.Diff(want, u.Annotations); diff != "" || len(u.Labels)+len(u.OwnerReferences)+len(u.Finalizers) > 0 {
			t.Errorf("%s: it is not as one made by hand: %+v", operation, u.ObjectMeta)
		}
		if len(v.Annotations) != 2 || v.Annotations[pulumiv1.AnnotationRequests] != r.Identity+":"+string(operation) {
			t.Errorf("%s: annotations = %v", operation, v.Annotations)
		}

		again, problem := Decide(r, world(update(u.Name, false), func(w *World) { w.Updates[u.Name].Annotations = want }, gone))
		if problem != nil || again.Create != nil || len(again.Annotations) != 2 || again.About != u.Name {
			t.Errorf("%s: cut off after the Update, it makes %+v, %v", operation, again, problem)
		}
		if _, problem = Decide(r, world(update(u.Name, false))); problem == nil || problem.Why != Conflict {
			t.Errorf("%s: an Update of somebody else: %+v", operation, problem)
		}
	}
	for says, change := range map[string]func(*World){
		"its first update makes it":       gone,
		"set it to Retain":                func(w *World) { gone(w); w.Stack.Spec.WorkspaceReclaimPolicy = pulumiv1.WorkspaceReclaimDelete },
		"was not made for this Stack":     func(w *World) { w.Workspace.Annotations = nil },
		"once the Stack is Ready":         func(w *World) { w.Workspace.DeletionTimestamp = &metav1.Time{} },
		"takes no requests but to cancel": deleting,
	} {
		if _, problem := Decide(ask(Preview), world(change)); problem == nil || !strings.Contains(problem.Detail, says) {
			t.Errorf("problem = %+v, want one that says %q", problem, says)
		}
	}
}

func TestARepeatIsNothingAsLongAsItIsRemembered(t *testing.T) {
	for _, operation := range Operations {
		r := ask(operation)
		w := world(took(r))
		for i := range kept - 1 {
			took(Request{Identity: Identity("other", fmt.Sprint(i)), Operation: Update})(&w)
		}
		v, problem := Decide(r, w)
		if problem != nil || !v.Repeated || v.Create != nil || v.Annotations != nil || operation.Creates() && v.About != UpdateName(r) {
			t.Errorf("%s again makes %+v, %v", operation, v, problem)
		}
		deleting(&w)
		if v, problem = Decide(r, w); problem != nil || !v.Repeated {
			t.Errorf("%s again, of a Stack that goes, makes %+v, %v", operation, v, problem)
		}
		took(Request{Identity: Identity("other", "last"), Operation: Update})(&w)
		if got := len(remembered(w.Stack.Annotations[pulumiv1.AnnotationRequests])); got != kept {
			t.Errorf("it remembers %d", got)
		}
		if v, _ = Decide(r, w); v.Repeated {
			t.Errorf("%s is remembered beyond %d", operation, kept)
		}
	}
}

func TestWhatIsNoRequestIsNotRemembered(t *testing.T) {
	r := ask(Update)
	got := remember("by hand, "+strings.Repeat("f", 32)+":refresh xyz:update", r)
	if want := strings.Repeat("f", 32) + ":refresh " + r.Identity + ":update"; got != want {
		t.Errorf("it remembers %q", got)
	}
}

func TestNamesOfUpdates(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "app", strings.Repeat("a", 42), strings.Repeat("a", 43), strings.Repeat("a", 253), strings.Repeat("a", 41) + ".b", strings.Repeat("a.", 100) + "b"} {
		for _, operation := range []Operation{Preview, Refresh, Destroy} {
			r := Request{Operation: operation, Stack: name, Identity: "i"}
			got := UpdateName(r)
			if len(got) > 63 || len(validation.IsDNS1123Subdomain(got)) > 0 || seen[got] {
				t.Errorf("%s of %s is called %s", operation, name, got)
			}
			seen[got] = true
		}
	}
}

func TestNeeds(t *testing.T) {
	named := ask(Cancel)
	named.Update = "x"
	for name, c := range map[string]struct {
		r     Request
		world World
		want  []string
	}{
		"update":             {ask(Update), world(claims("app-1")), nil},
		"preview":            {ask(Preview), world(claims("app-1")), []string{UpdateName(ask(Preview))}},
		"cancel of one":      {named, world(claims("app-1")), []string{"x"}},
		"cancel":             {ask(Cancel), world(runs("h"), claims("app-1")), []string{"h", "app-1"}},
		"cancel, claim runs": {ask(Cancel), world(runs("app-1"), claims("app-1")), []string{"app-1"}},
		"cancel of nothing":  {ask(Cancel), world(func(w *World) { w.Workspace = nil }), []string{}},
		"the same cancel":    {ask(Cancel), world(canceled("app-1"), runs("h"), claims("app-1")), []string{"app-1", "h"}},
		"one more cancel":    {named, world(canceled("a", "b")), []string{"a", "b", "x"}},
	} {
		if diff := cmp.Diff(c.want, Needs(c.r, c.world)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
