package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/stack"
	"github.com/updraft-dev/updraft/pkg/transport"
)

// pushed hears of a push, and of the end of a burst of them. The first push sets
// an alarm, the others find it there; when it rings it goes, and then each poll
// that asks for this repository and ref is due, once.
func (f *Function) pushed(ctx context.Context, e cloudevents.Event, about event.Ref) error {
	if !event.IsPushName(about.Name) || about.Namespace != f.Alarms.BrokerNamespace {
		return transport.Never(fmt.Errorf("event %q names no push: %s", e.ID(), about))
	}
	if e.Type() == event.TypePush {
		return f.Alarms.Gather(ctx, about, f.Now())
	}
	if err := f.Alarms.Gathered(ctx, about); err != nil {
		return err
	}
	polls, err := f.following(ctx, about.Name)
	if err != nil {
		return err
	}
	var failed []error
	for _, poll := range polls {
		id := poll.String() + "/" + strconv.FormatInt(f.Now().UnixMilli(), 10)
		failed = append(failed, f.Broker.Send(ctx, event.NewDue(Name, id, poll)))
	}
	f.Log.InfoContext(ctx, "Push looked into", "push", about.Name, "polls", len(polls))
	return errors.Join(failed...)
}

// following are the polls, of all namespaces, that ask for what a push is of.
func (f *Function) following(ctx context.Context, push string) ([]event.Ref, error) {
	var polls []event.Ref
	err := record.Pages(func(o metav1.ListOptions) (string, error) {
		list, err := f.Clients.Pulumi.PulumiV1().Stacks(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("cannot list the Stacks that a push may concern: %w", err)
		}
		for i := range list.Items {
			poll, needed := stack.PollOf(&list.Items[i])
			if !needed || !slices.Contains(event.PushNames(poll.Repository, poll.Ref), push) {
				continue
			}
			ref := event.Ref{Kind: event.KindPoll, Namespace: poll.Namespace, Name: poll.Name()}
			if !slices.Contains(polls, ref) {
				polls = append(polls, ref)
			}
		}
		return list.Continue, nil
	})
	return polls, err
}
