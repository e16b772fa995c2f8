package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/record"
)

// sent keeps what is sent.
type sent struct {
	events []cloudevents.Event
	err    error
}

func (s *sent) Send(_ context.Context, e cloudevents.Event) error {
	s.events = append(s.events, e)
	return s.err
}

func TestAfterABurstTheLastLookIsASweep(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		stacks, times int
		want          int
	}{
		"A pod that did nothing":           {0, 0, 0},
		"One Stack many times is no burst": {1, 100, 0},
		"Few Stacks are no burst":          {crowd - 1, 3, 0},
		"Many Stacks are":                  {crowd, 1, 1},
		"More still ask once":              {5 * crowd, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			broker := &sent{err: errors.New("a refusal is logged, and no more")}
			f := &Function{Broker: broker, Alarms: &record.Alarms{BrokerNamespace: "updraft-system"}, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
			for range c.times {
				for i := range c.stacks {
					f.seen.add(event.Ref{Kind: event.KindStack, Namespace: "team", Name: fmt.Sprint("app-", i)})
				}
			}
			f.Leave(t.Context())
			if len(broker.events) != c.want {
				t.Fatalf("sent %v", broker.events)
			}
			for _, e := range broker.events {
				about, err := event.About(e)
				if err != nil || about.Kind != event.KindSweep || e.Type() != event.TypeDue || !e.Time().Equal(now) {
					t.Errorf("sent %v (%v)", e, err)
				}
			}
		})
	}
}
