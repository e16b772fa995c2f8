package run

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

func TestARunIsToldOfItsTrace(t *testing.T) {
	const kept, dropped = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	to := Traces{Endpoint: "http://collector:4318/v1/traces", Protocol: "http/protobuf"}
	told := map[string]string{"TRACEPARENT": kept, "UPDRAFT_TRACES_ENDPOINT": to.Endpoint, "UPDRAFT_TRACES_PROTOCOL": to.Protocol}
	cases := map[string]struct {
		settings Settings
		users    []corev1.EnvVar
		want     map[string]string // of the container pulumi
	}{
		"Off":                      {want: map[string]string{}},
		"Without a trace":          {settings: Settings{Traces: to}, want: map[string]string{}},
		"With one that is dropped": {settings: Settings{Traces: to, Traceparent: dropped}, want: map[string]string{}},
		"Runs send no spans":       {settings: Settings{Traceparent: kept}, want: map[string]string{}},
		"On":                       {settings: Settings{Traces: to, Traceparent: kept}, want: told},
		"With a user's own trace": {
			settings: Settings{Traces: to, Traceparent: kept},
			users:    []corev1.EnvVar{{Name: "TRACEPARENT", Value: "mine"}},
			want:     map[string]string{"TRACEPARENT": "mine", "UPDRAFT_TRACES_ENDPOINT": to.Endpoint, "UPDRAFT_TRACES_PROTOCOL": to.Protocol},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ws := aWorkspace(func(ws *autov1alpha1.Workspace) { ws.Spec.Env = c.users })
			job, err := Job(madeUpdate(), ws, c.settings)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, e := range containerOf(t, job.Spec.Template.Spec, Container).Env {
				if strings.Contains(e.Name, "TRACE") {
					if _, twice := got[e.Name]; twice {
						t.Errorf("%s is there twice", e.Name)
					}
					got[e.Name] = e.Value
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			// The source is fetched in the same trace.
			if text, _ := json.Marshal(job.Spec.Template.Spec.InitContainers); strings.Contains(string(text), to.Endpoint) != (len(c.want) > 0) {
				t.Errorf("bootstrap is %s", text)
			}
		})
	}
}

// Of the same Update the Job is the same but for that.
func TestATraceChangesNothingElseOfAJob(t *testing.T) {
	to := Settings{Traces: Traces{Endpoint: "http://c", Protocol: "grpc"}}
	var texts [2]string
	for i, span := range []string{"00f067aa0ba902b7", "b7ad6b7169203331"} {
		s := to
		s.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-" + span + "-01"
		job, err := Job(madeUpdate(), aWorkspace(), s)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = strings.ReplaceAll(string(text), span, "SPAN")
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		t.Errorf("%s", diff)
	}
}
