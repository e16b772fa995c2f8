package status

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
)

func TestATokenSpeaksForThePodThatItIsBoundTo(t *testing.T) {
	review := func(change func(*authenticationv1.TokenReviewStatus)) authenticationv1.TokenReviewStatus {
		s := authenticationv1.TokenReviewStatus{
			Authenticated: true, Audiences: []string{"updraft"},
			User: authenticationv1.UserInfo{Username: "system:serviceaccount:team:deployer", Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {"app-1-abcde"}, "authentication.kubernetes.io/pod-uid": {"uid-of-pod"},
			}},
		}
		change(&s)
		return s
	}
	cases := map[string]struct {
		status authenticationv1.TokenReviewStatus
		want   string
	}{
		"A pod's own":           {review(func(*authenticationv1.TokenReviewStatus) {}), "app-1-abcde/uid-of-pod"},
		"One that is not valid": {review(func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false }), ""},
		"One for somebody else": {review(func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"vault"} }), ""},
		"One for nobody":        {review(func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil }), ""},
		"One that names no pod": {review(func(s *authenticationv1.TokenReviewStatus) { s.User.Extra = nil }), ""},
		"One that names no pod's UID": {review(func(s *authenticationv1.TokenReviewStatus) {
			delete(s.User.Extra, "authentication.kubernetes.io/pod-uid")
		}), ""},
		"One that names two pods": {review(func(s *authenticationv1.TokenReviewStatus) {
			s.User.Extra["authentication.kubernetes.io/pod-name"] = []string{"app-1-abcde", "other"}
		}), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod, uid, err := boundPod(c.status)
			got := pod + "/" + string(uid)
			if err != nil {
				got = ""
			}
			if got != c.want {
				t.Errorf("boundPod = %s, %v", got, err)
			}
		})
	}
}

func TestWhatOtherSystemsAreToldHoldsNoOutput(t *testing.T) {
	u := anUpdate()
	settle(u, event.Finished{
		State: "failed", Reason: "UpdateFailed", Message: "error: hunter2", Permalink: "https://example.com/1", Changes: map[string]int64{"same": 1},
		Outputs: map[string]event.Output{"token": plain(`"hunter2"`)},
	}, noon)
	got := told(u, "failed")
	if got.Update != "app-1" || got.Type != "up" || got.State != "failed" || got.Reason != string(autov1alpha1.ReasonUpdateFailed) ||
		got.Permalink != "https://example.com/1" || got.Changes["same"] != 1 {
		t.Errorf("told = %+v", got)
	}
	e, err := event.New(event.TypeRunFinished, Name, "1", event.Ref{Kind: "Update", Namespace: "team", Name: "app-1"}, got)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"update":"app-1","type":"up","state":"failed","reason":"UpdateFailed","changes":{"same":1},"permalink":"https://example.com/1"}`
	if string(e.Data()) != want {
		t.Errorf("data = %s", e.Data())
	}
}
