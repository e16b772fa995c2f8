package stack

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

func TestDrift(t *testing.T) {
	const up, refresh, preview, destroy = autov1alpha1.UpType, autov1alpha1.RefreshType, autov1alpha1.PreviewType, autov1alpha1.DestroyType
	const succeeded, failed = autov1alpha1.ResultSucceeded, autov1alpha1.ResultFailed
	resync, asked := For{Generation: 1, Type: up, Resync: true}.String(), For{Generation: 2, Type: up}.String()
	cases := map[string]struct {
		kind    autov1alpha1.UpdateType
		stands  string
		state   autov1alpha1.ResultState
		changes map[string]int64
		want    int64
	}{
		"A resync that had something to do":      {up, resync, succeeded, map[string]int64{"same": 3, "update": 1, "create": 2}, 3},
		"A resync that found all as it was":      {up, resync, succeeded, map[string]int64{"same": 3, "refresh": 3, "read": 1}, 0},
		"A resync that counted nothing":          {up, resync, succeeded, nil, 0},
		"A resync that failed":                   {up, resync, failed, map[string]int64{"update": 1}, 0},
		"A change that was asked for":            {up, asked, succeeded, map[string]int64{"update": 1}, 0},
		"An up that was made by hand":            {up, "", succeeded, map[string]int64{"update": 1}, 0},
		"A refresh that found something":         {refresh, asked, succeeded, map[string]int64{"same": 1, "delete": 1}, 1},
		"A refresh that was made by hand":        {refresh, "", succeeded, map[string]int64{"update": 2}, 2},
		"A refresh that found all as it was":     {refresh, "", succeeded, map[string]int64{"same": 4}, 0},
		"A refresh that failed":                  {refresh, "", failed, map[string]int64{"update": 2}, 0},
		"A preview, even if it is one of resync": {preview, resync, succeeded, map[string]int64{"update": 2}, 0},
		"A destroy":                              {destroy, asked, succeeded, map[string]int64{"delete": 2}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := &autov1alpha1.Update{Spec: autov1alpha1.UpdateSpec{Type: c.kind}}
			if c.stands != "" {
				u.Annotations = map[string]string{pulumiv1.AnnotationFor: c.stands}
			}
			u.Status.Result = &autov1alpha1.UpdateResult{State: c.state, Changes: c.changes}
			if got := Drift(u); got != c.want {
				t.Errorf("Drift = %d, want %d", got, c.want)
			}
		})
	}
	if got := Drift(&autov1alpha1.Update{Spec: autov1alpha1.UpdateSpec{Type: refresh}}); got != 0 {
		t.Errorf("of an Update that is not settled it is %d", got)
	}
}

func TestNewlyStalled(t *testing.T) {
	stalled := func(generation int64, reason pulumiv1.StalledReason, message string, at time.Time) (s pulumiv1.StackStatus) {
		s.MarkStalled(generation, metav1.NewTime(at), reason, message)
		return s
	}
	var ready pulumiv1.StackStatus
	ready.MarkReady(1, metav1.NewTime(noon), "fine")
	invalid := stalled(1, pulumiv1.StalledSpecInvalid, "a", noon)
	cases := map[string]struct {
		before, after pulumiv1.StackStatus
		want          bool
	}{
		"From nothing":                      {pulumiv1.StackStatus{}, invalid, true},
		"From Ready":                        {ready, invalid, true},
		"For another reason":                {stalled(1, pulumiv1.StalledUpdateFailed, "a", noon), invalid, true},
		"In spite of a change":              {invalid, stalled(2, pulumiv1.StalledSpecInvalid, "a", noon), true},
		"As before, with another message":   {invalid, stalled(1, pulumiv1.StalledSpecInvalid, "b", noon.Add(time.Hour)), false},
		"As before":                         {invalid, invalid, false},
		"Stalled no more":                   {invalid, ready, false},
		"Not stalled, neither now nor then": {ready, pulumiv1.StackStatus{}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NewlyStalled(&c.before, &c.after); got != c.want {
				t.Errorf("NewlyStalled = %v", got)
			}
		})
	}
}
