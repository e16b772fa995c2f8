package broker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"go.opentelemetry.io/otel/trace"
	kbroker "knative.dev/eventing/pkg/broker"
	"knative.dev/eventing/pkg/kncloudevents"
	"knative.dev/eventing/pkg/utils"
)

// errClosing ends what the broker does not wait for when it closes.
var errClosing = errors.New("the broker is closing")

// delivery is one event on its way to one Trigger, tries and waits included.
//
//	sending ──failed──► waiting ──its time has come──► sending
//	   │                   │
//	   └──done             └──the broker closes: dropped
type delivery struct {
	broker  *Broker
	cancel  context.CancelCauseFunc
	waiting bool // guarded by broker.mu
}

// deliver sends the event until it is accepted or given up, and takes the answer back in if it is an event.
func (b *Broker) deliver(ctx context.Context, s *subscription, m message) {
	ctx, span := b.tracer.Start(ctx, "deliver "+s.name, trace.WithSpanKind(trace.SpanKindProducer))
	defer span.End()
	sending, d := b.track(ctx)
	defer b.forget(d)
	info, err := d.send(sending, s, m)
	if err != nil {
		err = errors.Join(err, context.Cause(sending))
		span.RecordError(err)
		code := 0
		if info != nil {
			code = info.ResponseCode
		}
		b.log.Error("An event was given up", "trigger", s.name, "type", m.event.Type(), "source", m.event.Source(),
			"id", m.event.ID(), "status", code, "error", err)
		return
	}
	b.reply(ctx, m, info)
}

func (d *delivery) send(ctx context.Context, s *subscription, m message) (*kncloudevents.DispatchInfo, error) {
	address, err := s.address(s.subscriber)
	if err != nil {
		return nil, err
	}
	options, err := s.options(inject(ctx, m.header))
	if err != nil {
		return nil, err
	}
	retries := d.retries(s.retries)
	return s.dispatcher.SendEvent(ctx, m.event, address, append(options, kncloudevents.WithRetryConfig(&retries))...)
}

// retries are the Trigger's, except that nothing is tried again once the broker is closing, and that a wait is known as one.
func (d *delivery) retries(of kncloudevents.RetryConfig) kncloudevents.RetryConfig {
	check, backoff := of.CheckRetry, of.Backoff
	of.CheckRetry = func(ctx context.Context, answer *http.Response, err error) (bool, error) {
		refuseStrangeBody(answer)
		again, err := check(ctx, answer, err)
		return again && !d.broker.isClosing(), err
	}
	of.Backoff = func(attempt int, answer *http.Response) time.Duration {
		d.setWaiting(true)
		return backoff(attempt, answer)
	}
	return of
}

// refuseStrangeBody makes a success with a body that is no CloudEvent the failure that Knative's filter makes it: 502.
func refuseStrangeBody(answer *http.Response) {
	if answer == nil || answer.StatusCode/100 != 2 || cehttp.NewMessage(answer.Header, nil).ReadEncoding() != binding.EncodingUnknown {
		return
	}
	body := bufio.NewReader(answer.Body)
	_, err := body.Peek(1)
	answer.Body = readCloser{body, answer.Body}
	if err == nil {
		answer.StatusCode = http.StatusBadGateway
		answer.Status = "502 the answer has a body that is no CloudEvent"
	}
}

type readCloser struct {
	io.Reader
	io.Closer
}

// reply takes an answer that is an event into the broker.
func (b *Broker) reply(ctx context.Context, m message, info *kncloudevents.DispatchInfo) {
	answer := cehttp.NewMessage(info.ResponseHeader, io.NopCloser(bytes.NewReader(info.ResponseBody)))
	if answer.ReadEncoding() == binding.EncodingUnknown {
		return
	}
	event, err := binding.ToEvent(ctx, answer)
	if err == nil {
		err = errors.Join(event.Validate(), kbroker.SetTTL(event.Context, m.ttl))
	}
	if err != nil {
		b.log.Error("A reply is no CloudEvent", "to", m.event.ID(), "error", err)
		return
	}
	if status := b.accept(ctx, *event, utils.PassThroughHeaders(info.ResponseHeader)); status != http.StatusAccepted {
		b.log.Error("A reply was refused", "to", m.event.ID(), "type", event.Type(), "id", event.ID(), "status", status)
	}
}

// track makes the delivery known to Drain.
func (b *Broker) track(ctx context.Context) (context.Context, *delivery) {
	ctx, cancel := context.WithCancelCause(ctx)
	d := &delivery{broker: b, cancel: cancel}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { d.setWaiting(false) }})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending[d] = struct{}{}
	if b.cut {
		d.cancel(errClosing)
	}
	return ctx, d
}

func (b *Broker) forget(d *delivery) {
	d.cancel(nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, d)
}

func (b *Broker) isClosing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closing
}

// setWaiting notes that a wait begins or is over. One that begins while the broker closes is over at once: Drain may have looked
// just before.
func (d *delivery) setWaiting(waiting bool) {
	d.broker.mu.Lock()
	defer d.broker.mu.Unlock()
	d.waiting = waiting
	if waiting && d.broker.closing {
		d.cancel(errClosing)
	}
}
