package record

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/updraft-dev/updraft/pkg/event"
)

// annotationDue is on an alarm: the time that it was set for, RFC 3339.
const annotationDue = "updraft.dev/due"

var pingSources = schema.GroupVersionResource{Group: "sources.knative.dev", Version: "v1", Resource: "pingsources"}

// Alarms are PingSources that ask for a look at an object at a given time.
type Alarms struct {
	// Client with the right to write PingSources.
	Client dynamic.Interface
	// BrokerNamespace and BrokerName are the Broker that alarms ring at.
	BrokerNamespace string
	BrokerName      string
}

// alarmName is the name of an object's one alarm. No Stack's is an Update's,
// whatever they are called.
func alarmName(about event.Ref) string {
	if about.Kind == event.KindUpdate {
		return "updraft-update-" + about.Name
	}
	return "updraft-stack-" + about.Name
}

// schedule of an alarm, as a cron line with seconds: the due second rounded up
// plus one, since a PingSource may ring up to a second early. One that missed
// its second would come again in a year, so it repeats until it is deleted: each
// minute if it is due within the hour, else each hour.
func schedule(due, now time.Time) string {
	at := due.UTC().Add(time.Second - time.Nanosecond).Truncate(time.Second).Add(time.Second)
	if at.Sub(now) < time.Hour {
		return fmt.Sprintf("%d * * * * *", at.Second())
	}
	return fmt.Sprintf("%d %d * * * *", at.Second(), at.Minute())
}

// Set makes the alarm of an object ring at a time, and not at another. An alarm
// that is set for that time already is left as it is. In a namespace that is being
// deleted there is none: the sweep looks there.
func (a *Alarms) Set(ctx context.Context, owner metav1.Object, apiVersion string, about event.Ref, due, now time.Time) error {
	client := a.Client.Resource(pingSources).Namespace(about.Namespace)
	wanted := a.pingSource(owner, apiVersion, about, due, now)
	existing, err := client.Get(ctx, wanted.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, wanted, metav1.CreateOptions{})
		err = Made(err)
	case err == nil && sameAlarm(existing, wanted):
		return nil
	case err == nil:
		wanted.SetResourceVersion(existing.GetResourceVersion())
		_, err = client.Update(ctx, wanted, metav1.UpdateOptions{})
	}
	if err != nil && !Closed(err) {
		return fmt.Errorf("cannot set the alarm of %s: %w", about, err)
	}
	return nil
}

func sameAlarm(a, b *unstructured.Unstructured) bool {
	return a.GetAnnotations()[annotationDue] == b.GetAnnotations()[annotationDue] &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
}

// Clear deletes the alarm of an object, if it has one.
func (a *Alarms) Clear(ctx context.Context, about event.Ref) error {
	client := a.Client.Resource(pingSources).Namespace(about.Namespace)
	existing, err := Found(client.Get(ctx, alarmName(about), metav1.GetOptions{}))
	if err == nil && existing != nil {
		err = Gone(client.Delete(ctx, existing.GetName(), Only(existing)))
	}
	if err != nil {
		return fmt.Errorf("cannot clear the alarm of %s: %w", about, err)
	}
	return nil
}

func (a *Alarms) pingSource(owner metav1.Object, apiVersion string, about event.Ref, due, now time.Time) *unstructured.Unstructured {
	source := a.ring(about, schedule(due, now), map[string]any{annotationDue: due.UTC().Format(time.RFC3339Nano)}, []any{map[string]any{
		"apiVersion": apiVersion, "kind": about.Kind,
		"name": owner.GetName(), "uid": string(owner.GetUID()),
	}})
	source.SetName(alarmName(about))
	return source
}

// ring is a PingSource of the name of what it is about, which asks the Broker for
// a look at it.
func (a *Alarms) ring(about event.Ref, schedule string, annotations map[string]any, owners []any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sources.knative.dev/v1",
		"kind":       "PingSource",
		"metadata": map[string]any{
			"name": about.Name, "namespace": about.Namespace,
			"annotations": annotations, "ownerReferences": owners,
		},
		"spec": map[string]any{
			"schedule": schedule,
			"sink": map[string]any{"ref": map[string]any{
				"apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
				"name": a.BrokerName, "namespace": a.BrokerNamespace,
			}},
			"ceOverrides": map[string]any{"extensions": map[string]any{
				"kind": about.Kind, "namespace": about.Namespace, "name": about.Name,
			}},
		},
	}}
}
