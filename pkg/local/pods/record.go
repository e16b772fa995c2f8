package pods

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// record changes the pod's status, here and on the API server, and returns when
// the latter has it, or when there is nobody to tell any more.
func (s *sandbox) record(change func(*corev1.PodStatus)) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.send(s.apply(change))
}

func (s *sandbox) apply(change func(*corev1.PodStatus)) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	over := phaseIsFinal(s.status.Phase)
	change(&s.status)
	settle(s.pod, &s.status, time.Now())
	if s.overdue && !over && phaseIsFinal(s.status.Phase) {
		setFailed(&s.status, reasonDeadline, "Pod was active on the node longer than the specified deadline")
		settle(s.pod, &s.status, time.Now())
	}
	return statusPatch(s.pod, &s.status)
}

// statusPatch is how a kubelet writes: only what is its own, so that nobody's
// write is in its way, and with the UID, so that it never writes onto a pod
// which took the name of a dead one.
func statusPatch(pod *corev1.Pod, status *corev1.PodStatus) []byte {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   status,
	})
	if err != nil {
		panic(err) // A status is always encodable.
	}
	return patch
}

func (s *sandbox) send(patch []byte) {
	pod := s.current()
	s.persist(func(ctx context.Context) error {
		_, err := s.r.client.CoreV1().Pods(pod.Namespace).
			Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if apierrors.IsInvalid(err) {
			// Not tried again: it would be refused each time. Another pod may have
			// taken the name, which the watch is about to tell.
			s.log.Warn("The status of the pod was refused", "error", err)
			return nil
		}
		return err
	})
}

// requestTime is how long one request may take.
const requestTime = 5 * time.Second

// persist tries until it succeeds, or the object is gone, which the watch will
// tell, or the Runner ends. A request under way is let come to its end: it is
// often the one that makes the object go.
func (s *sandbox) persist(try func(context.Context) error) {
	delay := 50 * time.Millisecond
	for s.alive.Err() == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.alive), requestTime)
		err := try(ctx)
		cancel()
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		s.log.Debug("Trying again", "error", err)
		select {
		case <-s.alive.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, 2*time.Second)
	}
}
