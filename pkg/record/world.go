package record

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/client/clientset/versioned"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// World reads what a decision about a Stack rests on, and no more: a Stack that
// needs nothing costs a read of its Program at most.
func World(ctx context.Context, client versioned.Interface, s *pulumiv1.Stack) (stack.World, error) {
	w := stack.World{Stack: s}
	observe.Saw(ctx, s)
	var err error
	if claim := s.Status.CurrentUpdate; claim != nil {
		w.Update, err = Found(client.AutoV1alpha1().Updates(s.Namespace).Get(ctx, claim.Name, metav1.GetOptions{}))
		if err != nil {
			return w, fmt.Errorf("cannot get Update %s: %w", claim.Name, err)
		}
		if w.Update != nil {
			observe.Saw(ctx, w.Update)
		}
		observe.Join(ctx, claim.Traceparent)
	}
	if stack.NeedsWorkspace(s) {
		w.Workspace, err = Found(client.AutoV1alpha1().Workspaces(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{}))
		if err != nil {
			return w, fmt.Errorf("cannot get Workspace %s: %w", s.Name, err)
		}
	}
	if ws := w.Workspace; ws != nil && ws.Status.Run != nil && (w.Update == nil || w.Update.UID != ws.Status.Run.UID) {
		if w.HolderEnded, err = HolderEnded(ctx, client, ws); err != nil {
			return w, err
		}
	}
	if w.Source, err = source(ctx, client, s); err != nil {
		return w, err
	}
	w.Prerequisites, err = prerequisites(ctx, client, s)
	return w, err
}

func source(ctx context.Context, client versioned.Interface, s *pulumiv1.Stack) (stack.Source, error) {
	if git, ok := stack.GitSource(s); ok && !stack.Sourceless(s) {
		return git, nil
	}
	if s.Spec.ProgramRef == nil || s.Spec.ProgramRef.Name == "" || stack.Sourceless(s) {
		return stack.Source{}, nil
	}
	name := s.Spec.ProgramRef.Name
	program, err := Found(client.PulumiV1().Programs(s.Namespace).Get(ctx, name, metav1.GetOptions{}))
	switch {
	case err != nil:
		return stack.Source{}, fmt.Errorf("cannot get Program %s: %w", name, err)
	case program == nil:
		return stack.Source{Problem: fmt.Sprintf("Program %s does not exist in namespace %s; create it, or correct programRef", name, s.Namespace)}, nil
	default:
		return stack.Source{Revision: strconv.FormatInt(program.Generation, 10)}, nil
	}
}

func prerequisites(ctx context.Context, client versioned.Interface, s *pulumiv1.Stack) (map[string]*pulumiv1.Stack, error) {
	found := map[string]*pulumiv1.Stack{}
	for _, p := range s.Spec.Prerequisites {
		other, err := Found(client.PulumiV1().Stacks(s.Namespace).Get(ctx, p.Name, metav1.GetOptions{}))
		if err != nil {
			return nil, fmt.Errorf("cannot get prerequisite Stack %s: %w", p.Name, err)
		}
		if other != nil {
			found[p.Name] = other
		}
	}
	return found, nil
}

// HolderEnded says whether the lock of a Workspace is nobody's: the Update that
// holds it is gone, or is Complete and its run has ended.
func HolderEnded(ctx context.Context, client versioned.Interface, ws *autov1alpha1.Workspace) (bool, error) {
	holder := ws.Status.Run
	if holder == nil {
		return true, nil
	}
	update, err := Found(client.AutoV1alpha1().Updates(ws.Namespace).Get(ctx, holder.Name, metav1.GetOptions{}))
	if err != nil {
		return false, fmt.Errorf("cannot get Update %s: %w", holder.Name, err)
	}
	if update == nil || update.UID != holder.UID {
		return true, nil
	}
	taken := update.Status.Run != nil && update.Status.Run.PodUID != ""
	return update.Settled() && (!taken || update.Status.Run.Phase == autov1alpha1.RunEnded), nil
}
