//go:build e2e

package e2e

import (
	"errors"
	"testing"
	"time"
)

// soon is how long a run that cannot start may stay untold, from zero: two cold
// starts and what Kubernetes itself takes to say so.
const soon = 60 * time.Second

var errNotYet = errors.New("not yet")

func TestARunThatCannotStartSaysWhyAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, spec string
		reason, text string
		after        func(*space)
	}{
		"An image that cannot be pulled": {
			spec:   `{workspaceTemplate: {spec: {image: "localhost:1/nothing:here"}}}`,
			reason: "ImagePullBackOff", text: "localhost:1/nothing:here",
		},
		"A pod that fits nowhere": {
			spec:   `{workspaceTemplate: {spec: {resources: {requests: {cpu: "1000"}}}}}`,
			reason: "Unschedulable", text: "Insufficient cpu",
		},
		"A ServiceAccount that is missing": {
			spec:   `{serviceAccountName: absent}`,
			reason: "PodRefused", text: "absent",
			after: func(s *space) { s.kubectl("create", "serviceaccount", "absent") },
		},
		"A quota that is used up": {
			before: `{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {pods: "0"}}}`,
			reason: "PodRefused", text: "quota",
			after: func(s *space) { s.kubectl("delete", "resourcequota", "none") },
		},
		"A pod that the Pod Security Standard refuses": {
			spec:   `{workspaceTemplate: {spec: {podTemplate: {spec: {hostNetwork: true}}}}}`,
			reason: "PodRefused", text: "PodSecurity",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			s.program()
			if c.before != "" {
				s.apply(c.before)
			}
			s.apply(s.stackOf("app", c.spec))
			s.awaitReason(soon, "app", c.reason, c.text)
			if c.after != nil {
				c.after(s)
				s.awaitReady("app")
			}
		})
	}
}

func TestARunThatIsKilledForItsMemorySaysSo(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.program()
	s.apply(s.stackOf("app", `{workspaceTemplate: {spec: {resources: {limits: {memory: 24Mi}}}}}`))
	s.within(patience, "the Stack says that memory ran out", func() error {
		last := s.stack("app").Status.LastUpdate
		if last == nil {
			return errNotYet
		}
		if last.Reason != "OutOfMemory" {
			return errors.New(last.Reason + ": " + last.Message)
		}
		return nil
	})
}
