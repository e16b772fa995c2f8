package pods

import (
	"io"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// messageVariable tells a process where its terminationMessagePath is, since
	// /dev/termination-log cannot be made for one process alone.
	messageVariable = "UPDRAFT_TERMINATION_LOG"
	// A kubelet's limits of a termination message, and of what it takes from the
	// log in its place.
	messageBytes    = 4096
	messageLogBytes = 2048
	messageLogLines = 80
)

// messageFile is where a container leaves its termination message.
func messageFile(at folder, container *corev1.Container) string {
	if name, ok := at.shared(container.TerminationMessagePath); ok && name != at.share() {
		return name
	}
	return at.message(container.Name)
}

// terminated is how a container's end is told.
func (s *sandbox) terminated(container *corev1.Container, end exit) corev1.ContainerStateTerminated {
	state := corev1.ContainerStateTerminated{
		ExitCode:   int32(end.Code),
		Signal:     int32(end.Signal),
		Reason:     reasonCompleted,
		FinishedAt: metav1.NewTime(end.At),
		Message:    tail(messageFile(s.folder, container), messageBytes),
	}
	if end.At.IsZero() {
		state.FinishedAt = metav1.NewTime(time.Now())
	}
	if end.Signal != 0 {
		state.ExitCode = int32(128 + end.Signal)
	}
	if state.ExitCode != 0 {
		state.Reason = reasonError
	}
	fallback := container.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError
	if state.Message == "" && state.ExitCode != 0 && fallback {
		state.Message = lastLines(tail(s.folder.log(container.Name), messageLogBytes), messageLogLines)
	}
	return state
}

// tail is the end of a file, or nothing if there is none.
func tail(name string, limit int64) string {
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > limit {
		_, _ = file.Seek(-limit, io.SeekEnd)
	}
	data, _ := io.ReadAll(io.LimitReader(file, limit))
	// What was cut may be half a character.
	return strings.ToValidUTF8(string(data), "")
}

func lastLines(text string, n int) string {
	return text[lastLinesAt([]byte(text), n):]
}

// lastLinesAt is where the last n lines begin. A newline at the very end ends
// the last line, and begins none.
func lastLinesAt(text []byte, n int) int {
	for i, c := range slices.Backward(text) {
		if c != '\n' || i == len(text)-1 {
			continue
		}
		if n--; n <= 0 {
			return i + 1
		}
	}
	return 0
}
