package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/stack"
	"github.com/updraft-dev/updraft/test/schemas"
)

// theWire sends news and gives what was sent, as type, id and data.
func theWire(t *testing.T, u *autov1alpha1.Update, kind, name string, told []news) []string {
	t.Helper()
	all, err := schemas.Load("../..")
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	for _, n := range told {
		e, err := event.New(n.eventType, Name, string(u.UID)+"/"+n.state, event.Ref{Kind: kind, Namespace: u.Namespace, Name: name}, n.data)
		if err != nil {
			t.Fatal(err)
		}
		if err := all.Check(e); err != nil {
			t.Error(err)
		}
		if strings.Contains(string(e.Data()), "hunter2") {
			t.Errorf("what a program wrote is told: %s", e.Data())
		}
		sent = append(sent, strings.TrimPrefix(e.Type(), "dev.updraft.")+" "+e.ID()+" "+string(e.Data()))
	}
	return sent
}

// A run that says its secret wherever it may say something.
func talkative(state, reason string, changes map[string]int64) event.Finished {
	return event.Finished{
		State: state, Reason: reason, Message: "error: hunter2", Permalink: "https://example.com/1", Changes: changes,
		Outputs: map[string]event.Output{"token": plain(`"hunter2"`)}, Project: "hunter2", Runtime: "hunter2", Commit: "hunter2",
	}
}

func TestWhatIsToldOfAStack(t *testing.T) {
	changed, kept := map[string]int64{"update": 1}, map[string]int64{"same": 1}
	const succeeded, failed = pulumiv1.SucceededStackStateMessage, pulumiv1.FailedStackStateMessage
	stalled := func(s *pulumiv1.Stack) {
		s.Status.MarkStalled(1, noon, pulumiv1.StalledUpdateFailed, "error: hunter2")
	}
	deleted := func(s *pulumiv1.Stack) { s.DeletionTimestamp = &noon }
	resync := func(u *autov1alpha1.Update) {
		u.Annotations[pulumiv1.AnnotationFor] = stack.For{Generation: 1, Revision: "7", Type: autov1alpha1.UpType, Resync: true}.String()
	}
	of := func(kind autov1alpha1.UpdateType) func(*autov1alpha1.Update) {
		return func(u *autov1alpha1.Update) { u.Spec.Type = kind }
	}
	cases := map[string]struct {
		told   event.Finished
		state  pulumiv1.StackUpdateStateMessage // "" if the Update is not the Stack's last
		stack  func(*pulumiv1.Stack)
		update func(*autov1alpha1.Update)
		want   []string
	}{
		"It succeeded": {told: talkative("succeeded", "", changed), state: succeeded, want: []string{
			`stack.succeeded uid-of-app-1/succeeded {"update":"app-1","type":"up","changes":{"update":1},"permalink":"https://example.com/1"}`}},
		"It succeeded, and the Stack is deleted meanwhile": {told: talkative("succeeded", "", nil), state: succeeded, stack: deleted, want: []string{
			`stack.succeeded uid-of-app-1/succeeded {"update":"app-1","type":"up","permalink":"https://example.com/1"}`}},
		"It failed, and is tried again": {told: talkative("failed", "UpdateConflict", kept), state: failed, want: []string{
			`stack.failed uid-of-app-1/failed {"update":"app-1","type":"up","state":"failed","reason":"UpdateConflict","changes":{"same":1},"permalink":"https://example.com/1"}`}},
		"It failed for the last time": {told: talkative("failed", "UpdateFailed", nil), state: failed, want: []string{
			`stack.failed uid-of-app-1/failed {"update":"app-1","type":"up","state":"failed","reason":"UpdateFailed","permalink":"https://example.com/1"}`}},
		"It was cancelled": {told: talkative("canceled", "", nil), state: failed, want: []string{
			`stack.failed uid-of-app-1/canceled {"update":"app-1","type":"up","state":"canceled","reason":"Canceled","permalink":"https://example.com/1"}`}},
		"It succeeded, and what stalls the Stack is told by others": {told: talkative("succeeded", "", kept), state: succeeded, stack: stalled, want: []string{
			`stack.succeeded uid-of-app-1/succeeded {"update":"app-1","type":"up","changes":{"same":1},"permalink":"https://example.com/1"}`}},
		"A resync put something right": {told: talkative("succeeded", "", changed), state: succeeded, update: resync, want: []string{
			`stack.drifted uid-of-app-1/drifted {"update":"app-1","type":"up","resources":1,"changes":{"update":1},"permalink":"https://example.com/1"}`,
			`stack.succeeded uid-of-app-1/succeeded {"update":"app-1","type":"up","changes":{"update":1},"permalink":"https://example.com/1"}`}},
		"A resync found all as it was": {told: talkative("succeeded", "", kept), state: succeeded, update: resync, want: []string{
			`stack.succeeded uid-of-app-1/succeeded {"update":"app-1","type":"up","changes":{"same":1},"permalink":"https://example.com/1"}`}},
		"A refresh beside the Stack's own Updates found something": {told: talkative("succeeded", "", changed), update: of("refresh"), want: []string{
			`stack.drifted uid-of-app-1/drifted {"update":"app-1","type":"refresh","resources":1,"changes":{"update":1},"permalink":"https://example.com/1"}`}},
		"A refresh that found nothing":  {told: talkative("succeeded", "", kept), update: of("refresh")},
		"A preview beside them":         {told: talkative("succeeded", "", changed), update: of("preview")},
		"Another has been folded since": {told: talkative("succeeded", "", changed)},
		"Its destroy succeeded":         {told: talkative("succeeded", "", changed), state: succeeded, update: of("destroy"), stack: deleted},
		"Its destroy failed": {told: talkative("failed", "UpdateFailed", nil), state: failed, update: of("destroy"), stack: deleted, want: []string{
			`stack.failed uid-of-app-1/failed {"update":"app-1","type":"destroy","state":"failed","reason":"UpdateFailed","permalink":"https://example.com/1"}`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u, s := anUpdate(), &pulumiv1.Stack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "uid-of-app"}}
			u.Annotations = map[string]string{pulumiv1.AnnotationStackUID: "uid-of-app", pulumiv1.AnnotationFor: `{"generation":1,"type":"up"}`}
			if c.update != nil {
				c.update(u)
			}
			settle(u, c.told, noon)
			s.Status.LastUpdate = &pulumiv1.StackUpdateState{Name: "another", State: succeeded}
			if c.state != "" {
				s.Status.LastUpdate = &pulumiv1.StackUpdateState{Name: u.Name, State: c.state, Message: "error: hunter2"}
			}
			if c.stack != nil {
				c.stack(s)
			}
			if diff := cmp.Diff(c.want, theWire(t, u, event.KindStack, s.Name, stackNews(s, u))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatIsToldOfARun(t *testing.T) {
	byHand, ofStack := anUpdate(), anUpdate()
	ofStack.Labels, ofStack.Annotations = map[string]string{pulumiv1.LabelStackName: "app"}, map[string]string{pulumiv1.AnnotationStackUID: "uid-of-app"}
	byHand.Labels = map[string]string{pulumiv1.LabelStackName: "app"} // which anybody may write
	settle(byHand, talkative("succeeded", "", map[string]int64{"same": 1}), noon)
	settleFound(ofStack, event.Termination{State: "failed", Reason: "OutOfMemory", Message: "error: hunter2"}, metav1.NewTime(noon.Add(time.Minute)))
	got := theWire(t, byHand, event.KindUpdate, "app-1", []news{started(byHand), ended(byHand), started(ofStack), ended(ofStack)})
	want := []string{
		`run.started uid-of-app-1/started {"update":"app-1","type":"up"}`,
		`run.finished uid-of-app-1/finished {"update":"app-1","type":"up","state":"succeeded","changes":{"same":1},"permalink":"https://example.com/1"}`,
		`run.started uid-of-app-1/started {"update":"app-1","type":"up","stack":"app"}`,
		`run.finished uid-of-app-1/finished {"update":"app-1","type":"up","stack":"app","state":"failed","reason":"OutOfMemory"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAStackIsToldAsStalledByTheFoldThatStallsIt(t *testing.T) {
	ready, stalled := &pulumiv1.StackStatus{}, &pulumiv1.StackStatus{}
	ready.MarkReady(1, noon, "The stack is up to date")
	stalled.MarkStalled(1, noon, pulumiv1.StalledUpdateFailed, "error: hunter2")
	u := anUpdate()
	want := []string{`stack.stalled uid-of-app-1/stalled {"reason":"UpdateFailed","update":"app-1"}`}
	if diff := cmp.Diff(want, theWire(t, u, event.KindStack, "app", stalledNews(u, ready, stalled))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if told := append(stalledNews(u, ready, ready), stalledNews(u, stalled, stalled)...); told != nil {
		t.Errorf("told is %v", told)
	}
}
