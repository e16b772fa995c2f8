package stack

import (
	"testing"
	"time"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

func TestAStackWithPrerequisites(t *testing.T) {
	unmet := func(message string, poke ...string) outcome {
		return outcome{Action: Nothing, State: "Reconciling/PrerequisiteNotSatisfied", Message: message, Poke: poke}
	}
	claim := outcome{Action: Claim, State: processing, Message: "Initial stack update",
		Wanted: For{Generation: 2, Revision: revision, Type: autov1alpha1.UpType}}
	assess(t, map[string]assessment{
		"One that succeeded is satisfied": {world: inWorld(aStack(), needs("net", 0, aStack(ran()))), want: claim},
		"One that succeeded long ago is satisfied without a duration": {
			world: inWorld(aStack(), needs("net", 0, aStack(ran(ago(1000*time.Hour))))), want: claim},
		"One that does not exist is waited for": {
			world: inWorld(aStack(), needs("net", 0, nil)),
			want:  unmet("1 prerequisite(s) not satisfied: net does not exist")},
		"One that never ran is waited for": {
			world: inWorld(aStack(), needs("net", 0, aStack())),
			want:  unmet("1 prerequisite(s) not satisfied: net has not run to completion")},
		"One that changed since is waited for": {
			world: inWorld(aStack(), needs("net", 0, aStack(ran(), func(s *pulumiv1.Stack) { s.Generation++ }))),
			want:  unmet("1 prerequisite(s) not satisfied: net has not run to completion")},
		"One that was asked to run since is waited for": {
			world: inWorld(aStack(), needs("net", 0, aStack(ran(), annotated(pulumiv1.AnnotationReconcileRequest, "now")))),
			want:  unmet("1 prerequisite(s) not satisfied: net has not run to completion")},
		"One that failed is waited for": {
			world: inWorld(aStack(), needs("net", 0, aStack(ran(failing(autov1alpha1.ReasonUpdateFailed, 3, 0))))),
			want:  unmet("1 prerequisite(s) not satisfied: net has failed")},
		"One that failed is not asked for a run, however old": {
			world: inWorld(aStack(), needs("net", time.Minute, aStack(ran(failing(autov1alpha1.ReasonUpdateFailed, 3, time.Hour))))),
			want:  unmet("1 prerequisite(s) not satisfied: net has failed")},
		"One within its duration is satisfied": {
			world: inWorld(aStack(), needs("net", 6*time.Minute, aStack(ran(ago(5*time.Minute))))), want: claim},
		"One out of its duration is asked for a run": {
			world: inWorld(aStack(), needs("net", 5*time.Minute, aStack(ran(ago(5*time.Minute+1))))),
			want:  unmet("1 prerequisite(s) not satisfied: net is out of date", "net")},
		"Several are told in order, and only those that are satisfied left out": {
			world: inWorld(aStack(),
				needs("net", time.Minute, aStack(ran(ago(time.Hour)))), needs("db", 0, nil),
				needs("ok", 0, aStack(ran())), needs("auth", time.Minute, aStack(ran(ago(time.Hour))))),
			want: unmet("3 prerequisite(s) not satisfied: auth is out of date, db does not exist, net is out of date", "auth", "net")},
		"A claim is withdrawn": {
			world: inWorld(aStack(claims(claimed)), needs("net", 0, nil)),
			want: outcome{Action: Withdraw, State: "Reconciling/PrerequisiteNotSatisfied",
				Message: "1 prerequisite(s) not satisfied: net does not exist"}},
		"A Stack in step does not care": {
			world: inWorld(aStack(ran()), needs("net", time.Minute, aStack(ran(ago(time.Hour))))),
			want:  outcome{Action: Nothing, State: ready, Message: upToDate}},
		"An Update under way does not care": {
			world: inWorld(aStack(claims(claimed), shown("Initial stack update")), needs("net", 0, nil),
				underWay(anUpdate(stackUID, autov1alpha1.UpType))),
			want: outcome{Action: Nothing, State: processing, Message: "Initial stack update", Claim: claimed}},
		"A retry is held back": {
			world: inWorld(aStack(ran(failing(autov1alpha1.ReasonUpdateFailed, 0, time.Hour))), needs("net", 0, nil)),
			want:  unmet("1 prerequisite(s) not satisfied: net does not exist")},
	})
}

func TestAPrerequisiteIsOutOfDateOnceItsDurationIsOver(t *testing.T) {
	w := inWorld(aStack(), needs("net", 5*time.Minute, aStack(ran(ago(5*time.Minute)))))
	if unmet, poke := prerequisites(w, noon); unmet != "" || poke != nil {
		t.Errorf("At its end: %q, poke %v", unmet, poke)
	}
	if unmet, _ := prerequisites(w, noon.Add(1)); unmet == "" {
		t.Error("A nanosecond later it is satisfied still")
	}
}

func TestDependsOn(t *testing.T) {
	s := inWorld(aStack(), needs("net", 0, nil), needs("db", 0, nil)).Stack
	for name, want := range map[string]bool{"net": true, "db": true, "app": false, "": false} {
		if got := DependsOn(s, name); got != want {
			t.Errorf("DependsOn(%q) = %v", name, got)
		}
	}
}

func TestAPokeIsTheSameForAllDependents(t *testing.T) {
	if got := PokeValue(aStack(ran())); got != "after-app-last" {
		t.Errorf("PokeValue = %q", got)
	}
	if got := PokeValue(aStack()); got != "after-" {
		t.Errorf("PokeValue of a Stack that never ran = %q", got)
	}
}
