package sweep

import (
	"context"
	"errors"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/util/wait"
)

var errRefused = errors.New("the Broker answers 500")

// broker refuses as many events, and takes those that come then.
type broker struct{ refuses int }

func (b *broker) Send(context.Context, cloudevents.Event) error {
	if b.refuses--; b.refuses >= 0 {
		return errRefused
	}
	return nil
}

func TestADueIsSentUntilTheBrokerTakesIt(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	three := wait.Backoff{Duration: time.Millisecond, Factor: 1.5, Steps: 3}
	for name, c := range map[string]struct {
		ctx      context.Context //nolint:containedctx // of the case
		patience wait.Backoff
		refuses  int
		tries    int
		fails    error
	}{
		"At once":                    {t.Context(), three, 0, 1, nil},
		"When it is whole again":     {t.Context(), three, 2, 3, nil},
		"It is not within the time":  {t.Context(), three, 3, 3, errRefused},
		"Once, if nothing is said":   {t.Context(), wait.Backoff{}, 1, 1, errRefused},
		"The request's time is over": {over, three, 9, 0, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Function{Broker: &broker{refuses: c.refuses}, Patience: c.patience}
			tries, err := f.send(c.ctx, cloudevents.New())
			if tries != c.tries || !errors.Is(err, c.fails) {
				t.Errorf("%d tries, error %v; want %d, %v", tries, err, c.tries, c.fails)
			}
		})
	}
	total := time.Duration(0)
	for p := Patience(); p.Steps > 1; {
		total += p.Step()
	}
	if total < 30*time.Second || total > 45*time.Second {
		t.Errorf("patience of %s, for what has a minute", total)
	}
}
