package record

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/updraft-dev/updraft/pkg/observe"
)

// Happening is a Kubernetes Event: something that happened to an object, for
// kubectl describe to show.
type Happening struct {
	// Name tells it apart: the same happening, recorded twice, is one Event.
	Name string
	// Object that it happened to.
	Object corev1.ObjectReference
	// Type is Normal or Warning.
	Type string
	// Reason in one word, Message in one line.
	Reason, Message string
}

// Happened records a Kubernetes Event in the object's namespace, unless that takes
// nothing new.
func Happened(ctx context.Context, client corev1client.EventsGetter, reporter string, h Happening, now time.Time) error {
	_, err := client.Events(h.Object.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     observed(ctx, metav1.ObjectMeta{Name: h.Name, Namespace: h.Object.Namespace}),
		InvolvedObject: h.Object,
		Type:           h.Type, Reason: h.Reason, Message: h.Message,
		Source:              corev1.EventSource{Component: reporter},
		ReportingController: reporter, ReportingInstance: reporter,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now), Count: 1,
	}, metav1.CreateOptions{})
	if Made(err) != nil && !Closed(err) {
		return fmt.Errorf("cannot record that %s happened to %s %s: %w", h.Reason, h.Object.Kind, h.Object.Name, err)
	}
	return nil
}

// observed is metadata with the trace that an object is made in, if there is one.
func observed(ctx context.Context, meta metav1.ObjectMeta) metav1.ObjectMeta {
	observe.Stamp(ctx, &meta)
	return meta
}
