package measure

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/observe"
)

var noon = metav1.NewTime(time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC))

func after(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }

func said(all []observe.Measurement) (said []string) {
	for _, m := range all {
		labels := attribute.NewSet(m.Labels...)
		said = append(said, fmt.Sprintf("%s{%s} %g", m.Metric, labels.Encoded(attribute.DefaultEncoder()), m.Value))
	}
	return said
}

func TestUpdate(t *testing.T) {
	taken := func(u *autov1alpha1.Update) { u.Status.StartTime = after(4 * time.Second) }
	resulted := func(state autov1alpha1.ResultState) func(*autov1alpha1.Update) {
		return func(u *autov1alpha1.Update) {
			u.Status.Result = &autov1alpha1.UpdateResult{State: state, Changes: map[string]int64{"update": 2}}
			if state == autov1alpha1.ResultSucceeded {
				u.MarkSucceeded(after(30 * time.Second))
			} else {
				u.MarkFailed(after(30*time.Second), autov1alpha1.ReasonUpdateFailed, "error")
			}
		}
	}
	refresh := func(u *autov1alpha1.Update) { u.Spec.Type = autov1alpha1.RefreshType }
	clock := func(u *autov1alpha1.Update) { u.CreationTimestamp = after(10 * time.Second) }
	type changes = []func(*autov1alpha1.Update)
	for name, c := range map[string]struct {
		before, after changes
		want          []string
	}{
		"Taken": {after: changes{taken}, want: []string{"updraft.queue.time{type=up} 4"}},
		"Taken before it was made, by another clock": {before: changes{clock}, after: changes{taken}, want: []string{"updraft.queue.time{type=up} 0"}},
		"It goes on": {before: changes{taken}},
		"Succeeded": {before: changes{taken}, after: changes{resulted("succeeded")}, want: []string{
			"updraft.updates{k8s.namespace.name=team,result=succeeded,type=up} 1", "updraft.update.duration{result=succeeded,type=up} 26"}},
		"Failed": {before: changes{taken}, after: changes{resulted("failed")}, want: []string{
			"updraft.updates{k8s.namespace.name=team,reason=UpdateFailed,result=failed,type=up} 1", "updraft.update.duration{result=failed,type=up} 26"}},
		"Never run": {after: changes{resulted("notrun")}, want: []string{
			"updraft.updates{k8s.namespace.name=team,reason=UpdateFailed,result=notrun,type=up} 1"}},
		"Settled before": {before: changes{taken, resulted("succeeded")}},
		"A refresh that found something": {before: changes{refresh, taken}, after: changes{resulted("succeeded")}, want: []string{
			"updraft.updates{k8s.namespace.name=team,result=succeeded,type=refresh} 1", "updraft.update.duration{result=succeeded,type=refresh} 26",
			"updraft.drift{k8s.namespace.name=team,type=refresh} 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := &autov1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Namespace: "team", CreationTimestamp: noon}}
			before.Spec.Type = autov1alpha1.UpType
			for _, change := range c.before {
				change(before)
			}
			written := before.DeepCopy()
			for _, change := range c.after {
				change(written)
			}
			if diff := cmp.Diff(c.want, said(Update(before, written))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPhases(t *testing.T) {
	u := &autov1alpha1.Update{}
	u.Spec.Type = autov1alpha1.UpType
	got := said(Phases(u, map[string]float64{"operation": 2.5, "fetch": 0.25, "install": -1, "select": 1e300, "made-up": 1}))
	want := []string{"updraft.run.phase.duration{phase=fetch,type=up} 0.25", "updraft.run.phase.duration{phase=operation,type=up} 2.5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStack(t *testing.T) {
	failed := func(s *pulumiv1.StackStatus) {
		s.LastUpdate = &pulumiv1.StackUpdateState{State: pulumiv1.FailedStackStateMessage, Generation: 1, Reason: "UpdateFailed"}
	}
	succeeded := func(s *pulumiv1.StackStatus) {
		s.LastUpdate = &pulumiv1.StackUpdateState{State: pulumiv1.SucceededStackStateMessage, Generation: 1}
	}
	claimed := func(generation int64) func(*pulumiv1.StackStatus) {
		return func(s *pulumiv1.StackStatus) {
			s.CurrentUpdate = &pulumiv1.CurrentStackUpdate{Generation: generation}
		}
	}
	stalled := func(s *pulumiv1.StackStatus) { s.MarkStalled(1, noon, pulumiv1.StalledSpecInvalid, "wrong") }
	type changes = []func(*pulumiv1.StackStatus)
	for name, c := range map[string]struct {
		before, after changes
		want          []string
	}{
		"The first run":              {after: changes{claimed(1)}},
		"A run of a newer spec":      {before: changes{failed}, after: changes{claimed(2)}},
		"A run after a success":      {before: changes{succeeded}, after: changes{claimed(1)}},
		"A run after a failure":      {before: changes{failed}, after: changes{claimed(1)}, want: []string{"updraft.retries{k8s.namespace.name=team,reason=UpdateFailed} 1"}},
		"A claim that stands":        {before: changes{failed, claimed(1)}},
		"It stalls":                  {after: changes{stalled}, want: []string{"updraft.stalls{k8s.namespace.name=team,reason=SpecInvalid} 1"}},
		"It was stalled as it is":    {before: changes{stalled}},
		"It fails, and stalls by it": {before: changes{claimed(1)}, after: changes{failed, func(s *pulumiv1.StackStatus) { s.CurrentUpdate = nil }, stalled}, want: []string{"updraft.stalls{k8s.namespace.name=team,reason=SpecInvalid} 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var before pulumiv1.StackStatus
			for _, change := range c.before {
				change(&before)
			}
			written := *before.DeepCopy()
			for _, change := range c.after {
				change(&written)
			}
			if diff := cmp.Diff(c.want, said(Stack("team", &before, &written))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
