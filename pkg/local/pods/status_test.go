package pods

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// conditionsIn lists conditions as Type=Status/Reason.
func conditionsIn(status *corev1.PodStatus) map[string]string {
	found := map[string]string{}
	for _, c := range status.Conditions {
		found[string(c.Type)] = strings.TrimSuffix(string(c.Status)+"/"+c.Reason, "/")
	}
	return found
}

func TestStatusFollowsTheContainers(t *testing.T) {
	pod := runPod(func(*corev1.PodSpec) {})
	start := time.Unix(1e9, 0)
	status := newStatus(pod, start)
	end := func(name string, code int32, init bool) func() {
		return func() {
			setTerminated(statusOf(&status, name), corev1.ContainerStateTerminated{ExitCode: code}, init)
		}
	}
	steps := []struct {
		reason string
		step   func()
		phase  corev1.PodPhase
		want   map[string]string
	}{
		{"at first", func() {}, corev1.PodPending, map[string]string{"PodScheduled": "True",
			"Initialized": "False/ContainersNotInitialized", "ContainersReady": "False/ContainersNotReady", "Ready": "False/ContainersNotReady"}},
		{"init runs", func() { setRunning(statusOf(&status, "bootstrap"), "id", start, true) }, corev1.PodPending, map[string]string{"PodScheduled": "True",
			"Initialized": "False/ContainersNotInitialized", "ContainersReady": "False/ContainersNotReady", "Ready": "False/ContainersNotReady"}},
		{"init is done", end("bootstrap", 0, true), corev1.PodPending, map[string]string{"PodScheduled": "True",
			"Initialized": "True", "ContainersReady": "False/ContainersNotReady", "Ready": "False/ContainersNotReady"}},
		{"it runs", func() { setRunning(statusOf(&status, "pulumi"), "id", start, false) }, corev1.PodRunning, map[string]string{"PodScheduled": "True",
			"Initialized": "True", "ContainersReady": "True", "Ready": "True"}},
		{"it is done", end("pulumi", 0, false), corev1.PodSucceeded, map[string]string{"PodScheduled": "True",
			"Initialized": "True/PodCompleted", "ContainersReady": "False/PodCompleted", "Ready": "False/PodCompleted"}},
		{"or it failed", end("pulumi", 1, false), corev1.PodFailed, map[string]string{"PodScheduled": "True",
			"Initialized": "True", "ContainersReady": "False/PodFailed", "Ready": "False/PodFailed"}},
		{"or init failed", end("bootstrap", 1, true), corev1.PodFailed, map[string]string{"PodScheduled": "True",
			"Initialized": "False/ContainersNotInitialized", "ContainersReady": "False/PodFailed", "Ready": "False/PodFailed"}},
	}
	for i, s := range steps {
		s.step()
		settle(pod, &status, start.Add(time.Duration(i)*time.Minute))
		if status.Phase != s.phase {
			t.Errorf("%s: phase %s, want %s", s.reason, status.Phase, s.phase)
		}
		if diff := cmp.Diff(s.want, conditionsIn(&status)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", s.reason, diff)
		}
	}
	for _, c := range status.Conditions {
		if c.Type == corev1.PodScheduled && !c.LastTransitionTime.Time.Equal(start) {
			t.Errorf("a condition that stayed has a new time: %s", c.LastTransitionTime)
		}
	}
}

func TestPhaseOfSeveralContainers(t *testing.T) {
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	done := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	failed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	cases := []struct {
		states []corev1.ContainerState
		want   corev1.PodPhase
	}{
		{[]corev1.ContainerState{running, waiting}, corev1.PodPending},
		{[]corev1.ContainerState{failed, waiting}, corev1.PodPending},
		{[]corev1.ContainerState{running, failed}, corev1.PodRunning},
		{[]corev1.ContainerState{failed, running}, corev1.PodRunning},
		{[]corev1.ContainerState{failed, done}, corev1.PodFailed},
		{[]corev1.ContainerState{done, failed}, corev1.PodFailed},
		{[]corev1.ContainerState{done, done}, corev1.PodSucceeded},
	}
	for i, c := range cases {
		status := corev1.PodStatus{}
		for _, state := range c.states {
			status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{State: state})
		}
		if got := phaseOf(&status); got != c.want {
			t.Errorf("case %d: %s, want %s", i, got, c.want)
		}
	}
}

func TestTerminated(t *testing.T) {
	s := &sandbox{folder: testFolder(t)}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fallback := corev1.TerminationMessageFallbackToLogsOnError
	write(s.folder.message("said"), "message")
	write(s.folder.message("long"), strings.Repeat("é", 3000))
	write(filepath.Join(s.folder.share(), "message"), "below the share")
	write(s.folder.log("silent"), strings.Repeat("early\n", 90)+"late\n")
	now := time.Unix(1e9, 0)
	cases := []struct {
		reason    string
		container corev1.Container
		end       exit
		want      corev1.ContainerStateTerminated
	}{
		{"What it left is its message", corev1.Container{Name: "said"}, exit{At: now}, corev1.ContainerStateTerminated{Reason: "Completed", Message: "message"}},
		{"The file may be below the share", corev1.Container{Name: "x", TerminationMessagePath: "/share/message"}, exit{At: now}, corev1.ContainerStateTerminated{Reason: "Completed", Message: "below the share"}},
		{"The end of a long one is kept", corev1.Container{Name: "long"}, exit{Code: 3, At: now}, corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: strings.Repeat("é", 2048)}},
		{"A signal is told", corev1.Container{Name: "x"}, exit{Signal: 9, At: now}, corev1.ContainerStateTerminated{ExitCode: 137, Signal: 9, Reason: "Error"}},
		{"The log stands in after an error", corev1.Container{Name: "silent", TerminationMessagePolicy: fallback}, exit{Code: 1, At: now},
			corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: strings.Repeat("early\n", 79) + "late\n"}},
		{"And only then", corev1.Container{Name: "silent", TerminationMessagePolicy: fallback}, exit{At: now}, corev1.ContainerStateTerminated{Reason: "Completed"}},
	}
	for _, c := range cases {
		c.want.FinishedAt.Time = now
		if diff := cmp.Diff(c.want, s.terminated(&c.container, c.end)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.reason, diff)
		}
	}
}

func TestSeekLines(t *testing.T) {
	long := strings.Repeat("x", 100<<10) + "\n"
	cases := []struct {
		text string
		n    int
		want string
	}{
		{"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 2, "b\nc"}, {"a\nb\n", 9, "a\nb\n"}, {"a\nb\n", 0, ""}, {"a\nb\n", -1, "a\nb\n"},
		{"", 3, ""}, {"\n\n\n", 2, "\n\n"}, {"a\n" + long + "b\n", 2, long + "b\n"}, {long + long, 1, long},
	}
	for i, c := range cases {
		name := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(name, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		log, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := seekLines(log, c.n); err != nil {
			t.Fatal(err)
		}
		rest := make([]byte, len(c.text)+1)
		n, _ := log.Read(rest)
		log.Close()
		if got := string(rest[:n]); got != c.want {
			t.Errorf("case %d: %d bytes, want %d", i, len(got), len(c.want))
		}
	}
}
