package broker

import (
	"context"
	"fmt"
	"net/http"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.uber.org/zap"
	eventingapis "knative.dev/eventing/pkg/apis"
	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/eventing/pkg/eventfilter"
	"knative.dev/eventing/pkg/eventfilter/attributes"
	"knative.dev/eventing/pkg/eventfilter/subscriptionsapi"
	"knative.dev/eventing/pkg/kncloudevents"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
	"knative.dev/pkg/logging"
)

// subscription is a Trigger, ready to be asked and served.
type subscription struct {
	name       string
	namespace  string
	filter     eventfilter.Filter
	subscriber duckv1.Destination
	delivery   eventingduckv1.DeliverySpec
	retries    kncloudevents.RetryConfig
	resolve    func(duckv1.KReference) (*apis.URL, error)
	dispatcher *kncloudevents.Dispatcher
}

func subscribe(trigger *eventingv1.Trigger, options Options, dispatcher *kncloudevents.Dispatcher) (*subscription, error) {
	delivery := trigger.Spec.Delivery
	if delivery == nil {
		delivery = options.Delivery
	}
	if delivery == nil {
		delivery = &eventingduckv1.DeliverySpec{}
	}
	retries, err := kncloudevents.RetryConfigFromDeliverySpec(*delivery)
	if err != nil {
		return nil, fmt.Errorf("cannot read the delivery of Trigger %s: %w", trigger.Name, err)
	}
	s := &subscription{
		name: trigger.Name, namespace: trigger.Namespace, subscriber: trigger.Spec.Subscriber,
		delivery: *delivery, retries: retries, resolve: options.Resolve, dispatcher: dispatcher,
	}
	if _, err := s.options(nil); err != nil {
		return nil, err
	}
	if _, err := s.address(s.subscriber); err != nil {
		return nil, err
	}
	s.filter = filterOf(trigger)
	return s, nil
}

// filterOf chooses as Knative's filter handler does, which keeps the choice to itself: the new filters, else the old, else none.
//
// Nobody calls the filters' Cleanup. It would end a goroutine for each `any` and `all`, in which Knative moves the filter that decides
// most to the front, but it does not wait for a move under way, and may then close one twice and panic. The same goroutine is why the
// race detector objects to such a filter: it counts without the lock, which changes no answer.
func filterOf(trigger *eventingv1.Trigger) eventfilter.Filter {
	switch {
	case len(trigger.Spec.Filters) > 0:
		return subscriptionsapi.CreateSubscriptionsAPIFilters(zap.NewNop(), trigger.Spec.Filters)
	case trigger.Spec.Filter != nil:
		return attributes.NewAttributesFilter(trigger.Spec.Filter.Attributes)
	default:
		return subscriptionsapi.NewNoFilter()
	}
}

func (s *subscription) wants(ctx context.Context, event cloudevents.Event) bool {
	ctx = logging.WithLogger(ctx, zap.NewNop().Sugar()) // the filters describe every event to it
	return s.filter.Filter(ctx, event) != eventfilter.FailFilter
}

// address finds where a destination is served.
func (s *subscription) address(to duckv1.Destination) (duckv1.Addressable, error) {
	url := to.URI
	if to.Ref != nil {
		ref := *to.Ref
		if ref.Namespace == "" {
			ref.Namespace = s.namespace
		}
		if s.resolve == nil {
			return duckv1.Addressable{}, fmt.Errorf("cannot resolve %s %s of Trigger %s: nobody resolves references", ref.Kind, ref.Name, s.name)
		}
		base, err := s.resolve(ref)
		if err != nil {
			return duckv1.Addressable{}, fmt.Errorf("cannot resolve %s %s of Trigger %s: %w", ref.Kind, ref.Name, s.name, err)
		}
		url = base
		if to.URI != nil {
			url = base.ResolveReference(to.URI)
		}
	}
	if url == nil {
		return duckv1.Addressable{}, fmt.Errorf("a destination of Trigger %s has no address", s.name)
	}
	return duckv1.Addressable{URL: url, CACerts: to.CACerts, Audience: to.Audience}, nil
}

// options are how the dispatcher is to send with these headers.
func (s *subscription) options(header http.Header) ([]kncloudevents.SendOption, error) {
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(eventingapis.KnNamespaceHeader, s.namespace)
	options := []kncloudevents.SendOption{kncloudevents.WithHeader(header)}
	if s.delivery.Format != nil {
		options = append(options, kncloudevents.WithEventFormat(s.delivery.Format))
	}
	if s.delivery.DeadLetterSink != nil {
		sink, err := s.address(*s.delivery.DeadLetterSink)
		if err != nil {
			return nil, err
		}
		options = append(options, kncloudevents.WithDeadLetterSink(&sink))
	}
	return options, nil
}
