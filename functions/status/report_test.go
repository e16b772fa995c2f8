package status

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
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
