package run

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

func TestALogIsKeptFromALineOnAndCounted(t *testing.T) {
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %06d\n", i)
		}
		return b.String()
	}
	noise := make([]byte, 3*logLimit)
	for i, random := 0, rand.New(rand.NewPCG(1, 2)); i < len(noise); i++ {
		noise[i] = byte(random.Uint32())
	}
	tests := []struct {
		reason, log string
		whole       bool
	}{
		{"a log that is empty is kept as it is", "", true},
		{"a log that fits is kept whole", "one\ntwo without an end", true},
		{"a log of exactly the limit is kept whole", strings.Repeat("x", logLimit), true},
		{"of a log that is too long the end is kept", lines(100_000), false},
		{"of a log between the limit and twice the limit too", lines(logLimit/12 + 10), false},
		{"a line that is too long is cut between letters", strings.Repeat("é", logLimit), false},
		{"a line that is too long is cut though it ends", strings.Repeat("é", logLimit) + "\n", false},
		{"what does not compress fits a ConfigMap", string(noise), false},
	}
	for _, test := range tests {
		for _, chunk := range []int{7, 32 << 10, len(test.log) + 1} {
			tail := &Tail{}
			for rest := []byte(test.log); len(rest) > 0; rest = rest[min(chunk, len(rest)):] {
				if _, err := tail.Write(rest[:min(chunk, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			kept, err := LogConfigMap(updateNamed("hello-1"), Container, tail)
			if err != nil {
				t.Fatal(err)
			}
			if size := len(kept.BinaryData[LogKey]); size > logLimit+1024 {
				t.Errorf("%s: %d bytes are kept", test.reason, size)
			}
			reader, leftOut, err := KeptLog(kept)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(test.log, string(text)) || leftOut+int64(len(text)) != int64(len(test.log)) {
				t.Errorf("%s, in pieces of %d: kept %d bytes and left out %d of %d", test.reason, chunk, len(text), leftOut, len(test.log))
			}
			if test.whole != (leftOut == 0) || len(test.log) > logLimit && len(text) < logLimit/2 {
				t.Errorf("%s, in pieces of %d: kept %d bytes and left out %d", test.reason, chunk, len(text), leftOut)
			}
			if utf8.ValidString(test.log) && !utf8.Valid(text) {
				t.Errorf("%s: a letter is cut", test.reason)
			}
			if strings.HasPrefix(test.log, "line ") && !bytes.HasPrefix(text, []byte("line ")) {
				t.Errorf("%s: a line is cut: %.20q", test.reason, text)
			}
		}
	}
}

func TestWhatIsNoKeptLogIsAnError(t *testing.T) {
	good, err := LogConfigMap(updateNamed("hello-1"), Container, &Tail{})
	if err != nil {
		t.Fatal(err)
	}
	for reason, change := range map[string]func(*corev1.ConfigMap){
		"no key":  func(c *corev1.ConfigMap) { c.BinaryData = nil },
		"no gzip": func(c *corev1.ConfigMap) { c.BinaryData[LogKey] = []byte("text") },
		"a count that is no number": func(c *corev1.ConfigMap) {
			c.Annotations = map[string]string{"updraft.dev/log-left-out": "many"}
		},
	} {
		bad := good.DeepCopy()
		change(bad)
		if _, _, err := KeptLog(bad); err == nil {
			t.Errorf("%s is read as a log", reason)
		}
	}
}

func TestTheLogToReadIsThatOfTheContainerThatTellsMost(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	of := func(name string, s corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: s}
	}
	tests := []struct {
		reason      string
		init, other []corev1.ContainerStatus
		want        string
	}{
		{"nothing has begun", nil, nil, ""},
		{"bootstrap runs", []corev1.ContainerStatus{of(Bootstrap, running)}, []corev1.ContainerStatus{of(Container, waits)}, ""},
		{"bootstrap failed", []corev1.ContainerStatus{of(Bootstrap, ended(1))}, []corev1.ContainerStatus{of(Container, waits)}, Bootstrap},
		{"a user's init container failed", []corev1.ContainerStatus{of(Bootstrap, ended(0)), of("mine", ended(3))}, nil, "mine"},
		{"the CLI runs", []corev1.ContainerStatus{of(Bootstrap, ended(0))}, []corev1.ContainerStatus{of(Container, running)}, Container},
		{"the CLI ended, and a sidecar was killed after it", []corev1.ContainerStatus{of(Bootstrap, ended(0)), of("proxy", ended(137))}, []corev1.ContainerStatus{of(Container, ended(1))}, Container},
	}
	for _, test := range tests {
		pod := &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: test.init, ContainerStatuses: test.other}}
		if got := Logged(pod); got != test.want {
			t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
		}
	}
}

func updateNamed(name string) *autov1alpha1.Update {
	return &autov1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "u"}}
}
