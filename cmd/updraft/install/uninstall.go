package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ownKinds are our custom resources, as kubectl names them.
var ownKinds = []schema.GroupVersionResource{
	resource("pulumi.com/v1", "stacks"), resource("pulumi.com/v1", "programs"),
	resource("auto.pulumi.com/v1alpha1", "workspaces"), resource("auto.pulumi.com/v1alpha1", "updates"),
}

// listed is how many objects a refusal names.
const listed = 20

// errInUse says that there are objects that would go with their CRD.
var errInUse = errors.New("there are custom resources of ours")

// uninstall takes away all that install applied, in the order of parts.
func (c *cluster) uninstall(ctx context.Context, keep bool) error {
	if !keep {
		if err := c.refuseInUse(ctx, ""); err != nil {
			return err
		}
	}
	for _, group := range parts {
		if err := c.remove(ctx, group...); err != nil {
			return err
		}
	}
	if keep {
		c.screen.say("CRDs kept, with all Stacks, Programs, Workspaces and Updates; their alarms (PingSources that they own) ring at nobody until Updraft is installed again")
		if err := c.refuseInUse(ctx, systemNamespace); errors.Is(err, errInUse) {
			c.screen.say("Namespace %s kept: it holds custom resources of ours", systemNamespace)
			return nil
		} else if err != nil {
			return err
		}
	} else if err := c.removeCRDs(ctx); err != nil {
		return err
	}
	if err := c.remove(ctx, namespaces); err != nil {
		return err
	}
	c.screen.say("Updraft is gone")
	return nil
}

// remove deletes our objects of these kinds and waits until they are gone.
func (c *cluster) remove(ctx context.Context, group ...part) error {
	for _, p := range group {
		began := time.Now()
		mine, err := c.ours(ctx, p)
		if err != nil {
			return err
		}
		if len(mine) == 0 {
			continue
		}
		var run []*unstructured.Unstructured
		for i := range mine {
			if err := c.delete(ctx, p, &mine[i]); err != nil {
				return err
			}
			run = append(run, &mine[i])
		}
		if err := c.until(ctx, func(ctx context.Context) ([]string, error) { return c.remaining(ctx, p, run) }); err != nil {
			return fmt.Errorf("%s did not go: %w", list(run), err)
		}
		c.screen.say("%s gone after %.1f s", list(run), time.Since(began).Seconds())
	}
	return nil
}

// remaining are those of a run that are still there.
func (c *cluster) remaining(ctx context.Context, p part, run []*unstructured.Unstructured) ([]string, error) {
	var left []string
	for _, o := range run {
		now, err := c.dynamic.Resource(p.GroupVersionResource).Namespace(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("cannot get %s: %w", title(o), err)
		case now.GetUID() == o.GetUID():
			left = append(left, strings.TrimRight(title(o)+" waits for "+strings.Join(now.GetFinalizers(), ", "), ", "))
		}
	}
	return left, nil
}

// removeCRDs deletes our CRDs one by one, each only if no object of any is there
// at that moment, and none while another operator has them in use.
func (c *cluster) removeCRDs(ctx context.Context) error {
	operators, err := c.operators(ctx)
	if err != nil {
		return err
	}
	if len(operators) > 0 {
		c.screen.say("CRDs kept: %s is installed and has them too", operators[0].title)
		return nil
	}
	mine, err := c.ours(ctx, crds)
	if err != nil {
		return err
	}
	for i := range mine {
		o := &mine[i]
		if err := c.refuseInUse(ctx, ""); err != nil {
			return err
		}
		if err := c.delete(ctx, crds, o); err != nil {
			return err
		}
		run := []*unstructured.Unstructured{o}
		if err := c.until(ctx, func(ctx context.Context) ([]string, error) { return c.remaining(ctx, crds, run) }); err != nil {
			return fmt.Errorf("%s did not go: %w", title(o), err)
		}
		c.screen.say("%s gone", title(o))
	}
	return nil
}

// refuseInUse lists what there is of our kinds, in one namespace or in all.
func (c *cluster) refuseInUse(ctx context.Context, namespace string) error {
	var there []string
	for _, kind := range ownKinds {
		found, err := c.dynamic.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // the CRD is gone
		}
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", kind.Resource, err)
		}
		for i := range found.Items {
			there = append(there, fmt.Sprintf("  %s %s/%s", found.Items[i].GetKind(), found.Items[i].GetNamespace(), found.Items[i].GetName()))
		}
	}
	if len(there) == 0 {
		return nil
	}
	more := ""
	if len(there) > listed {
		there, more = there[:listed], fmt.Sprintf("\n  and %d more", len(there)-listed)
	}
	return fmt.Errorf("%w: delete them first (Stacks before Programs), or keep them with --keep (make: KEEP=1)\n%s%s", errInUse, strings.Join(there, "\n"), more)
}
