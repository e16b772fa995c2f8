package stack

import (
	"fmt"
	"sort"
	"strings"
	"time"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// prerequisites says in one line which prerequisites are not satisfied, "" if
// all are, and which of these are out of date and so must run again.
func prerequisites(w World, now time.Time) (unmet string, poke []string) {
	var problems []string
	for _, p := range w.Stack.Spec.Prerequisites {
		problem, outOfDate := prerequisite(w.Prerequisites[p.Name], p.Requirement, now)
		if problem != "" {
			problems = append(problems, p.Name+" "+problem)
		}
		if outOfDate {
			poke = append(poke, p.Name)
		}
	}
	if len(problems) == 0 {
		return "", nil
	}
	sort.Strings(problems)
	sort.Strings(poke)
	return fmt.Sprintf("%d prerequisite(s) not satisfied: %s", len(problems), strings.Join(problems, ", ")), poke
}

func prerequisite(stack *pulumiv1.Stack, requirement *pulumiv1.RequirementSpec, now time.Time) (problem string, outOfDate bool) {
	if stack == nil {
		return "does not exist", false
	}
	last := stack.Status.LastUpdate
	if last == nil || last.Generation != stack.Generation || last.ReconcileRequest != request(stack) {
		return "has not run to completion", false
	}
	if last.State != pulumiv1.SucceededStackStateMessage {
		return "has failed", false
	}
	if requirement == nil || requirement.SucceededWithinDuration == nil {
		return "", false
	}
	if now.Sub(last.LastResyncTime.Time) > requirement.SucceededWithinDuration.Duration {
		return "is out of date", true
	}
	return "", false
}

// DependsOn says whether a Stack names another as a prerequisite.
func DependsOn(stack *pulumiv1.Stack, name string) bool {
	for _, p := range stack.Spec.Prerequisites {
		if p.Name == name {
			return true
		}
	}
	return false
}

// PokeValue is the reconciliation request that asks an out-of-date prerequisite
// for a run: the same for all its dependents, so that they ask once.
func PokeValue(prerequisite *pulumiv1.Stack) string {
	if prerequisite.Status.LastUpdate == nil {
		return "after-"
	}
	return "after-" + prerequisite.Status.LastUpdate.Name
}
