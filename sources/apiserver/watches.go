package apiserver

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"knative.dev/eventing/pkg/adapter/apiserver"
)

// watches sees, below the adapter's clients, when each of its watches is open.
//
// An open watch means that nothing is missed if it starts where a list ended. client-go's newer way gets the list through the watch,
// and swallows what comes before the list's end, which nobody outside can see (kube-apiserver 1.34 happens to take the list before
// it answers, so that nothing was ever seen lost; nobody promises it). So its attempt is answered here as by a server that does not
// know the way, and client-go lists first. The switch for that, KUBE_FEATURE_WatchListClient, would do it to the whole process.
type watches struct {
	open chan struct{} // closed when all are open

	mu      sync.Mutex
	awaited map[watch]bool
}

// watch is what tells a watch from the others.
type watch struct {
	path     string
	selector string
}

func newWatches(awaited []watch) *watches {
	w := &watches{open: make(chan struct{}), awaited: map[watch]bool{}}
	for _, each := range awaited {
		w.awaited[each] = true
	}
	if len(w.awaited) == 0 {
		close(w.open)
	}
	return w
}

func (w *watches) opened(which watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.awaited[which] {
		return // not one of ours, or opened again
	}
	delete(w.awaited, which)
	if len(w.awaited) == 0 {
		close(w.open)
	}
}

func (w *watches) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		query := request.URL.Query()
		if query.Get("watch") != "true" {
			return next.RoundTrip(request)
		}
		if query.Has("sendInitialEvents") {
			return refusal(request), nil
		}
		response, err := next.RoundTrip(request)
		if err == nil && response.StatusCode == http.StatusOK {
			w.opened(watch{path: request.URL.Path, selector: query.Get("labelSelector")})
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// refusal is the answer of a server that cannot send a list through a watch.
func refusal(request *http.Request) *http.Response {
	const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,` +
		`"message":"sendInitialEvents is forbidden for watch"}`
	return &http.Response{
		Status: "422 Unprocessable Entity", StatusCode: http.StatusUnprocessableEntity,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       request,
	}
}

// watchesOf lists the watches that the adapter will open, one for each kind and namespace.
func watchesOf(config apiserver.Config, served discovery.DiscoveryInterface) ([]watch, error) {
	var all []watch
	for _, resource := range config.Resources {
		namespaced, err := isNamespaced(resource.GVR, served)
		if err != nil {
			return nil, err
		}
		namespaces := []string{""}
		if namespaced && !config.AllNamespaces {
			namespaces = config.Namespaces
		}
		for _, namespace := range namespaces {
			all = append(all, watch{path: pathOf(resource.GVR, namespace), selector: resource.LabelSelector})
		}
	}
	return all, nil
}

func isNamespaced(of schema.GroupVersionResource, served discovery.DiscoveryInterface) (bool, error) {
	resources, err := served.ServerResourcesForGroupVersion(of.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		resources, err = &metav1.APIResourceList{}, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot ask which resources %s has: %w", of.GroupVersion(), err)
	}
	for _, resource := range resources.APIResources {
		if resource.Name == of.Resource {
			return resource.Namespaced, nil
		}
	}
	return false, fmt.Errorf("the API server serves no %s in %s: its CustomResourceDefinition must be installed first", of.Resource, of.GroupVersion())
}

func pathOf(resource schema.GroupVersionResource, namespace string) string {
	root := path.Join("/apis", resource.Group, resource.Version)
	if resource.Group == "" {
		root = path.Join("/api", resource.Version)
	}
	if namespace != "" {
		root = path.Join(root, "namespaces", namespace)
	}
	return path.Join(root, resource.Resource)
}
