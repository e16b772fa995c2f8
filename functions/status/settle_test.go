package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
)

var noon = metav1.NewTime(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))

func anUpdate() *autov1alpha1.Update {
	return &autov1alpha1.Update{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app-1", UID: "uid-of-app-1", Generation: 1},
		Spec:       autov1alpha1.UpdateSpec{Type: autov1alpha1.UpType},
	}
}

func plain(value string) event.Output { return event.Output{Value: json.RawMessage(value)} }
func secret(value string) event.Output {
	return event.Output{Value: json.RawMessage(value), Secret: true}
}

func TestSettle(t *testing.T) {
	type settled struct {
		State    autov1alpha1.ResultState
		Reason   autov1alpha1.ConditionReason
		Message  string
		Complete string
	}
	cases := map[string]struct {
		told event.Finished
		want settled
	}{
		"A success": {event.Finished{State: "succeeded"}, settled{State: "succeeded", Complete: "Updated"}},
		"A success's reason does not count": {
			event.Finished{State: "succeeded", Reason: "UpdateFailed"}, settled{State: "succeeded", Complete: "Updated"}},
		"A failure": {
			event.Finished{State: "failed", Reason: "UpdateConflict", Message: "Locked"}, settled{"failed", "UpdateConflict", "Locked", "Failed"}},
		"A cancelled run": {
			event.Finished{State: "canceled", Reason: "Canceled", Message: "Stopped on request"}, settled{"canceled", "Canceled", "Stopped on request", "Failed"}},
		"A cancelled run's reason does not count": {
			event.Finished{State: "canceled", Reason: "UpdateFailed", Message: "x"}, settled{"canceled", "Canceled", "x", "Failed"}},
		"A failure without a reason": {
			event.Finished{State: "failed", Message: "x"}, settled{"failed", "Unknown", "x", "Failed"}},
		"A reason that is in no list": {
			event.Finished{State: "failed", Reason: "Whatever", Message: "x"}, settled{"failed", "Unknown", "x", "Failed"}},
		"A reason that is not for a run to give": {
			event.Finished{State: "failed", Reason: "Superseded", Message: "x"}, settled{"failed", "Unknown", "x", "Failed"}},
		"A reason that only its pod tells": {
			event.Finished{State: "failed", Reason: "Evicted", Message: "x"}, settled{"failed", "Unknown", "x", "Failed"}},
		"A reason that says success": {
			event.Finished{State: "failed", Reason: "UpdateSucceeded", Message: "x"}, settled{"failed", "Unknown", "x", "Failed"}},
		"A state that is none is a failure": {
			event.Finished{State: "notrun", Reason: "UpdateFailed", Message: "x"}, settled{"failed", "UpdateFailed", "x", "Failed"}},
		"Nothing is a failure": {event.Finished{}, settled{"failed", "Unknown", "", "Failed"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := anUpdate()
			settle(u, c.told, noon)
			got := settled{State: u.Status.Result.State, Reason: u.FailedReason(), Message: u.Status.Message}
			for _, condition := range u.Status.Conditions {
				if condition.Type == autov1alpha1.UpdateComplete {
					got.Complete = condition.Reason
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !u.Settled() || !u.Status.EndTime.Equal(&noon) {
				t.Errorf("status = %+v", u.Status)
			}
		})
	}
}

func TestSettleFound(t *testing.T) {
	for reason, want := range map[string]autov1alpha1.ConditionReason{
		"Evicted": "Evicted", "OutOfMemory": "OutOfMemory", "PodRefused": "PodRefused", "Aborted": "Aborted", "Whatever": "Unknown",
	} {
		u := anUpdate()
		settleFound(u, event.Termination{State: "failed", Reason: reason, Message: "x"}, noon)
		if u.FailedReason() != want || u.Status.Message != "x" || u.Status.Result.State != autov1alpha1.ResultFailed {
			t.Errorf("%s is settled as %s: %+v", reason, u.FailedReason(), u.Status.Result)
		}
	}
}

func TestASettledUpdateHoldsAllThatTheFoldNeedsAndNoSecret(t *testing.T) {
	u := anUpdate()
	settle(u, event.Finished{
		State: "succeeded", Permalink: "https://example.com/1", Changes: map[string]int64{"create": 2}, Commit: "7",
		Project: "web", Runtime: "yaml", PulumiVersion: "3.276.0", Message: "By the way",
		Outputs: map[string]event.Output{"url": plain(`"https://web"`), "nested": plain(`{"a":[1,null]}`), "token": secret(`"hunter2"`), "deep": secret(`{"a":"hunter2"}`)},
	}, noon)
	want := `endTime: "2026-03-04T12:00:00Z"
outputs: app-1-stack-outputs
permalink: https://example.com/1
projectInfo:
  name: web
  runtime: yaml
result:
  changes:
    create: 2
  commit: "7"
  message: By the way
  outputs:
    deep: '[secret]'
    nested:
      a:
      - 1
      - null
    token: '[secret]'
    url: https://web
  permalink: https://example.com/1
  projectInfo:
    name: web
    runtime: yaml
  pulumiVersion: 3.276.0
  state: succeeded
startTime: null
`
	u.Status.Conditions, u.Status.ObservedGeneration = nil, 0
	text, err := yaml.Marshal(u.Status)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARunThatTellsNoOutputsNamesNoSecret(t *testing.T) {
	u := anUpdate()
	settle(u, event.Finished{State: "succeeded"}, noon)
	if u.Status.Outputs != "" || u.Status.Result.Outputs != nil || u.Status.ProjectInfo != nil || u.Status.Result.ProjectInfo != nil {
		t.Errorf("status = %+v", u.Status)
	}
	settle(u, event.Finished{State: "succeeded", Outputs: map[string]event.Output{}}, noon)
	if u.Status.Outputs != "app-1-stack-outputs" || u.Status.Result.Outputs == nil {
		t.Errorf("A run that tells of none has a Secret of none: %+v", u.Status)
	}
}

func TestTheSecretOfOutputs(t *testing.T) {
	got, err := outputsSecret(anUpdate(), map[string]event.Output{
		"url": plain(`"https://web"`), "token": secret(`"hunter2"`), "a key/with: signs": secret(`{"b":1}`), "none": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	immutable, controller := true, true
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "app-1-stack-outputs",
			Labels: map[string]string{
				"auto.pulumi.com/component": "update", "auto.pulumi.com/update-name": "app-1", "updraft.dev/update": "app-1",
			},
			Annotations:     map[string]string{"pulumi.com/secrets": `["a_key_with__signs","token"]`},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "auto.pulumi.com/v1alpha1", Kind: "Update", Name: "app-1", UID: "uid-of-app-1", Controller: &controller}},
		},
		Immutable: &immutable, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			"url": []byte(`"https://web"`), "token": []byte(`"hunter2"`), "a_key_with__signs": []byte(`{"b":1}`), "none": []byte("null"),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, err = outputsSecret(anUpdate(), nil); err != nil || got.Annotations["pulumi.com/secrets"] != "[]" {
		t.Errorf("Without outputs the annotation is %v, %v", got.Annotations, err)
	}
}

func TestOutputsWhoseKeysBecomeTheSame(t *testing.T) {
	outputs := map[string]event.Output{"a b": secret(`"hunter2"`), "a_b": plain(`"shown"`), "a/b": plain(`"other"`), "c": plain("1")}
	first, err := outputsSecret(anUpdate(), outputs)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		again, err := outputsSecret(anUpdate(), outputs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("It depends on the order of a map: %s", diff)
		}
		// Which of them is kept a reader cannot tell, so it is secret if one is.
		if got := string(maskedOutputs(outputs)["a_b"].Raw); got != `"[secret]"` {
			t.Fatalf("It is shown as %s", got)
		}
	}
	if got := first.Annotations["pulumi.com/secrets"]; got != `["a_b"]` || len(first.Data) != 2 {
		t.Errorf("secrets %s, data %v", got, first.Data)
	}
}

func TestOutputKey(t *testing.T) {
	for name, want := range map[string]string{
		"plain": "plain", "Camel_Case-1.2": "Camel_Case-1.2", "a b/c:d": "a_b_c_d", "ä": "_", "": "_", ".": "_", "..": "_.", "..a": "_.a", ".a": ".a", "a..b": "a..b",
	} {
		if got := outputKey(name); got != want {
			t.Errorf("outputKey(%q) = %q, want %q", name, got, want)
		}
	}
}

// FuzzOutputs keeps whatever a program calls its outputs: as a key that a Secret
// takes, and without showing a secret.
func FuzzOutputs(f *testing.F) {
	f.Add("url", true)
	f.Add("..", false)
	f.Add("a\x00b\xff", true)
	f.Add(strings.Repeat("ä", 100), false)
	f.Fuzz(func(t *testing.T, name string, hidden bool) {
		if len(name) > validation.DNS1123SubdomainMaxLength {
			return
		}
		outputs := map[string]event.Output{name: {Value: json.RawMessage(`"hunter2"`), Secret: hidden}}
		secret, err := outputsSecret(anUpdate(), outputs)
		if err != nil {
			t.Fatal(err)
		}
		shown := maskedOutputs(outputs)
		for key := range secret.Data {
			if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
				t.Errorf("key %q: %v", key, problems)
			}
			if got := string(shown[key].Raw); (got == `"[secret]"`) != hidden {
				t.Errorf("%q is shown as %s", name, got)
			}
		}
	})
}

func TestHappenings(t *testing.T) {
	u := anUpdate()
	settle(u, event.Finished{State: "failed", Reason: "UpdateFailed", Message: "error: no such bucket\n" + strings.Repeat("ä", 1000)}, noon)
	if got := updateHappening(u); got.Type != corev1.EventTypeWarning || got.Reason != "UpdateFailed" || got.Message != "UpdateFailed: error: no such bucket; "+strings.Repeat("ä", 388)+"…" || got.Object.UID != u.UID {
		t.Errorf("happening = %+v", got)
	}
	u = anUpdate()
	settle(u, event.Finished{State: "succeeded"}, noon)
	if got := updateHappening(u); got.Type != corev1.EventTypeNormal || got.Reason != "UpdateSucceeded" {
		t.Errorf("happening = %+v", got)
	}
}
