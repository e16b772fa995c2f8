package stack

import (
	"context"
	"strconv"
	"sync"

	"github.com/updraft-dev/updraft/pkg/event"
)

// crowd is how many different Stacks a pod has looked at when there was so much to
// do that an event may have been lost.
const crowd = 10

// seen are the Stacks that this pod has looked at, as far as they count.
type seen struct {
	mu     sync.Mutex
	stacks map[event.Ref]bool
}

func (s *seen) add(about event.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stacks == nil {
		s.stacks = map[event.Ref]bool{}
	}
	if len(s.stacks) < crowd {
		s.stacks[about] = true
	}
}

func (s *seen) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.stacks) >= crowd
}

// Leave is for when this pod is told to stop, which Knative does once nothing has
// happened for the autoscaler's window. If there was much to do it asks for a sweep:
// a Broker that holds events in memory loses them when it is restarted, which a
// burst can bring about, and the source drops what such a Broker refuses. The next
// sweep on time would come only after up to a quarter of an hour.
func (f *Function) Leave(ctx context.Context) {
	if !f.seen.crowded() {
		return
	}
	about := event.Ref{Kind: event.KindSweep, Namespace: f.Alarms.BrokerNamespace, Name: "after-a-burst"}
	id := about.Name + "/" + strconv.FormatInt(f.Now().UnixMilli(), 10)
	due := event.NewDue(Name, id, about)
	due.SetTime(f.Now())
	if err := f.Broker.Send(ctx, due); err != nil {
		f.Log.Warn("Cannot ask for a sweep after a burst; the next one on time finds what was lost", "error", err.Error())
		return
	}
	f.Log.Info("Asked for a sweep after a burst")
}
