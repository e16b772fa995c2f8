package stack

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// tellStalled tells other systems that a Stack needs a person from the write on
// that comes next. It goes first: nothing would remember it after the write. What is
// told twice has the same id, whatever else is written in between: before a Stack
// stalls again in the same generation, a condition of it has changed.
func (f *Function) tellStalled(ctx context.Context, read *pulumiv1.Stack, status *pulumiv1.StackStatus) error {
	if !stack.NewlyStalled(&read.Status, status) {
		return nil
	}
	var since metav1.Time
	for _, c := range read.Status.Conditions {
		if since.Before(&c.LastTransitionTime) {
			since = c.LastTransitionTime
		}
	}
	reason := meta.FindStatusCondition(status.Conditions, pulumiv1.StalledCondition).Reason
	state := fmt.Sprintf("stalled/%d/%s/%d", read.Generation, reason, max(since.Unix(), 0))
	return f.tell(ctx, event.TypeStackStalled, state, read, event.StackStalled{Reason: reason})
}

// tellDeleted tells other systems that a Stack is let go of, before it is.
func (f *Function) tellDeleted(ctx context.Context, s *pulumiv1.Stack) error {
	return f.tell(ctx, event.TypeStackDeleted, "deleted", s, event.StackDeleted{Destroyed: stack.Destroyed(s)})
}

func (f *Function) tell(ctx context.Context, eventType, state string, s *pulumiv1.Stack, data any) error {
	about := event.Ref{Kind: event.KindStack, Namespace: s.Namespace, Name: s.Name}
	e, err := event.New(eventType, Name, string(s.UID)+"/"+state, about, data)
	if err != nil {
		return err
	}
	return f.Broker.Send(ctx, e)
}
