package record

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestTheScheduleOfAnAlarm(t *testing.T) {
	cases := map[string]struct {
		why string
		due time.Duration
		now time.Duration
		// rings is the first ring at or after the due time, counted from it.
		want  string
		rings time.Duration
	}{
		"A full second is rung a second later": {
			why: "a PingSource may ring up to a second early", due: 10 * time.Second, want: "11 * * * * *", rings: time.Second},
		"A part of a second is rounded up first": {due: 10*time.Second + 1, want: "12 * * * * *", rings: 2*time.Second - 1},
		"The last part of a second is too":       {due: 11*time.Second - 1, want: "12 * * * * *", rings: time.Second + 1},
		"It may be in the next minute":           {due: 59 * time.Second, want: "0 * * * * *", rings: time.Second},
		"It may be in the next hour":             {due: 59*time.Minute + 58*time.Second, want: "59 * * * * *", rings: time.Second},
		"An hour from now it is each hour": {
			why: "each minute would ring sixty times before it is due", due: 59*time.Minute + 59*time.Second, want: "0 0 * * * *", rings: time.Second},
		"A day from now it is each hour":         {due: 24*time.Hour + 7*time.Minute + 3*time.Second, want: "4 7 * * * *", rings: time.Second},
		"What is due already rings in a minute":  {due: 10 * time.Second, now: time.Hour, want: "11 * * * * *", rings: time.Second},
		"What was due yesterday rings in one":    {due: -24 * time.Hour, want: "1 * * * * *", rings: time.Second},
		"What is due in fifty minutes rings too": {due: 50 * time.Minute, want: "1 * * * * *", rings: time.Second},
	}
	// The parser that Knative's PingSource uses.
	parser := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			due := noon.Add(c.due)
			for _, zone := range []*time.Location{time.UTC, time.FixedZone("half an hour off", 5*3600+1800)} {
				line := schedule(due.In(zone), noon.Add(c.now).In(zone))
				if line != c.want {
					t.Errorf("In %s it is %q, want %q. %s", zone, line, c.want, c.why)
				}
				parsed, err := parser.Parse(line)
				if err != nil {
					t.Fatal(err)
				}
				if got := parsed.Next(due.Add(-1)).Sub(due); got != c.rings {
					t.Errorf("It rings %v after it is due, want %v", got, c.rings)
				}
			}
		})
	}
}

func TestAnAlarmRingsSoonAfterItIsDue(t *testing.T) {
	parser := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	for ahead := time.Duration(0); ahead < 3*time.Hour; ahead += 7*time.Second + 123456789 {
		due := noon.Add(ahead)
		parsed, err := parser.Parse(schedule(due, noon))
		if err != nil {
			t.Fatal(err)
		}
		ring := parsed.Next(due.Add(time.Second - 1))
		if late := ring.Sub(due); late < time.Second || late > 2*time.Second {
			t.Fatalf("Due in %v it rings %v after that", ahead, late)
		}
	}
}

func TestAnAlarmIsAPingSource(t *testing.T) {
	alarms := &Alarms{BrokerNamespace: "updraft-system", BrokerName: "updraft"}
	owner := &pulumiv1.Stack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "uid-of-app"}}
	about := event.Ref{Kind: event.KindStack, Namespace: "team", Name: "app"}
	want := map[string]any{
		"apiVersion": "sources.knative.dev/v1",
		"kind":       "PingSource",
		"metadata": map[string]any{
			"name": "updraft-stack-app", "namespace": "team",
			"annotations":     map[string]any{"updraft.dev/due": "2026-03-04T12:00:10.5Z"},
			"ownerReferences": []any{map[string]any{"apiVersion": "pulumi.com/v1", "kind": "Stack", "name": "app", "uid": "uid-of-app"}},
		},
		"spec": map[string]any{
			"schedule":    "12 * * * * *",
			"sink":        map[string]any{"ref": map[string]any{"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "updraft", "namespace": "updraft-system"}},
			"ceOverrides": map[string]any{"extensions": map[string]any{"kind": "Stack", "namespace": "team", "name": "app"}},
		},
	}
	got := alarms.pingSource(owner, "pulumi.com/v1", about, noon.Add(10500*time.Millisecond), noon)
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !sameAlarm(got, alarms.pingSource(owner, "pulumi.com/v1", about, noon.Add(10500*time.Millisecond), noon.Add(time.Hour))) {
		t.Error("The same due time later is another alarm")
	}
	if sameAlarm(got, alarms.pingSource(owner, "pulumi.com/v1", about, noon.Add(time.Minute), noon)) {
		t.Error("Another due time is the same alarm")
	}
	owner.UID = "uid-of-the-next"
	if sameAlarm(got, alarms.pingSource(owner, "pulumi.com/v1", about, noon.Add(10500*time.Millisecond), noon)) {
		t.Error("The alarm of an earlier Stack is this one's: it goes with the other")
	}
}

func TestTheNamesOfAlarmsDiffer(t *testing.T) {
	seen := map[string]event.Ref{}
	for _, kind := range []string{event.KindStack, event.KindUpdate} {
		for _, name := range []string{"app", "update-app", "stack-app", "app-19cb6d0f8e0", "update-app-19cb6d0f8e0"} {
			ref := event.Ref{Kind: kind, Namespace: "team", Name: name}
			if other, ok := seen[alarmName(ref)]; ok {
				t.Errorf("%s and %s share %s", ref, other, alarmName(ref))
			}
			seen[alarmName(ref)] = ref
		}
	}
}
