package event

import (
	"fmt"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Ref names the object that an event is about.
type Ref struct {
	Kind      string
	Namespace string
	Name      string
}

// String is kind namespace/name.
func (r Ref) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// NewDue makes an event that asks for a look at an object. from is the function
// or source that asks, id identifies the event.
func NewDue(from, id string, about Ref) cloudevents.Event {
	return newEvent(TypeDue, from, id, about)
}

// New makes an event of the given type about an object, with data as JSON; nil
// is no data.
func New(eventType, from, id string, about Ref, data any) (cloudevents.Event, error) {
	e := newEvent(eventType, from, id, about)
	if data == nil {
		return e, nil
	}
	if err := e.SetData(cloudevents.ApplicationJSON, data); err != nil {
		return e, fmt.Errorf("cannot encode the data of %s: %w", eventType, err)
	}
	return e, nil
}

func newEvent(eventType, from, id string, about Ref) cloudevents.Event {
	e := cloudevents.New()
	e.SetType(eventType)
	e.SetSource("/updraft/" + from)
	e.SetID(id)
	e.SetSubject(strings.ToLower(about.Kind) + "/" + about.Namespace + "/" + about.Name)
	e.SetExtension("kind", about.Kind)
	e.SetExtension("namespace", about.Namespace)
	e.SetExtension("name", about.Name)
	return e
}

// About reads from an event which object to look at. It fails for an event that
// names none, or whose names Kubernetes would not allow.
func About(e cloudevents.Event) (Ref, error) {
	ref := Ref{Kind: extension(e, "kind"), Namespace: extension(e, "namespace"), Name: extension(e, "name")}
	if ref.Kind == "" || ref.Name == "" {
		return ref, fmt.Errorf("event %q of type %s names no object: its extensions kind and name are needed", e.ID(), e.Type())
	}
	if problems := validation.IsDNS1123Label(ref.Namespace); len(problems) > 0 {
		return ref, fmt.Errorf("event %q: namespace %q is not valid: %s", e.ID(), ref.Namespace, strings.Join(problems, ", "))
	}
	if problems := validation.IsDNS1123Subdomain(ref.Name); len(problems) > 0 {
		return ref, fmt.Errorf("event %q: name %q is not valid: %s", e.ID(), ref.Name, strings.Join(problems, ", "))
	}
	return ref, nil
}

func extension(e cloudevents.Event, name string) string {
	s, _ := e.Extensions()[name].(string)
	return s
}
