package timer

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	"knative.dev/eventing/pkg/adapter/mtping"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// schedule keeps the cron in step with the objects. The informer calls it from one goroutine.
type schedule struct {
	runner  mtping.CronJobRunner
	entries map[cache.ObjectName]cron.EntryID
	sink    *apis.URL
	log     *slog.Logger
}

func (s *schedule) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { s.set(object.(*sourcesv1.PingSource)) },
		UpdateFunc: func(before, after any) {
			// An entry made anew forgets a ring that is due in this very moment, so it is not done for a label.
			if old, source := before.(*sourcesv1.PingSource), after.(*sourcesv1.PingSource); old.UID != source.UID || !equality.Semantic.DeepEqual(old.Spec, source.Spec) {
				s.set(source)
			}
		},
		DeleteFunc: func(object any) {
			name, err := cache.DeletionHandlingObjectToName(object)
			if err != nil {
				s.log.Error("A PingSource that is gone cannot be told from the others", "error", err)
				return
			}
			s.remove(name)
		},
	}
}

// set makes the object's entry what the object says. One that is invalid has none, whatever it had before.
func (s *schedule) set(object *sourcesv1.PingSource) {
	name := cache.MetaObjectToName(object)
	s.remove(name)
	source, err := s.prepare(object)
	if err != nil {
		s.log.Error("A PingSource is invalid and does not ring", "pingsource", name.String(), "error", err)
		return
	}
	s.entries[name] = s.runner.AddSchedule(source)
}

func (s *schedule) remove(name cache.ObjectName) {
	if id, ok := s.entries[name]; ok {
		s.runner.RemoveSchedule(id)
		delete(s.entries, name)
	}
}

// prepare does what a cluster's webhook and controller would have done: defaults, validation, and the address of the sink. It must:
// to the cron, a schedule that it cannot read and an address that is missing are no errors.
func (s *schedule) prepare(object *sourcesv1.PingSource) (*sourcesv1.PingSource, error) {
	source := object.DeepCopy()
	ctx := context.Background()
	source.SetDefaults(ctx)
	if err := source.Validate(ctx); err != nil {
		return nil, err
	}
	sink, err := s.address(source.Spec.Sink)
	source.Status.SinkURI = sink
	return source, err
}

func (s *schedule) address(sink duckv1.Destination) (*apis.URL, error) {
	switch {
	case sink.Ref == nil:
		return sink.URI, nil
	case sink.Ref.Kind == "Broker":
		return s.sink, nil
	default:
		return nil, fmt.Errorf("its sink is %s %s, and here only a Broker or a URI has an address", sink.Ref.Kind, sink.Ref.Name)
	}
}
