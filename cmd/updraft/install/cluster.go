package install

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const (
	// manager is who applied a field, for the API server.
	manager = "updraft"
	// partOf is the label of all that belongs to an installation.
	partOf = "app.kubernetes.io/part-of"
	// look is the time between two looks at what is waited for.
	look = 250 * time.Millisecond
)

// cluster is where something is looked at, applied and deleted.
type cluster struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	screen  *screen
	timeout time.Duration
}

func newCluster(config *rest.Config, s *screen, timeout time.Duration) (*cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS, config.Burst = "updraft", 50, 100
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of the cluster: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of the cluster: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	return &cluster{client: client, dynamic: objects, mapper: mapper, screen: s, timeout: timeout}, nil
}

// resource is where objects of this one's kind and namespace are.
func (c *cluster) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster has no kind %s in %s", kind.Kind, kind.GroupVersion())
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find out what the cluster serves: %w", err)
	}
	resource := c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(o.GetNamespace()), nil
	}
	return resource, nil
}

// apply makes an object what its manifest says, whoever owned a field before. A
// field that the manifest does not have is left alone.
func (c *cluster) apply(ctx context.Context, o *unstructured.Unstructured) error {
	resource, err := c.resource(o)
	if err != nil {
		return fmt.Errorf("cannot apply %s: %w", title(o), err)
	}
	body, err := o.MarshalJSON()
	if err != nil {
		return fmt.Errorf("cannot apply %s: %w", title(o), err)
	}
	force := true
	_, err = resource.Patch(ctx, o.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: manager, Force: &force, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return fmt.Errorf("cannot apply %s: %w", title(o), err)
	}
	return nil
}

// until asks until the answer is that nothing is left to wait for; if that takes
// too long, what was left is the error.
func (c *cluster) until(ctx context.Context, ask func(context.Context) (left []string, err error)) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for {
		left, err := ask(ctx)
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("not within %s: %s", c.timeout, strings.Join(left, "; "))
		case <-time.After(look):
		}
	}
}

// screen tells a person what happens, with the seconds since the start.
type screen struct {
	out   io.Writer
	began time.Time
}

func newScreen(out io.Writer) *screen { return &screen{out: out, began: time.Now()} }

func (s *screen) say(format string, arguments ...any) {
	line := fmt.Sprintf(format, arguments...)
	_, _ = fmt.Fprintf(s.out, "%6.1f s  %s\n", time.Since(s.began).Seconds(), line) // a screen that is gone is no reason to end
}

func (s *screen) print(format string, arguments ...any) {
	_, _ = fmt.Fprintf(s.out, format+"\n", arguments...)
}
