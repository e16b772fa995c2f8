package stack

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// reasons are the closed lists, by condition and status.
var reasons = map[string][]string{
	"Ready=True":  {string(pulumiv1.ReadyCompleted)},
	"Ready=False": {string(pulumiv1.NotReadyInProgress), string(pulumiv1.NotReadyStalled)},
	"Reconciling=True": {
		string(pulumiv1.ReconcilingProcessing), string(pulumiv1.ReconcilingRetry),
		string(pulumiv1.ReconcilingPreviewFailed), string(pulumiv1.ReconcilingPrerequisite),
		string(pulumiv1.ReconcilingSuspended), string(pulumiv1.ReconcilingImagePullBackOff),
		string(pulumiv1.ReconcilingUnschedulable), string(pulumiv1.ReconcilingPodRefused),
		string(pulumiv1.ReconcilingCreateContainerError),
	},
	"Stalled=True": {
		string(pulumiv1.StalledSpecInvalid), string(pulumiv1.StalledSourceUnavailable),
		string(pulumiv1.StalledPulumiVersionTooLow), string(pulumiv1.StalledWorkspaceFailed),
		string(pulumiv1.StalledUpdateFailed), string(pulumiv1.StalledUpdateConflict),
		string(pulumiv1.StalledUpdateCanceled), string(pulumiv1.StalledNamespaceTerminating),
	},
}

// brokenRules lists which of the rules of conditions a status breaks.
func brokenRules(s *pulumiv1.Stack, status *pulumiv1.StackStatus) []string {
	var broken []string
	found := map[string]metav1.Condition{}
	for _, c := range status.Conditions {
		if _, twice := found[c.Type]; twice {
			broken = append(broken, "condition "+c.Type+" is there twice")
		}
		found[c.Type] = c
		if !slices.Contains(reasons[c.Type+"="+string(c.Status)], c.Reason) {
			broken = append(broken, c.Type+"="+string(c.Status)+" has the reason "+c.Reason+", which is not in its list")
		}
		if c.ObservedGeneration != s.Generation {
			broken = append(broken, "condition "+c.Type+" does not say which generation it is about")
		}
		if c.LastTransitionTime.IsZero() {
			broken = append(broken, "condition "+c.Type+" has no time")
		}
		if why := brokenMessage(c.Message); why != "" {
			broken = append(broken, "the message of "+c.Type+" "+why+": "+c.Message)
		}
	}
	if status.ObservedGeneration != s.Generation {
		broken = append(broken, "the status does not say which generation was observed")
	}
	if status.ObservedReconcileRequest != request(s) {
		broken = append(broken, "the status does not say which request was observed")
	}
	return append(broken, brokenTriple(found)...)
}

// brokenTriple checks kstatus: one of three is True, the abnormal ones are
// absent otherwise, and Ready stays to say what it is not.
func brokenTriple(found map[string]metav1.Condition) []string {
	ready, ok := found[pulumiv1.ReadyCondition]
	_, reconciling := found[pulumiv1.ReconcilingCondition]
	_, stalled := found[pulumiv1.StalledCondition]
	switch {
	case !ok:
		return []string{"there is no condition Ready"}
	case len(found) > 2:
		return []string{"more than one of Ready, Reconciling and Stalled holds"}
	case ready.Status == metav1.ConditionTrue && (reconciling || stalled):
		return []string{"a Ready Stack is Reconciling or Stalled too"}
	case ready.Status == metav1.ConditionFalse && !reconciling && !stalled:
		return []string{"none of Ready, Reconciling and Stalled is True"}
	case reconciling && ready.Reason != string(pulumiv1.NotReadyInProgress), stalled && ready.Reason != string(pulumiv1.NotReadyStalled):
		return []string{"Ready=False has the wrong reason " + ready.Reason}
	}
	return nil
}

func brokenMessage(m string) string {
	first, _ := utf8.DecodeRuneInString(m)
	switch {
	case m == "":
		return "is empty"
	case !utf8.ValidString(m):
		return "is no valid text"
	case strings.ContainsAny(m, "\n\r"):
		return "has more than one line"
	case unicode.IsLower(first):
		return "does not start with a capital"
	case strings.HasSuffix(m, "."):
		return "has a full stop"
	case strings.TrimSpace(m) != m:
		return "has space around it"
	case strings.HasSuffix(m, ":"):
		return "announces what does not follow"
	case len(m) > 32768:
		return "is longer than the API server takes"
	}
	return ""
}

func checkConditions(t *testing.T, s *pulumiv1.Stack, status *pulumiv1.StackStatus) {
	t.Helper()
	for _, why := range brokenRules(s, status) {
		t.Error("Conditions: " + why)
	}
}

// after is the world once the verdict's write is done, and nothing else has
// happened; false if the Stack is gone by then.
func after(w World, v Verdict) (World, bool) {
	s := w.Stack.DeepCopy()
	w.Stack = s
	if v.Action == AddFinalizer {
		s.Finalizers = append(s.Finalizers, pulumiv1.Finalizer)
		return w, true // this write is not one of the status
	}
	s.Status = *v.Status.DeepCopy()
	switch v.Action {
	case Claim:
		s.Status.CurrentUpdate = &pulumiv1.CurrentStackUpdate{Name: claimed}
		w.Update = nil
	case Finish:
		w.Workspace = v.Plan.Workspace.DeepCopy()
		w.Workspace.UID, w.Workspace.Generation = "uid-of-workspace", 5
		w.Update = v.Plan.Update(s.Status.CurrentUpdate.Name, w.Workspace)
	case Withdraw:
		w.Update = nil
	case Reclaim:
		w.Workspace = nil
	case Release:
		return w, false
	}
	return w, true
}

// brokenRepeat lists what changes in the conditions, a second later, although
// nothing has happened but the verdict's own write.
func brokenRepeat(w World, v Verdict, now time.Time) string {
	next, there := after(w, v)
	later := now.Add(time.Second)
	if !there || v.Action == AddFinalizer || !v.Alarm.IsZero() && !v.Alarm.After(later) {
		return ""
	}
	again := Assess(next, later)
	if reflect.DeepEqual(v.Status.Conditions, again.Status.Conditions) {
		return ""
	}
	return cmp.Diff(v.Status.Conditions, again.Status.Conditions)
}

func checkRepeat(t *testing.T, w World, v Verdict, now time.Time) {
	t.Helper()
	if diff := brokenRepeat(w, v, now); diff != "" {
		t.Errorf("The conditions flap: -first +again:\n%s", diff)
	}
}

func TestWhatARunSaidIsOneParagraph(t *testing.T) {
	long := strings.Repeat("ä", 2000)
	for text, want := range map[string]string{
		"":                                 "",
		"\n \n":                            "",
		"error: no such bucket":            "error: no such bucket",
		"error: no such bucket\n":          "error: no such bucket",
		"It is locked\nDelete the lock":    "It is locked; Delete the lock",
		"It failed:\n\n  * one.\n  * two.": "It failed: * one. * two",
		"one,\n\ttwo   three":              "one, two three",
		long:                               strings.Repeat("ä", 512) + "…",
		"first\n" + long:                   "first; " + strings.Repeat("ä", 508) + "…",
	} {
		if got := said(text); got != want {
			t.Errorf("of %q it is %q, want %q", text, got, want)
		}
	}
}
