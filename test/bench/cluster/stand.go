package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/run"
)

// stand is where it is measured: a namespace.
type stand struct {
	clients   *record.Clients
	namespace string
}

// step on the way of a change, as a watch shows it.
type step string

const (
	claimed step = "Update claimed"
	updated step = "Update made"
	jobbed  step = "Job made"
	podded  step = "Pod bound to its node"
	booted  step = "first container started"
	started step = "run's container started"
	taken   step = "run taken"
	running step = "operation begun"
	settled step = "Update complete"
	ready   step = "Ready"
)

var steps = []step{claimed, updated, jobbed, podded, booted, started, taken, running, settled, ready}

// timeline is when each step was seen, since the write.
type timeline map[step]time.Duration

// change is what a user does.
type change struct {
	name string
	do   func(context.Context, *stand, string) error
}

var changes = []change{
	{"first apply", func(ctx context.Context, s *stand, name string) error { return s.apply(ctx, name) }},
	{"config change", func(ctx context.Context, s *stand, name string) error {
		return s.patch(ctx, name, map[string]any{"spec": map[string]any{"config": map[string]any{"name": fmt.Sprint(time.Now().Unix())}}})
	}},
	{"the same run again", func(ctx context.Context, s *stand, name string) error {
		return s.patch(ctx, name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			pulumiv1.AnnotationReconcileRequest: fmt.Sprint(time.Now().UnixNano()),
		}}})
	}},
}

func (s *stand) program(ctx context.Context) error {
	_, err := s.clients.Pulumi.PulumiV1().Programs(s.namespace).Create(ctx, &pulumiv1.Program{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"},
		Program: pulumiv1.ProgramSpec{
			Configuration: map[string]pulumiv1.Configuration{"name": {Type: "String", Default: &apiextensionsv1.JSON{Raw: []byte(`"world"`)}}},
			Outputs:       map[string]apiextensionsv1.JSON{"message": {Raw: []byte(`"Hello, ${name}!"`)}},
		},
	}, metav1.CreateOptions{})
	return err
}

func (s *stand) apply(ctx context.Context, name string) error {
	_, err := s.clients.Pulumi.PulumiV1().Stacks(s.namespace).Create(ctx, &pulumiv1.Stack{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: pulumiv1.StackSpec{
			Stack: "dev", ProgramRef: &pulumiv1.ProgramReference{Name: "bench"}, Backend: "file://$(UPDRAFT_ROOT)/state?create_dir=true",
			EnvRefs: map[string]pulumiv1.ResourceRef{"PULUMI_CONFIG_PASSPHRASE": {
				SelectorType: pulumiv1.ResourceSelectorLiteral, LiteralRef: &pulumiv1.LiteralRef{Value: "bench"},
			}},
		},
	}, metav1.CreateOptions{})
	return err
}

func (s *stand) patch(ctx context.Context, name string, patch map[string]any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = s.clients.Pulumi.PulumiV1().Stacks(s.namespace).Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
	return err
}

// measure does one change and follows it to Ready.
func (s *stand) measure(ctx context.Context, name string, c change) (timeline, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.awaitRest(ctx); err != nil {
		return nil, err
	}
	seen, err := s.watchAll(ctx)
	if err != nil {
		return nil, err
	}
	t := timeline{}
	began := time.Now()
	if err := c.do(ctx, s, name); err != nil {
		return nil, err
	}
	for t[ready] == 0 {
		select {
		case object := <-seen:
			for _, reached := range stepsOf(object, name) {
				if _, ok := t[reached]; !ok {
					t[reached] = time.Since(began)
				}
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("not Ready within %s; seen: %v", patience, t)
		}
	}
	return t, nil
}

// watchAll merges the watches of all that a change makes, from now on.
func (s *stand) watchAll(ctx context.Context) (<-chan runtime.Object, error) {
	all := make(chan runtime.Object, 1000)
	// One version is of the whole API server: what is there already is not seen.
	stacks, err := s.clients.Pulumi.PulumiV1().Stacks(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	now := metav1.ListOptions{ResourceVersion: stacks.ResourceVersion}
	for _, open := range []func(context.Context, metav1.ListOptions) (watch.Interface, error){
		s.clients.Pulumi.PulumiV1().Stacks(s.namespace).Watch, s.clients.Pulumi.AutoV1alpha1().Updates(s.namespace).Watch,
		s.clients.Batch.Jobs(s.namespace).Watch, s.clients.Core.Pods(s.namespace).Watch,
	} {
		w, err := open(ctx, now)
		if err != nil {
			return nil, err
		}
		go func() {
			defer w.Stop()
			for e := range w.ResultChan() {
				select {
				case all <- e.Object:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return all, nil
}

// stepsOf are the steps that an object shows to have been reached, if it is
// about the Stack of this name, or about an Update that is not settled yet.
func stepsOf(object runtime.Object, name string) []step {
	var reached []step
	add := func(is bool, s step) {
		if is {
			reached = append(reached, s)
		}
	}
	switch o := object.(type) {
	case *pulumiv1.Stack:
		if o.Name != name {
			return nil
		}
		add(o.Status.CurrentUpdate != nil, claimed)
		add(o.Status.CurrentUpdate == nil && meta.IsStatusConditionTrue(o.Status.Conditions, pulumiv1.ReadyCondition) &&
			o.Status.ObservedGeneration == o.Generation && o.Status.ObservedReconcileRequest == o.Annotations[pulumiv1.AnnotationReconcileRequest], ready)
	case *autov1alpha1.Update:
		if o.Spec.WorkspaceName != name || o.DeletionTimestamp != nil {
			return nil
		}
		live := len(o.Finalizers) > 0 // an earlier one has been let go
		add(live, updated)
		add(live && run.Taken(o), taken)
		add(live && run.Taken(o) && o.Status.Run.Phase == autov1alpha1.RunRunning, running)
		add(live && o.Settled(), settled)
	case *batchv1.Job:
		add(true, jobbed)
	case *corev1.Pod:
		add(o.Spec.NodeName != "", podded)
		for _, c := range o.Status.InitContainerStatuses {
			add(c.State.Running != nil || c.State.Terminated != nil, booted)
		}
		for _, c := range o.Status.ContainerStatuses {
			add(c.State.Running != nil || c.State.Terminated != nil, started)
		}
	}
	return reached
}

// awaitRest waits until nothing is left of earlier runs, which would be taken
// for the next one.
func (s *stand) awaitRest(ctx context.Context) error {
	return until(ctx, func() error {
		pods, err := s.clients.Core.Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: pulumiv1.LabelUpdate})
		if err != nil {
			return err
		}
		jobs, err := s.clients.Batch.Jobs(s.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		updates, err := s.clients.Pulumi.AutoV1alpha1().Updates(s.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range updates.Items {
			if len(updates.Items[i].Finalizers) > 0 {
				return errors.New("an Update is not let go")
			}
		}
		if n := len(pods.Items) + len(jobs.Items); n > 0 {
			return fmt.Errorf("%d pods and Jobs are left", n)
		}
		return nil
	})
}

// awaitZero waits until no function runs.
func (s *stand) awaitZero(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	return until(ctx, func() error {
		pods, err := s.clients.Core.Pods(systemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "serving.knative.dev/service"})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods of functions run", len(pods.Items))
		}
		return err
	})
}

// manyAtOnce applies many Stacks, from zero, and waits until all are Ready.
func (s *stand) manyAtOnce(ctx context.Context, many int) (time.Duration, error) {
	if err := s.awaitZero(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	began := time.Now()
	for i := range many {
		if err := s.apply(ctx, fmt.Sprintf("many-%d", i)); err != nil {
			return 0, err
		}
	}
	err := until(ctx, func() error {
		list, err := s.clients.Pulumi.PulumiV1().Stacks(s.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if !meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, pulumiv1.ReadyCondition) {
				return fmt.Errorf("stack %s is not Ready", list.Items[i].Name)
			}
		}
		return nil
	})
	return time.Since(began), err
}

// until asks until it is so, or the context ends.
func until(ctx context.Context, is func() error) error {
	for {
		err := is()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain: %w", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
