package transport

import (
	"context"
	"fmt"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/updraft-dev/updraft/pkg/observe"
)

// Sender sends an event and says whether it was accepted.
type Sender interface {
	Send(ctx context.Context, e event.Event) error
}

type httpSender struct {
	client cloudevents.Client
	target string
}

// NewSender sends events to a URL, the Broker's, in binary mode.
func NewSender(target string) (Sender, error) {
	client, err := cloudevents.NewClientHTTP(cloudevents.WithTarget(target))
	if err != nil {
		return nil, fmt.Errorf("cannot make a sender to %s: %w", target, err)
	}
	return &httpSender{client: client, target: target}, nil
}

// Send fails unless the target accepted the event.
func (s *httpSender) Send(ctx context.Context, e event.Event) error {
	ctx, done := observe.Sending(ctx, &e)
	result := s.client.Send(ctx, e)
	done(cloudevents.IsACK(result))
	if !cloudevents.IsACK(result) {
		return fmt.Errorf("cannot send %s about %s to %s: %w", e.Type(), e.Subject(), s.target, result)
	}
	return nil
}
