package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/request"
)

// maxLooks is how often a look whose write meets a newer Stack looks again. A
// Stack is written some ten times in an update, and by each request that comes at
// the same time.
const maxLooks = 20

// act does what a request asks for, on the world as it is read.
func (f *Function) act(ctx context.Context, r request.Request) (request.Verdict, *request.Problem) {
	var err error
	met := false // an Update of the name of the one to create
	for range maxLooks {
		var w request.World
		if w, err = f.world(ctx, r, met); err != nil {
			break
		}
		if w.Stack == nil {
			return request.Verdict{}, request.Problemf(request.NotFound, "Stack %s does not exist in namespace %s; create it, or correct the event's subject", r.Stack, r.Namespace)
		}
		v, problem := request.Decide(r, w)
		if problem != nil || v.Repeated {
			return v, problem
		}
		if err = f.write(ctx, w.Stack, v); err == nil {
			return v, nil
		}
		met = met || apierrors.IsAlreadyExists(err)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return request.Verdict{}, f.failed(r, err)
}

// failed is the problem of a write or read that did not succeed.
func (f *Function) failed(r request.Request, err error) *request.Problem {
	if record.Closed(err) {
		return request.Problemf(request.Conflict, "Namespace %s is being deleted and takes nothing new", r.Namespace)
	}
	// A policy of the cluster's, or a quota.
	if refusal := record.Refused(err); refusal != "" || apierrors.IsForbidden(err) {
		return request.Problemf(request.Invalid, "The API server refused it: %s", oneLine(err))
	}
	f.Log.Error("Request failed", "operation", string(r.Operation), "namespace", r.Namespace, "name", r.Stack, "error", err.Error())
	if apierrors.IsConflict(err) {
		return request.Problemf(request.Unavailable, "Stack %s is written by others all the time; send the event again", r.Stack)
	}
	return request.Problemf(request.Unavailable, "The API server does not answer as it should; send the event again later")
}

// world reads what the decision rests on: the Stack, and no more for what was
// taken already or needs no more. Whether the Update to create is there its
// creation tells, so that it is not read before it was met.
func (f *Function) world(ctx context.Context, r request.Request, met bool) (request.World, error) {
	w := request.World{Updates: map[string]*autov1alpha1.Update{}}
	var err error
	w.Stack, err = record.Found(f.Pulumi.PulumiV1().Stacks(r.Namespace).Get(ctx, r.Stack, metav1.GetOptions{}))
	if err != nil {
		return w, fmt.Errorf("cannot get Stack %s: %w", r.Stack, err)
	}
	if w.Stack == nil || r.Operation == request.Update {
		return w, nil
	}
	w.Workspace, err = record.Found(f.Pulumi.AutoV1alpha1().Workspaces(r.Namespace).Get(ctx, r.Stack, metav1.GetOptions{}))
	if err != nil {
		return w, fmt.Errorf("cannot get Workspace %s: %w", r.Stack, err)
	}
	if r.Operation.Creates() && w.Workspace != nil && !met {
		return w, nil
	}
	for _, name := range request.Needs(r, w) {
		u, err := record.Found(f.Pulumi.AutoV1alpha1().Updates(r.Namespace).Get(ctx, name, metav1.GetOptions{}))
		if err != nil {
			return w, fmt.Errorf("cannot get Update %s: %w", name, err)
		}
		if u != nil {
			w.Updates[name] = u
		}
	}
	return w, nil
}

// write creates the Update, then writes the annotations onto the version of the
// Stack that was read.
func (f *Function) write(ctx context.Context, s *pulumiv1.Stack, v request.Verdict) error {
	if v.Create != nil {
		observe.Stamp(ctx, v.Create)
		_, err := f.Pulumi.AutoV1alpha1().Updates(s.Namespace).Create(ctx, v.Create, metav1.CreateOptions{FieldManager: Name})
		if err != nil {
			return fmt.Errorf("cannot create Update %s: %w", v.Create.Name, err)
		}
	}
	if of := observe.OfRequest(ctx, v.Annotations[pulumiv1.AnnotationReconcileRequest]); of != "" {
		v.Annotations[pulumiv1.AnnotationTraceparent] = of
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": s.UID, "resourceVersion": s.ResourceVersion, "annotations": v.Annotations,
	}})
	if err != nil {
		return fmt.Errorf("cannot encode the annotations of Stack %s: %w", s.Name, err)
	}
	_, err = f.Pulumi.PulumiV1().Stacks(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Name})
	if err != nil {
		return fmt.Errorf("cannot annotate Stack %s: %w", s.Name, err)
	}
	return nil
}
