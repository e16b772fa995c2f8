package v1alpha1

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = metav1.NewTime(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))

func TestTheConditionsOfAnUpdate(t *testing.T) {
	type state struct {
		// Conditions as type=status/reason: message.
		Conditions []string
		Settled    bool
		Failed     ConditionReason
		End        metav1.Time
		Message    string
	}
	cases := map[string]struct {
		mark func(*Update)
		want state
	}{
		"New": {func(*Update) {}, state{}},
		"Waiting": {func(u *Update) { u.MarkWaiting(noon, ReasonWorkspaceBusy, "Waiting for Update other") }, state{Conditions: []string{
			"Progressing=False/WorkspaceBusy: Waiting for Update other", "Failed=False/Progressing: ", "Complete=False/Progressing: "}}},
		"Progressing": {func(u *Update) { u.MarkProgressing(noon, "The run goes on") }, state{Conditions: []string{
			"Progressing=True/Progressing: The run goes on", "Failed=False/Progressing: ", "Complete=False/Progressing: "}}},
		"Succeeded": {func(u *Update) { u.MarkSucceeded(noon) }, state{Conditions: []string{
			"Progressing=False/Complete: ", "Failed=False/UpdateSucceeded: ", "Complete=True/Updated: "}, Settled: true, End: noon}},
		"Failed": {func(u *Update) { u.MarkFailed(noon, ReasonUpdateFailed, "error: no\nreally") }, state{Conditions: []string{
			"Progressing=False/Failed: ", "Failed=True/UpdateFailed: error: no\nreally", "Complete=True/Failed: "},
			Settled: true, Failed: ReasonUpdateFailed, End: noon, Message: "error: no\nreally"}},
		"Failed after it progressed": {func(u *Update) {
			u.MarkProgressing(noon, "The run goes on")
			u.MarkFailed(noon, ReasonAborted, "Pod is gone")
		}, state{Conditions: []string{
			"Progressing=False/Failed: ", "Failed=True/Aborted: Pod is gone", "Complete=True/Failed: "},
			Settled: true, Failed: ReasonAborted, End: noon, Message: "Pod is gone"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := &Update{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			c.mark(u)
			got := state{Settled: u.Settled(), Failed: u.FailedReason(), End: u.Status.EndTime, Message: u.Status.Message}
			for _, condition := range u.Status.Conditions {
				got.Conditions = append(got.Conditions, condition.Type+"="+string(condition.Status)+"/"+condition.Reason+": "+condition.Message)
				if condition.ObservedGeneration != 3 || condition.LastTransitionTime.IsZero() || u.Status.ObservedGeneration != 3 {
					t.Errorf("condition = %+v", condition)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAMarkThatChangesNothingMovesNoTime(t *testing.T) {
	later := metav1.NewTime(noon.Add(time.Hour))
	for name, mark := range map[string]func(*Update, metav1.Time){
		"waiting":     func(u *Update, now metav1.Time) { u.MarkWaiting(now, ReasonWorkspaceBusy, "x") },
		"progressing": func(u *Update, now metav1.Time) { u.MarkProgressing(now, "x") },
	} {
		u := &Update{}
		mark(u, noon)
		before := u.DeepCopy()
		mark(u, later)
		if diff := cmp.Diff(before, u); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAMessageIsNoLongerThanTheAPIServerTakes(t *testing.T) {
	for _, before := range []string{"", "a", "aa"} {
		u := &Update{}
		u.MarkFailed(noon, ReasonUpdateFailed, before+strings.Repeat("€", 20000))
		for _, c := range u.Status.Conditions {
			if len(c.Message) > 32768 || !utf8.ValidString(c.Message) {
				t.Errorf("the message of %s has %d bytes, valid: %v", c.Type, len(c.Message), utf8.ValidString(c.Message))
			}
		}
	}
}
