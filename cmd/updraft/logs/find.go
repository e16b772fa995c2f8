package logs

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/record"
)

// find finds the Update to read. If there is none yet but may be one soon, it
// says so in wait.
func (r *reader) find(ctx context.Context) (u *autov1alpha1.Update, wait string, err error) {
	if r.update != "" {
		u, err = r.named(ctx)
		return u, "", err
	}
	s, err := record.Found(r.clients.Pulumi.PulumiV1().Stacks(r.namespace).Get(ctx, r.stack, metav1.GetOptions{}))
	if err != nil {
		return nil, "", fmt.Errorf("cannot get Stack %s: %w", r.stack, err)
	}
	if s == nil {
		return nil, "", fmt.Errorf("stack %s does not exist in namespace %s", r.stack, r.namespace)
	}
	if claim := s.Status.CurrentUpdate; claim != nil {
		if u, err = r.get(ctx, claim.Name); err != nil || u != nil {
			return u, "", err
		}
		return nil, fmt.Sprintf("Update %s is about to be made", claim.Name), nil
	}
	if r.follow && !seen(s) {
		return nil, fmt.Sprintf("Stack %s is about to be looked at", s.Name), nil
	}
	return r.last(ctx, s)
}

// named is the Update that the caller names, if it is of the Stack that they
// name.
func (r *reader) named(ctx context.Context) (*autov1alpha1.Update, error) {
	u, err := r.get(ctx, r.update)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return nil, fmt.Errorf("update %s does not exist in namespace %s; if it did, it was deleted or has expired, and its log with it", r.update, r.namespace)
	}
	if r.stack != "" && u.Labels[pulumiv1.LabelStackName] != r.stack && u.Spec.WorkspaceName != r.stack {
		return nil, fmt.Errorf("update %s is not of Stack %s: it runs in Workspace %s", u.Name, r.stack, u.Spec.WorkspaceName)
	}
	return u, nil
}

// last is the Update that a Stack which has none now ran last.
func (r *reader) last(ctx context.Context, s *pulumiv1.Stack) (u *autov1alpha1.Update, wait string, err error) {
	if last := s.Status.LastUpdate; last != nil {
		if u, err = r.get(ctx, last.Name); err != nil || u != nil {
			return u, "", err
		}
		return nil, "", fmt.Errorf("update %s, the last of Stack %s, was deleted or has expired, and its log with it; a new run makes a new one", last.Name, s.Name)
	}
	c := meta.FindStatusCondition(s.Status.Conditions, pulumiv1.StalledCondition)
	if c != nil && c.Reason != string(pulumiv1.StalledSourceUnavailable) { // which ends by itself
		return nil, "", fmt.Errorf("stack %s has never run: %s: %s", s.Name, c.Reason, c.Message)
	}
	if c == nil {
		c = meta.FindStatusCondition(s.Status.Conditions, pulumiv1.ReconcilingCondition)
	}
	if c == nil {
		return nil, fmt.Sprintf("Stack %s has not run yet", s.Name), nil
	}
	return nil, fmt.Sprintf("Stack %s has not run yet: %s: %s", s.Name, c.Reason, c.Message), nil
}

// seen says whether the Stack was looked at as it is now: if it was, and claims
// nothing, nothing new is about to run.
func seen(s *pulumiv1.Stack) bool {
	return s.Status.ObservedGeneration == s.Generation &&
		s.Status.ObservedReconcileRequest == s.Annotations[pulumiv1.AnnotationReconcileRequest]
}

func (r *reader) get(ctx context.Context, name string) (*autov1alpha1.Update, error) {
	u, err := record.Found(r.clients.Pulumi.AutoV1alpha1().Updates(r.namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("cannot get Update %s: %w", name, err)
	}
	return u, nil
}
