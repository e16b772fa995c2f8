package sweep

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/transport"
)

// Name of the function, and of its ServiceAccount.
const Name = "updraft-sweep"

// Function is the sweep function.
type Function struct {
	Clients *record.Clients
	Broker  transport.Sender
	Now     func() time.Time
	Log     *slog.Logger
	// Patience is how often a due is sent, and how long it is waited before it is sent
	// again, when the Broker does not take it: a sweep is often asked for because the
	// Broker was restarted. Default: once.
	Patience wait.Backoff

	mu sync.Mutex
	// began is when this pod last began a sweep that came to its end.
	began time.Time
}

// clocks is by how much the clocks of two nodes may differ.
const clocks = time.Second

// Handle sweeps, whatever the event is about, unless a sweep that began later than
// what is told has swept already: a restart of the source, or the end of a burst,
// is told several times. One sweep goes on at a time.
func (f *Function) Handle(ctx context.Context, e cloudevents.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if covered(e.Time(), f.began) {
		return nil
	}
	for {
		now := f.Now()
		atOnce, err := f.sweep(ctx, e, now)
		if err != nil {
			return err
		}
		f.began = now
		if atOnce {
			return nil
		}
		// What came after the look and before the Broker took events is lost as well.
	}
}

// Patience that is over within the time that a sweep has, which is a minute.
func Patience() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Steps: 10} // 37 s
}

// covered says that a sweep which began then has seen all that was before told,
// which is zero if the event does not say when it was.
func covered(told, began time.Time) bool {
	return !told.IsZero() && told.Add(clocks).Before(began)
}

// sweep says whether the Broker took all that was sent at the first try.
func (f *Function) sweep(ctx context.Context, e cloudevents.Event, now time.Time) (atOnce bool, err error) {
	w, err := f.world(ctx)
	if err != nil {
		return false, err
	}
	missed, atOnce := Missed(w), true
	for _, ref := range missed {
		id := ref.String() + "/" + strconv.FormatInt(now.UnixMilli(), 10)
		tries, err := f.send(ctx, event.NewDue(Name, id, ref))
		if err != nil {
			return false, err
		}
		atOnce = atOnce && tries == 1
	}
	expired := Expired(w.Updates, now)
	for i := range expired {
		u := &expired[i]
		if err := record.Gone(f.Clients.Pulumi.AutoV1alpha1().Updates(u.Namespace).Delete(ctx, u.Name, record.Only(u))); err != nil {
			return false, fmt.Errorf("cannot delete expired Update %s: %w", u.Name, err)
		}
	}
	if len(missed)+len(expired) > 0 {
		f.Log.InfoContext(ctx, "Swept", "due", len(missed), "expired", len(expired), "because", e.Type())
	}
	return atOnce, nil
}

func (f *Function) send(ctx context.Context, due cloudevents.Event) (tries int, err error) {
	patience := f.Patience
	patience.Steps = max(patience.Steps, 1)
	waited := wait.ExponentialBackoffWithContext(ctx, patience, func(ctx context.Context) (bool, error) {
		tries++
		err = f.Broker.Send(ctx, due)
		return err == nil, nil
	})
	if err == nil {
		err = waited
	}
	return tries, err
}

func (f *Function) world(ctx context.Context) (World, error) {
	var w World
	pulumi, auto := f.Clients.Pulumi.PulumiV1(), f.Clients.Pulumi.AutoV1alpha1()
	// Stacks come first: an object that was made for a Stack which is younger than the
	// list is then looked at for nothing, which is harmless, and none is missed.
	err := record.Pages(func(o metav1.ListOptions) (string, error) {
		list, err := pulumi.Stacks("").List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("cannot list Stacks: %w", err)
		}
		w.Stacks = append(w.Stacks, list.Items...)
		return list.Continue, nil
	}, func(o metav1.ListOptions) (string, error) {
		list, err := pulumi.Programs("").List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("cannot list Programs: %w", err)
		}
		w.Programs = append(w.Programs, list.Items...)
		return list.Continue, nil
	}, func(o metav1.ListOptions) (string, error) {
		list, err := auto.Workspaces("").List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("cannot list Workspaces: %w", err)
		}
		w.Workspaces = append(w.Workspaces, list.Items...)
		return list.Continue, nil
	}, func(o metav1.ListOptions) (string, error) {
		list, err := auto.Updates("").List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("cannot list Updates: %w", err)
		}
		w.Updates = append(w.Updates, list.Items...)
		return list.Continue, nil
	})
	return w, err
}
