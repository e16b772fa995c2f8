package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// checkRights looks whether the caller may do what an installation of these
// objects does: write each kind, and give away the rights of the functions,
// which takes those rights or the right to escalate.
func (c *cluster) checkRights(ctx context.Context, f *findings, objects []*unstructured.Unstructured) {
	asked := &rights{ctx: ctx, c: c, f: f, asked: map[authorizationv1.ResourceAttributes]bool{}}
	for _, o := range objects {
		kind := o.GroupVersionKind()
		mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			continue // that the kind is missing is said already
		}
		if err != nil {
			f.problem("cannot find out what the cluster serves: %v", err)
			return
		}
		for _, verb := range []string{"get", "list", "create", "patch", "delete"} {
			asked.need(verb, mapping.Resource.Group, mapping.Resource.Resource, o.GetNamespace())
		}
	}
	for _, o := range objects {
		if o.GetKind() == "ClusterRole" {
			asked.mayGive(o)
		}
	}
	if len(asked.missing) > 0 {
		slices.Sort(asked.missing)
		f.problem("you may not %s: ask for the role cluster-admin", strings.Join(slices.Compact(asked.missing), ", "))
	}
}

// rights asks each question once.
type rights struct {
	ctx     context.Context //nolint:containedctx // of one check
	c       *cluster
	f       *findings
	asked   map[authorizationv1.ResourceAttributes]bool
	missing []string
}

func (r *rights) need(verb, group, resource, namespace string) {
	if !r.may(verb, group, resource, namespace) {
		name := strings.TrimSuffix(resource+"."+group, ".")
		r.missing = append(r.missing, strings.TrimSpace(fmt.Sprintf("%s %s", verb, name)))
	}
}

func (r *rights) may(verb, group, resource, namespace string) bool {
	resource, subresource, _ := strings.Cut(resource, "/")
	question := authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace}
	if answer, known := r.asked[question]; known {
		return answer
	}
	review, err := r.c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(r.ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &question},
	}, metav1.CreateOptions{})
	if err != nil {
		r.f.problem("cannot find out what you may do: %v", err)
	}
	r.asked[question] = err == nil && review.Status.Allowed
	return r.asked[question]
}

// mayGive looks whether the caller may give the rights of a role away.
func (r *rights) mayGive(role *unstructured.Unstructured) {
	if r.may("escalate", rbacv1.GroupName, "clusterroles", "") && r.may("bind", rbacv1.GroupName, "clusterroles", "") {
		return
	}
	var typed rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &typed); err != nil {
		r.f.problem("cannot read ClusterRole %s: %v", role.GetName(), err)
		return
	}
	for _, rule := range typed.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					r.need(verb, group, resource, "")
				}
			}
		}
	}
}
