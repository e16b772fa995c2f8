package broker

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/client"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	kbroker "knative.dev/eventing/pkg/broker"
	"knative.dev/eventing/pkg/eventingtls"
	"knative.dev/eventing/pkg/kncloudevents"
	"knative.dev/eventing/pkg/utils"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// maxReplies is how often a reply to a reply may go round, as Knative sets it.
const maxReplies = 255

// Options say who gets which event and how.
type Options struct {
	// Triggers of one Broker, as LoadTriggers reads them.
	Triggers []*eventingv1.Trigger
	// Delivery is the Broker's own (spec.delivery), for Triggers that have none. Nil means one try; a cluster puts the default of
	// its config-br-defaults there, so a Broker had better say what it wants.
	Delivery *eventingduckv1.DeliverySpec
	// Resolve says where a reference of a Trigger is served. It is asked once for each by New, where an error is final, and again
	// for each delivery, since what it names may move.
	Resolve func(ref duckv1.KReference) (*apis.URL, error)
	// Tracing starts the spans. Nil means a provider that exports nothing, whose only use is a traceparent.
	Tracing trace.TracerProvider
	// Log takes each event that is given up. The default discards.
	Log *slog.Logger
	// Tamper says, in tests, how many copies of an event reach a Trigger that it passes: 0 loses it, 2 doubles it.
	Tamper func(trigger string, event cloudevents.Event) int
}

// Broker is an http.Handler that takes events by POST on any path.
type Broker struct {
	subscriptions []*subscription
	defaulter     client.EventDefaulter
	tracer        trace.Tracer
	tamper        func(string, cloudevents.Event) int
	log           *slog.Logger

	mu      sync.Mutex
	closing bool // nothing new, and no wait
	cut     bool // nothing at all
	pending map[*delivery]struct{}
	running sync.WaitGroup // each event that is being spread, and each delivery
}

// New checks that every Trigger can be served.
func New(options Options) (*Broker, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Tracing == nil {
		options.Tracing = sdktrace.NewTracerProvider()
	}
	b := &Broker{
		defaulter: kbroker.TTLDefaulter(zap.NewNop(), maxReplies),
		tracer:    options.Tracing.Tracer("github.com/updraft-dev/updraft/pkg/local/broker"),
		tamper:    options.Tamper,
		log:       options.Log,
		pending:   map[*delivery]struct{}{},
	}
	dispatcher := kncloudevents.NewDispatcher(eventingtls.ClientConfig{}, nil, kncloudevents.WithTraceProvider(options.Tracing))
	for _, trigger := range options.Triggers {
		s, err := subscribe(trigger, options, dispatcher)
		if err != nil {
			return nil, err
		}
		b.subscriptions = append(b.subscriptions, s)
	}
	return b, nil
}

// ServeHTTP takes one event, in binary or structured mode.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	message := cehttp.NewMessageFromHttpRequest(r)
	defer func() { _ = message.Finish(nil) }() // an HTTP message has nobody to tell
	event, err := binding.ToEvent(r.Context(), message)
	if err == nil {
		err = event.Validate()
	}
	if err != nil {
		http.Error(w, "not a CloudEvent: "+err.Error(), http.StatusBadRequest)
		return
	}
	ctx := extract(context.WithoutCancel(r.Context()), r.Header) // the sender does not wait, so its going away must end nothing
	w.WriteHeader(b.accept(ctx, *event, utils.PassThroughHeaders(r.Header)))
}

// accept hands the event to everybody whom it concerns, and says what the sender is told.
func (b *Broker) accept(ctx context.Context, event cloudevents.Event, header http.Header) int {
	event = b.defaulter(ctx, event)
	ttl, err := kbroker.GetTTL(event.Context)
	if err != nil || ttl <= 0 {
		return http.StatusBadRequest
	}
	if err := kbroker.DeleteTTL(event.Context); err != nil {
		return http.StatusBadRequest
	}
	if !b.enter() {
		return http.StatusServiceUnavailable
	}
	go func() {
		defer b.running.Done()
		ctx, span := b.tracer.Start(ctx, "broker "+event.Type(), trace.WithSpanKind(trace.SpanKindConsumer))
		defer span.End() // here, so that all who get the event are in one trace
		b.spread(ctx, message{event: event, ttl: ttl, header: header})
	}()
	return http.StatusAccepted
}

// message is an event on its way, without the mark that counts its replies.
type message struct {
	event  cloudevents.Event
	ttl    int32
	header http.Header
}

// spread starts one delivery for each Trigger that the event passes.
func (b *Broker) spread(ctx context.Context, m message) {
	for _, s := range b.subscriptions {
		if !s.wants(ctx, m.event) {
			continue
		}
		copies := 1
		if b.tamper != nil {
			copies = b.tamper(s.name, m.event.Clone())
		}
		for range copies {
			b.running.Go(func() { b.deliver(ctx, s, m) })
		}
	}
}

// enter counts one more event in, unless the broker is closing.
func (b *Broker) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		return false
	}
	b.running.Add(1)
	return true
}

// Drain refuses new events, drops those that wait for their next try, and waits for those that a subscriber is looking at. When ctx
// ends first, these are cut off, and its error is returned.
func (b *Broker) Drain(ctx context.Context) error {
	b.close()
	done := make(chan struct{})
	go func() {
		b.running.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("some deliveries were cut off: %w", ctx.Err())
		b.cutOff()
		<-done
	}
	return err
}

// close lets nothing in any more, and nothing wait.
func (b *Broker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closing = true
	for d := range b.pending {
		if d.waiting {
			d.cancel(errClosing)
		}
	}
}

// cutOff ends everything.
func (b *Broker) cutOff() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cut = true
	for d := range b.pending {
		d.cancel(errClosing)
	}
}
