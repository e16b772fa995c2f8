package broker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/eventing/pkg/apis/feature"
	"knative.dev/pkg/apis"
	"sigs.k8s.io/yaml"
)

// LoadTriggers reads the Triggers in the files and judges them as Knative's webhook would; beyond it, an unknown field is an error,
// and all must be of one Broker. Objects of other groups, which a file may hold too, are left alone.
func LoadTriggers(files ...string) ([]*eventingv1.Trigger, error) {
	var triggers []*eventingv1.Trigger
	err := load(files, "Trigger", func(document []byte) error {
		trigger := &eventingv1.Trigger{}
		if err := read(document, trigger); err != nil {
			return err
		}
		triggers = append(triggers, trigger)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, trigger := range triggers {
		if first := triggers[0]; trigger.Spec.Broker != first.Spec.Broker || trigger.Namespace != first.Namespace {
			return nil, fmt.Errorf("the Triggers %s and %s are of different Brokers", first.Name, trigger.Name)
		}
	}
	return triggers, nil
}

// LoadBroker reads the one Broker in the files, for its delivery.
func LoadBroker(files ...string) (*eventingv1.Broker, error) {
	var broker *eventingv1.Broker
	err := load(files, "Broker", func(document []byte) error {
		if broker != nil {
			return errors.New("there is more than one Broker")
		}
		broker = &eventingv1.Broker{}
		return yaml.UnmarshalStrict(document, broker) // not validated: that wants a channel's configuration, which is the cluster's
	})
	return broker, err
}

func read(document []byte, trigger *eventingv1.Trigger) error {
	if err := yaml.UnmarshalStrict(document, trigger); err != nil {
		return err
	}
	defaults, err := feature.NewFlagsConfigFromMap(nil) // as a cluster has whose config-features says nothing
	if err != nil {
		return err
	}
	ctx := feature.ToContext(context.Background(), defaults)
	trigger.SetDefaults(ctx)
	if err := trigger.Validate(apis.WithinCreate(ctx)); err != nil {
		return fmt.Errorf("cannot use Trigger %s: %w", trigger.Name, err)
	}
	return nil
}

// load calls take for each document of the kind; there must be one.
func load(files []string, kind string, take func(document []byte) error) error {
	found := false
	for _, file := range files {
		documents, err := split(file)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", file, err)
		}
		for _, document := range documents {
			is, err := kindOf(document)
			if err != nil {
				return fmt.Errorf("cannot read %s: %w", file, err)
			}
			if is != kind {
				continue
			}
			found = true
			if err := take(document); err != nil {
				return fmt.Errorf("cannot read %s: %w", file, err)
			}
		}
	}
	if !found {
		return fmt.Errorf("no %s in %q", kind, files)
	}
	return nil
}

// kindOf is the kind of an object of eventing.knative.dev, and empty for others. Of that group, a kind that is not known is an error:
// a misspelt Trigger would be passed over in silence.
func kindOf(document []byte) (string, error) {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(document, &meta); err != nil {
		return "", err
	}
	kind := meta.GroupVersionKind()
	if kind.Group != eventingv1.SchemeGroupVersion.Group {
		return "", nil
	}
	switch kind.Kind {
	case "Trigger", "Broker":
		if kind.Version == eventingv1.SchemeGroupVersion.Version {
			return kind.Kind, nil
		}
	case "EventType", "EventPolicy": // they do not change who gets what
		return kind.Kind, nil
	}
	return "", fmt.Errorf("this broker knows no %s of %s", meta.Kind, meta.APIVersion)
}

func split(file string) ([][]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var documents [][]byte
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
}
