package integration

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

// token is a pod's token, as the kubelet would mount it.
func (s *space) token(pod, audience string) string {
	s.Helper()
	found, err := s.kube.CoreV1().Pods(s.namespace).Get(s.Context(), pod, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: found.Name, UID: found.UID,
		},
	}}
	answer, err := s.kube.CoreV1().ServiceAccounts(s.namespace).CreateToken(s.Context(), found.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return answer.Status.Token
}

// stranger is a pod of no run. Nothing of it need run.
func (s *space) stranger(name string, labels map[string]string) {
	s.Helper()
	_, err := s.kube.CoreV1().Pods(s.namespace).Create(s.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, SchedulingGates: []corev1.PodSchedulingGate{{Name: "updraft.dev/never"}},
			Containers: []corev1.Container{{Name: "pulumi", Image: "nothing", Command: []string{"/nothing"}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// report posts what a pod says of the held Update.
func (h *held) report(kind, token string, data any) int {
	h.Helper()
	u := h.watch.update(h.namespace, h.update)
	e, err := event.New(kind, "agent", string(u.UID)+"/"+kind, event.Ref{Kind: event.KindUpdate, Namespace: h.namespace, Name: h.update}, data)
	if err != nil {
		h.Fatal(err)
	}
	return send(h.Context(), h.T, h.Functions["updraft-status"], e, token)
}

func TestReportsCountOnlyFromThePodThatTookTheRun(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, lab.main, plain))
	elsewhere := newSpace(t, lab.main, plain)
	elsewhere.stranger("stranger", nil)
	h.stranger("neighbour", nil)
	h.stranger("impostor", map[string]string{"updraft.dev/update": h.update})
	uid := string(h.watch.update(h.namespace, h.update).UID)
	finished := event.Finished{UID: uid, State: string(autov1alpha1.ResultSucceeded)}
	before := h.statusText()

	for name, c := range map[string]struct {
		kind, token string
		data        any
		want        []int
	}{
		"No token":                                {event.TypeRunFinished, "", finished, []int{401}},
		"No token at all":                         {event.TypeRunTaken, "nonsense", event.Taken{UID: uid}, []int{401}},
		"A token for somebody else":               {event.TypeRunFinished, h.token(h.pod(), "https://kubernetes.default.svc.cluster.local"), finished, []int{401}},
		"A pod of another namespace":              {event.TypeRunFinished, elsewhere.token("stranger", run.TokenAudience), finished, []int{403, 409}},
		"A pod of another namespace that takes":   {event.TypeRunTaken, elsewhere.token("stranger", run.TokenAudience), event.Taken{UID: uid}, []int{403, 409}},
		"Another pod of the namespace":            {event.TypeRunFinished, h.token("neighbour", run.TokenAudience), finished, []int{403, 409}},
		"Another pod that takes it too":           {event.TypeRunTaken, h.token("neighbour", run.TokenAudience), event.Taken{UID: uid}, []int{403, 409}},
		"A pod with the run's label":              {event.TypeRunTaken, h.token("impostor", run.TokenAudience), event.Taken{UID: uid}, []int{409}},
		"A pod with the run's label that runs":    {event.TypeRunRunning, h.token("impostor", run.TokenAudience), event.Running{UID: uid, Host: "x", Pid: 1}, []int{403, 409}},
		"The pod, for an Update of another UID":   {event.TypeRunTaken, h.token(h.pod(), run.TokenAudience), event.Taken{UID: "another"}, []int{409}},
		"The pod, with what is no report":         {event.TypeRunFinished, h.token(h.pod(), run.TokenAudience), "what", []int{400}},
		"The pod, with a state that is not one":   {event.TypeRunFinished, h.token(h.pod(), run.TokenAudience), event.Finished{UID: uid, State: "splendid"}, []int{400, 422}},
		"The pod, again, that it takes the run":   {event.TypeRunTaken, h.token(h.pod(), run.TokenAudience), event.Taken{UID: uid}, []int{204}},
		"The pod, with an output that is no JSON": {event.TypeRunFinished, h.token(h.pod(), run.TokenAudience), json.RawMessage(`{"uid": "` + uid + `", "state": "succeeded", "outputs": 3}`), []int{400}},
	} {
		got := h.report(c.kind, c.token, c.data)
		if !slices.Contains(c.want, got) {
			t.Errorf("%s is answered %d, want %v", name, got, c.want)
		}
	}
	if after := h.statusText(); after != before {
		t.Errorf("the Update changed from %s to %s", before, after)
	}
	h.gate.open("real")
	ready := h.awaitReady("app")
	if got := string(ready.Status.Outputs["message"].Raw); got != `"real"` {
		t.Errorf("the output is %s", got)
	}
}

// statusText is the held Update's status, as text.
func (h *held) statusText() string {
	h.Helper()
	text, err := json.Marshal(h.space.update(h.update).Status)
	if err != nil {
		h.Fatal(err)
	}
	return string(text)
}

func TestASettledUpdateTakesARepeatAndNoOtherOutcome(t *testing.T) {
	t.Parallel()
	h := hold(newSpace(t, lab.main, plain))
	uid := string(h.watch.update(h.namespace, h.update).UID)
	token := h.token(h.pod(), run.TokenAudience)
	finished := event.Finished{UID: uid, State: string(autov1alpha1.ResultSucceeded), Project: "reads", Runtime: "yaml",
		Outputs: map[string]event.Output{"message": {Value: json.RawMessage(`"told"`)}}}
	if got := h.report(event.TypeRunFinished, token, finished); got != http.StatusNoContent {
		t.Fatalf("the report is answered %d", got)
	}
	settled := h.statusText()
	if got := h.report(event.TypeRunFinished, token, finished); got != http.StatusNoContent {
		t.Errorf("the repeat is answered %d", got)
	}
	failed := event.Finished{UID: uid, State: string(autov1alpha1.ResultFailed), Reason: string(autov1alpha1.ReasonUpdateFailed), Message: "No"}
	if got := h.report(event.TypeRunFinished, token, failed); got != http.StatusConflict {
		t.Errorf("another outcome is answered %d", got)
	}
	if got := h.report(event.TypeRunTaken, token, event.Taken{UID: uid}); got != http.StatusConflict {
		t.Errorf("a settled Update is taken: %d", got)
	}
	if got := h.report(event.TypeRunRunning, token, event.Running{UID: uid, Host: "x", Pid: 1}); got != http.StatusConflict {
		t.Errorf("a settled Update runs: %d", got)
	}
	if after := h.statusText(); after != settled {
		t.Errorf("the Update changed from %s to %s", settled, after)
	}
	// It is settled, but its pod runs: the Workspace stays locked.
	if ws := h.workspaces(); len(ws) != 1 || ws[0].Status.Run == nil || ws[0].Status.Run.Name != h.update {
		t.Errorf("the Workspace of a pod that runs is not locked: %+v", ws)
	}
	h.byHand("next", "app", "app", autov1alpha1.RefreshType)
	h.awaitUpdate("next", "waits", waitsFor(autov1alpha1.ReasonWorkspaceBusy))
	h.gate.open("real")
	h.awaitUpdate("next", "has succeeded", succeeded)
	h.awaitRest()
	if after := h.statusText(); after == "" || h.awaitReady("app").Status.LastUpdate.Name != h.update {
		t.Error("what was told is lost")
	}
	if got := string(h.get("app").Status.Outputs["message"].Raw); got != `"told"` {
		t.Errorf("the output is %s", got)
	}
}
