package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// Apply applies every object in the files, and in the .yaml and .yml files of folders, on the server's side and in the order in
// which they are found, as `kubectl apply --server-side` does: whoever owned a field before, it is ours now. An unknown field is an
// error, and so is a kind that the API server does not serve: its definition belongs into Options.CRDs.
func (p *Plane) Apply(ctx context.Context, files ...string) error {
	applier, err := newApplier(p)
	if err != nil {
		return err
	}
	paths, err := expand(files)
	if err != nil {
		return err
	}
	for _, path := range paths {
		objects, err := readObjects(path)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", path, err)
		}
		for _, object := range objects {
			if err := applier.apply(ctx, object); err != nil {
				return fmt.Errorf("cannot apply %s %s of %s: %w", object.GetKind(), object.GetName(), path, err)
			}
		}
	}
	return nil
}

type applier struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func newApplier(p *Plane) (*applier, error) {
	client, err := dynamic.NewForConfig(p.Config)
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(p.Config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(served))
	return &applier{client: client, mapper: mapper}, nil
}

func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the API server serves no kind %s in %s: give its CustomResourceDefinition when starting", kind.Kind, kind.GroupVersion())
	}
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		resource = a.client.Resource(mapping.Resource).Namespace(namespace)
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	force := true
	_, err = resource.Patch(ctx, object.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: "updraft", Force: &force, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// expand replaces each folder by its manifests, sorted by name: config/ numbers its files in the order of installation.
func expand(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(entry.Name())) {
				files = append(files, filepath.Join(path, entry.Name()))
			}
		}
	}
	return files, nil
}

// readObjects reads all documents of a file; a List counts as its items.
func readObjects(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		found, err := readDocument(document)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
}

func readDocument(document []byte) ([]*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
		return nil, err
	}
	if len(object.Object) == 0 {
		return nil, nil // only comments
	}
	if object.GetKind() == "" || object.GetAPIVersion() == "" {
		return nil, errors.New("a document without kind or apiVersion is no Kubernetes object")
	}
	if !object.IsList() {
		return []*unstructured.Unstructured{object}, nil
	}
	list, err := object.ToList()
	if err != nil {
		return nil, err
	}
	items := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		items[i] = &list.Items[i]
	}
	return items, nil
}
