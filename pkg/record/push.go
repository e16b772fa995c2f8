package record

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/updraft-dev/updraft/pkg/event"
)

// gatherTime is how long pushes of one ref gather before somebody looks, at
// least: an alarm adds up to two seconds.
const gatherTime = 2 * time.Second

// pushAlarm is the name of the alarm that gathers pushes, in the installation's
// namespace. No Stack owns it: it is deleted when it rings.
func pushAlarm(about event.Ref) string { return "updraft-" + about.Name }

// Gather sets the alarm that asks for one look after a burst of pushes. While it
// has not rung, another push needs none.
func (a *Alarms) Gather(ctx context.Context, about event.Ref, now time.Time) error {
	due := now.Add(gatherTime)
	alarm := a.ring(about, schedule(due, now), map[string]any{annotationDue: due.UTC().Format(time.RFC3339Nano)}, []any{})
	alarm.SetName(pushAlarm(about))
	_, err := a.Client.Resource(pingSources).Namespace(about.Namespace).Create(ctx, alarm, metav1.CreateOptions{})
	if Made(err) != nil {
		return fmt.Errorf("cannot set the alarm of %s: %w", about, err)
	}
	return nil
}

// Gathered deletes the alarm. Who looks does so afterwards: a push from then on
// sets one anew.
func (a *Alarms) Gathered(ctx context.Context, about event.Ref) error {
	err := a.Client.Resource(pingSources).Namespace(about.Namespace).Delete(ctx, pushAlarm(about), metav1.DeleteOptions{})
	if Gone(err) != nil {
		return fmt.Errorf("cannot clear the alarm of %s: %w", about, err)
	}
	return nil
}
