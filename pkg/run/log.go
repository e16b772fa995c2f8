package run

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// LogKey is the key of the ConfigMap <update>-log that holds the tail of the
// run's log, as gzip.
const LogKey = "log.gz"

// logLimit is how much of a log is kept, in bytes before compression. A
// ConfigMap may hold 1 MiB and, in JSON, binary data grows by a third: this much
// fits even if it does not compress, and it is some thousand lines.
const logLimit = 256 << 10

// LogConfigMapName is the name of the ConfigMap that keeps the tail of an
// Update's log.
func LogConfigMapName(update string) string { return update + "-log" }

// Logged is the container whose log tells how a run went: the one that runs the
// CLI, if it has begun, or else the init container that failed. It is "" while
// neither is so.
func Logged(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == Container && (s.State.Running != nil || s.State.Terminated != nil) {
			return s.Name
		}
	}
	for _, s := range pod.Status.InitContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return s.Name
		}
	}
	return ""
}

// Waiting says in one line what a pod that has not begun waits for, "" if it
// does not say.
func Waiting(pod *corev1.Pod) string { return strings.TrimPrefix(waiting(pod), ": ") }

// Tail keeps the end of what is written to it.
type Tail struct {
	text    []byte
	dropped int64
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if len(t.text) > 2*logLimit {
		t.drop(len(t.text) - logLimit)
	}
	return len(p), nil
}

func (t *Tail) drop(n int) {
	t.text = append(t.text[:0], t.text[n:]...)
	t.dropped += int64(n)
}

// End is what is kept, from the beginning of a line on if something was left
// out, and how many bytes were.
func (t *Tail) End() (text []byte, leftOut int64) {
	if len(t.text) > logLimit {
		t.drop(len(t.text) - logLimit)
	}
	text = t.text
	if t.dropped > 0 {
		text = text[lineStart(text):]
	}
	return text, t.dropped + int64(len(t.text)-len(text))
}

// lineStart is where the first whole line of a text begins; in one that is a
// single line, where its first whole letter does.
func lineStart(text []byte) int {
	if at := bytes.IndexByte(text, '\n'); at >= 0 && at+1 < len(text) {
		return at + 1
	}
	for i := range text {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return 0
}

// LogConfigMap keeps the tail of a run's log. The same text gives the same
// object, byte for byte.
func LogConfigMap(u *autov1alpha1.Update, container string, tail *Tail) (*corev1.ConfigMap, error) {
	text, leftOut := tail.End()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		return nil, fmt.Errorf("cannot compress the log of Update %s: %w", u.Name, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot compress the log of Update %s: %w", u.Name, err)
	}
	meta := ownedBy(u, LogConfigMapName(u.Name))
	meta.Annotations = map[string]string{
		pulumiv1.AnnotationLogContainer: container,
		pulumiv1.AnnotationLogLeftOut:   strconv.FormatInt(leftOut, 10),
	}
	immutable := true
	return &corev1.ConfigMap{ObjectMeta: meta, Immutable: &immutable, BinaryData: map[string][]byte{LogKey: packed.Bytes()}}, nil
}

// KeptLog reads a log that LogConfigMap kept, and how many bytes before it were
// left out.
func KeptLog(kept *corev1.ConfigMap) (text io.Reader, leftOut int64, err error) {
	text, err = gzip.NewReader(bytes.NewReader(kept.BinaryData[LogKey]))
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read the log in ConfigMap %s: %w", kept.Name, err)
	}
	if n := kept.Annotations[pulumiv1.AnnotationLogLeftOut]; n != "" {
		if leftOut, err = strconv.ParseInt(n, 10, 64); err != nil {
			return nil, 0, fmt.Errorf("cannot read annotation %s of ConfigMap %s: %w", pulumiv1.AnnotationLogLeftOut, kept.Name, err)
		}
	}
	return text, leftOut, nil
}
