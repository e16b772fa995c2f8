package install

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// systemNamespace is where Updraft's own objects are.
const systemNamespace = "updraft-system"

// readManifests reads all objects, in their order, and refuses what is no
// installation of Updraft that could run.
func readManifests(in io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(in)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the manifests: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("cannot read the manifests: %w", err)
		}
		if len(object.Object) == 0 {
			continue // only comments
		}
		if object.GetKind() == "" || object.GetName() == "" {
			return nil, errors.New("the manifests have a document that is no Kubernetes object")
		}
		objects = append(objects, object)
	}
	for _, object := range objects {
		if object.GetKind() == "Namespace" && object.GetName() == systemNamespace {
			return objects, nil
		}
	}
	return nil, fmt.Errorf("the manifests are no installation of Updraft: they have no namespace %s", systemNamespace)
}

// resolved refuses images that nobody could pull: config itself names each by its
// source.
func resolved(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		document, err := object.MarshalJSON()
		if err != nil {
			return fmt.Errorf("cannot read the manifests: %w", err)
		}
		if strings.Contains(string(document), "ko://") {
			return fmt.Errorf("%s names an image by its source: use release/updraft.yaml, or make install", title(object))
		}
	}
	return nil
}

// title of an object, for a person.
func title(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }

// runs of objects of one kind, in the order that they have.
func runs(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	var all [][]*unstructured.Unstructured
	for i, object := range objects {
		if i == 0 || object.GroupVersionKind() != objects[i-1].GroupVersionKind() {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], object)
	}
	return all
}

// list says what a run of objects is: "Trigger updraft-stack, updraft-update".
func list(objects []*unstructured.Unstructured) string {
	names := make([]string, len(objects))
	for i, object := range objects {
		names[i] = object.GetName()
	}
	return objects[0].GetKind() + " " + strings.Join(names, ", ")
}
