package pods

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// longestUse is how long a kubelet uses a token at most.
	longestUse = 24 * time.Hour
	// renewalRetry is how soon a failed renewal is tried again. A fifth of a
	// token's life is left by then, two minutes at least.
	renewalRetry = 10 * time.Second
)

// renewal is when a token has to be renewed: after four fifths of its life.
// The life that was asked for counts if it is the shorter one, since the API
// server lets some tokens live longer than it says to their pod.
func renewal(now, expires time.Time, asked time.Duration) time.Time {
	life := min(expires.Sub(now), asked)
	return now.Add(min(life*4/5, longestUse))
}

// makeToken asks for a token that is bound to the pod: it dies with it.
func (s *sandbox) makeToken(ctx context.Context, t *token) (file, error) {
	pod := s.current()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &t.seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if t.audience != "" {
		request.Spec.Audiences = []string{t.audience}
	}
	answer, err := s.r.client.CoreV1().ServiceAccounts(pod.Namespace).
		CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return file{}, fmt.Errorf("failed to fetch token: %w", err)
	}
	t.renew = renewal(time.Now(), answer.Status.ExpirationTimestamp.Time, time.Duration(t.seconds)*time.Second)
	return file{data: []byte(answer.Status.Token), mode: t.mode}, nil
}

// fillTokens makes all tokens of a volume.
func (s *sandbox) fillTokens(v *corev1.Volume, resolved *volume) error {
	for i := range resolved.tokens {
		t := &resolved.tokens[i]
		made, err := s.makeToken(s.alive, t)
		if err != nil {
			return fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err)
		}
		resolved.files[t.path] = made
	}
	return nil
}

// renewTokens keeps the pod's tokens fresh until no process is left to use them.
func (s *sandbox) renewTokens() {
	for {
		name, next := s.nextToken()
		if next == nil {
			return
		}
		select {
		case <-s.idle:
			return
		case <-s.r.after(time.Until(next.renew)):
		}
		if err := s.renewToken(name, next); err != nil {
			s.log.Warn("Cannot renew a token", "error", err)
			next.renew = time.Now().Add(renewalRetry)
		}
	}
}

func (s *sandbox) renewToken(name string, t *token) error {
	made, err := s.makeToken(s.alive, t)
	if err != nil {
		return err
	}
	return s.mounts.replace(name, t.path, made)
}

// nextToken is the one whose time comes first. Only renewTokens changes them.
func (s *sandbox) nextToken() (string, *token) {
	var volume string
	var next *token
	for name, v := range s.mounts.volumes {
		for i := range v.tokens {
			if t := &v.tokens[i]; next == nil || t.renew.Before(next.renew) {
				volume, next = name, t
			}
		}
	}
	return volume, next
}
