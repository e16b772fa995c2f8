package sweep

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
)

var noon = metav1.NewTime(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))

// aStack is app, which ran its Program web at generation 7 and is at rest.
func aStack(changes ...func(*pulumiv1.Stack)) pulumiv1.Stack {
	s := pulumiv1.Stack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "uid-of-app", Generation: 2}}
	s.Spec.ProgramRef = &pulumiv1.ProgramReference{Name: "web"}
	s.Status.ObservedGeneration = 2
	s.Status.LastUpdate = &pulumiv1.StackUpdateState{Generation: 2, LastAttemptedCommit: "7"}
	s.Status.MarkReady(2, noon, "The stack has been processed and is up to date")
	for _, change := range changes {
		change(&s)
	}
	return s
}

func stalled(reason pulumiv1.StalledReason) func(*pulumiv1.Stack) {
	return func(s *pulumiv1.Stack) { s.Status.MarkStalled(2, noon, reason, "A person must act") }
}

func neverRan(s *pulumiv1.Stack) { s.Status.LastUpdate = nil }

func reconciling(reason pulumiv1.ReconcilingReason) func(*pulumiv1.Stack) {
	return func(s *pulumiv1.Stack) { s.Status.MarkReconciling(2, noon, reason, "Something goes on") }
}

func aProgram(generation, observed int64) pulumiv1.Program {
	p := pulumiv1.Program{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", Generation: generation}}
	p.Status.ObservedGeneration = observed
	return p
}

func aWorkspace(changes ...func(*autov1alpha1.Workspace)) autov1alpha1.Workspace {
	ws := autov1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "app", Annotations: map[string]string{pulumiv1.AnnotationStackUID: "uid-of-app"},
		Finalizers: []string{pulumiv1.Finalizer},
	}}
	for _, change := range changes {
		change(&ws)
	}
	return ws
}

// anUpdate is app-1 of Stack app, settled and let go of.
func anUpdate(changes ...func(*autov1alpha1.Update)) autov1alpha1.Update {
	u := autov1alpha1.Update{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "app-1", UID: "uid-of-app-1",
		Annotations: map[string]string{pulumiv1.AnnotationStackUID: "uid-of-app"},
		Labels:      map[string]string{pulumiv1.LabelStackName: "app"},
	}}
	u.Spec.TtlAfterCompleted = &metav1.Duration{Duration: time.Hour}
	u.MarkSucceeded(noon)
	for _, change := range changes {
		change(&u)
	}
	return u
}

func held(u *autov1alpha1.Update) { u.Finalizers = []string{pulumiv1.Finalizer} }

func unsettled(u *autov1alpha1.Update) { u.Status = autov1alpha1.UpdateStatus{} }

func TestMissed(t *testing.T) {
	var (
		stack     = event.Ref{Kind: "Stack", Namespace: "team", Name: "app"}
		program   = event.Ref{Kind: "Program", Namespace: "team", Name: "web"}
		workspace = event.Ref{Kind: "Workspace", Namespace: "team", Name: "app"}
		update    = event.Ref{Kind: "Update", Namespace: "team", Name: "app-1"}
	)
	// at is a world of one Stack, its Program, its Workspace and its Update, all
	// at rest but for the change.
	at := func(changes ...func(*pulumiv1.Stack)) World {
		return World{
			Stacks: []pulumiv1.Stack{aStack(changes...)}, Programs: []pulumiv1.Program{aProgram(7, 7)},
			Workspaces: []autov1alpha1.Workspace{aWorkspace()}, Updates: []autov1alpha1.Update{anUpdate()},
		}
	}
	with := func(w World, change func(*World)) World {
		change(&w)
		return w
	}
	updates := func(u ...autov1alpha1.Update) World {
		return with(at(), func(w *World) { w.Updates = u })
	}
	workspaces := func(ws ...autov1alpha1.Workspace) World {
		return with(at(), func(w *World) { w.Workspaces = ws })
	}
	programs := func(p ...pulumiv1.Program) func(World) World {
		return func(w World) World { return with(w, func(w *World) { w.Programs = p }) }
	}
	lockedBy := func(name, uid string) func(*autov1alpha1.Workspace) {
		return func(ws *autov1alpha1.Workspace) {
			ws.Status.Run = &autov1alpha1.RunLock{Name: name, UID: anUpdate().UID}
			if uid != "" {
				ws.Status.Run.UID = "uid-of-another"
			}
		}
	}
	deleted := func(ws *autov1alpha1.Workspace) { t := noon; ws.DeletionTimestamp = &t }

	cases := map[string]struct {
		why   string
		world World
		want  []event.Ref
	}{
		"Nothing is nothing":                  {world: World{}},
		"What is at rest is not looked at":    {why: "with nothing to do, nothing runs", world: at()},
		"A Stack that waits for a person too": {world: at(stalled(pulumiv1.StalledUpdateFailed))},
		"A Stack without a Program too":       {world: at(func(s *pulumiv1.Stack) { s.Spec.ProgramRef = nil })},
		"A Stack whose spec is not valid waits for a change of it": {
			world: programs(aProgram(9, 9))(at(neverRan, stalled(pulumiv1.StalledSpecInvalid)))},

		"A Stack that was never seen":              {world: at(func(s *pulumiv1.Stack) { s.Status = pulumiv1.StackStatus{} }), want: []event.Ref{stack}},
		"A generation that was not observed":       {world: at(func(s *pulumiv1.Stack) { s.Generation = 3 }), want: []event.Ref{stack}},
		"A request that was not observed":          {world: at(func(s *pulumiv1.Stack) { s.Annotations = map[string]string{pulumiv1.AnnotationReconcileRequest: "now"} }), want: []event.Ref{stack}},
		"A Stack that is being deleted":            {world: at(func(s *pulumiv1.Stack) { t := noon; s.DeletionTimestamp = &t }), want: []event.Ref{stack}},
		"A claim":                                  {world: at(func(s *pulumiv1.Stack) { s.Status.CurrentUpdate = &pulumiv1.CurrentStackUpdate{Name: "app-2"} }), want: []event.Ref{stack}},
		"A Stack that waits for its backoff":       {world: at(reconciling(pulumiv1.ReconcilingRetry)), want: []event.Ref{stack}},
		"A Stack that waits for a prerequisite":    {world: at(reconciling(pulumiv1.ReconcilingPrerequisite)), want: []event.Ref{stack}},
		"A Stack that waits for its source":        {world: at(stalled(pulumiv1.StalledSourceUnavailable)), want: []event.Ref{stack}},
		"A Stack that resyncs":                     {world: at(func(s *pulumiv1.Stack) { s.Spec.ContinueResyncOnCommitMatch = true }), want: []event.Ref{stack}},
		"A Stack stalled before its spec ran":      {why: "another's Workspace may stand in its way, until it is deleted", world: at(neverRan, stalled(pulumiv1.StalledWorkspaceFailed)), want: []event.Ref{stack}},
		"A Stack that did not run its Program yet": {why: "the Program was seen, and the look at its Stacks was lost", world: programs(aProgram(8, 8))(at()), want: []event.Ref{stack}},
		"A stalled Stack that did not run it":      {world: programs(aProgram(8, 8))(at(stalled(pulumiv1.StalledUpdateFailed))), want: []event.Ref{stack}},
		"A Stack whose Program is gone":            {world: programs()(at()), want: []event.Ref{stack}},
		"A Stack whose Program is in another namespace only": {
			world: programs(func() pulumiv1.Program { p := aProgram(7, 7); p.Namespace = "other"; return p }())(at()), want: []event.Ref{stack}},

		"A Program that was not seen": {world: programs(aProgram(7, 6))(at()), want: []event.Ref{program}},

		"A Workspace that is being deleted": {world: workspaces(aWorkspace(deleted)), want: []event.Ref{workspace}},
		"A Workspace of a Stack that is gone": {
			world: with(at(), func(w *World) { w.Stacks, w.Updates = nil, nil }), want: []event.Ref{stack}},
		"A Workspace of a Stack that was made anew": {
			world: with(at(func(s *pulumiv1.Stack) { s.UID = "uid-of-another" }), func(w *World) { w.Updates = nil }), want: []event.Ref{stack}},
		"A Workspace that a user made is theirs": {
			world: with(at(), func(w *World) {
				w.Stacks, w.Updates = nil, nil
				w.Workspaces[0].Annotations = nil
			})},
		"A lock whose holder goes on is its own business": {
			world: with(workspaces(aWorkspace(lockedBy("app-1", ""))), func(w *World) { w.Updates = []autov1alpha1.Update{anUpdate(unsettled, held)} }), want: []event.Ref{update}},
		"A lock whose holder is settled":        {world: workspaces(aWorkspace(lockedBy("app-1", ""))), want: []event.Ref{workspace}},
		"A lock whose holder is gone":           {world: with(workspaces(aWorkspace(lockedBy("app-1", ""))), func(w *World) { w.Updates = nil }), want: []event.Ref{workspace}},
		"A lock whose holder is another by now": {world: workspaces(aWorkspace(lockedBy("app-1", "another"))), want: []event.Ref{workspace}},

		"An Update that nobody launched":         {world: updates(anUpdate(unsettled)), want: []event.Ref{update}},
		"An Update that goes on":                 {world: updates(anUpdate(unsettled, held, func(u *autov1alpha1.Update) { u.MarkProgressing(noon, "x") })), want: []event.Ref{update}},
		"An Update that is settled and held":     {world: updates(anUpdate(held)), want: []event.Ref{update}},
		"An Update that is deleted and held":     {world: updates(anUpdate(held, func(u *autov1alpha1.Update) { t := noon; u.DeletionTimestamp = &t })), want: []event.Ref{update}},
		"A hand-made Update that nobody ran":     {world: updates(anUpdate(unsettled, func(u *autov1alpha1.Update) { u.Annotations, u.Labels = nil, nil })), want: []event.Ref{update}},
		"An Update of a Stack that is gone":      {world: with(at(), func(w *World) { w.Stacks, w.Workspaces = nil, nil }), want: []event.Ref{stack}},
		"A hand-made Update at rest is a user's": {world: updates(anUpdate(func(u *autov1alpha1.Update) { u.Annotations, u.Labels = nil, nil }))},

		"Each is told once, and in order": {
			world: World{
				Stacks:     []pulumiv1.Stack{aStack(func(s *pulumiv1.Stack) { s.Namespace = "z" }, reconciling(pulumiv1.ReconcilingRetry))},
				Programs:   []pulumiv1.Program{aProgram(2, 1)},
				Workspaces: []autov1alpha1.Workspace{aWorkspace(deleted, func(ws *autov1alpha1.Workspace) { ws.Annotations[pulumiv1.AnnotationStackUID] = "gone" }, lockedBy("app-1", "another"))},
				Updates: []autov1alpha1.Update{
					anUpdate(unsettled, held, func(u *autov1alpha1.Update) { u.Annotations[pulumiv1.AnnotationStackUID] = "gone" }),
					anUpdate(unsettled, held, func(u *autov1alpha1.Update) { u.Name, u.Annotations[pulumiv1.AnnotationStackUID] = "app-0", "gone" }),
				},
			},
			want: []event.Ref{
				program, stack, {Kind: "Stack", Namespace: "z", Name: "app"},
				{Kind: "Update", Namespace: "team", Name: "app-0"}, update, workspace,
			}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Missed(c.world)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.why, diff)
			}
		})
	}
}

func TestExpired(t *testing.T) {
	cases := map[string]struct {
		update autov1alpha1.Update
		age    time.Duration
		want   bool
	}{
		"One within its time stays":               {anUpdate(), time.Hour, false},
		"One that has outlived it goes":           {anUpdate(), time.Hour + 1, true},
		"One that failed goes too":                {anUpdate(unsettled, func(u *autov1alpha1.Update) { u.MarkFailed(noon, autov1alpha1.ReasonUpdateFailed, "x") }), 2 * time.Hour, true},
		"One without a time stays for ever":       {anUpdate(func(u *autov1alpha1.Update) { u.Spec.TtlAfterCompleted = nil }), 10000 * time.Hour, false},
		"One of no time goes at once":             {anUpdate(func(u *autov1alpha1.Update) { u.Spec.TtlAfterCompleted.Duration = 0 }), 1, true},
		"One from which something follows stays":  {anUpdate(held), 2 * time.Hour, false},
		"One that is not settled stays":           {anUpdate(unsettled), 2 * time.Hour, false},
		"One that goes already is left alone":     {anUpdate(func(u *autov1alpha1.Update) { t := noon; u.DeletionTimestamp = &t }), 2 * time.Hour, false},
		"One with another's finalizer may go too": {anUpdate(func(u *autov1alpha1.Update) { u.Finalizers = []string{"others.example.com/x"} }), 2 * time.Hour, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Expired([]autov1alpha1.Update{c.update}, noon.Add(c.age))
			if (len(got) == 1) != c.want {
				t.Errorf("expired = %v", got)
			}
		})
	}
	mixed := []autov1alpha1.Update{anUpdate(held), anUpdate(func(u *autov1alpha1.Update) { u.Name = "a" }), anUpdate(func(u *autov1alpha1.Update) { u.Name = "b" })}
	if got := Expired(mixed, noon.Add(2*time.Hour)); len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
		t.Errorf("expired = %v", got)
	}
}
