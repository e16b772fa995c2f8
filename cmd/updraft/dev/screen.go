package dev

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/client/clientset/versioned"
)

// screen tells a person what happens, a line each, with the time of day.
type screen struct {
	mu   sync.Mutex
	out  io.Writer
	last map[string]string
}

func newScreen(out io.Writer) *screen { return &screen{out: out, last: map[string]string{}} }

func (s *screen) say(format string, arguments ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf(format, arguments...)
	if line != "" {
		line = time.Now().Format("15:04:05") + "  " + line
	}
	_, _ = fmt.Fprintln(s.out, line) // a screen that is gone is no reason to end
}

// watch tells each change of a Stack or an Update until ctx ends.
func (s *screen) watch(ctx context.Context, config *rest.Config) {
	client, err := versioned.NewForConfig(config)
	if err != nil {
		s.say("Note: changes are not shown: %v", err)
		return
	}
	var watching sync.WaitGroup
	for _, open := range []func() (watch.Interface, error){
		func() (watch.Interface, error) {
			return client.PulumiV1().Stacks("").Watch(ctx, metav1.ListOptions{})
		},
		func() (watch.Interface, error) {
			return client.AutoV1alpha1().Updates("").Watch(ctx, metav1.ListOptions{})
		},
	} {
		watching.Go(func() { s.follow(ctx, open) })
	}
	watching.Wait()
}

func (s *screen) follow(ctx context.Context, open func() (watch.Interface, error)) {
	for ctx.Err() == nil {
		w, err := open()
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		for e := range w.ResultChan() {
			s.show(e)
		}
		w.Stop()
	}
}

// show says what an object has come to, if that is news.
func (s *screen) show(e watch.Event) {
	key, state := "", ""
	switch o := e.Object.(type) {
	case *pulumiv1.Stack:
		key, state = fmt.Sprintf("Stack  %s/%s", o.Namespace, o.Name), stackState(o)
	case *autov1alpha1.Update:
		key, state = fmt.Sprintf("Update %s/%s", o.Namespace, o.Name), updateState(o)
	}
	if e.Type == watch.Deleted {
		state = "gone"
	}
	s.mu.Lock()
	news := key != "" && state != "" && s.last[key] != state
	s.last[key] = state
	s.mu.Unlock()
	if news {
		s.say("%s  %s", key, state)
	}
}

func stackState(s *pulumiv1.Stack) string {
	for _, kind := range []string{pulumiv1.StalledCondition, pulumiv1.ReconcilingCondition, pulumiv1.ReadyCondition} {
		if c := meta.FindStatusCondition(s.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return fmt.Sprintf("%s/%s: %s", kind, c.Reason, firstLine(c.Message))
		}
	}
	return ""
}

func updateState(u *autov1alpha1.Update) string {
	for _, kind := range []string{autov1alpha1.UpdateFailed, autov1alpha1.UpdateComplete, autov1alpha1.UpdateProgressing} {
		if c := meta.FindStatusCondition(u.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return strings.TrimRight(fmt.Sprintf("%s %s/%s: %s", u.Spec.Type, kind, c.Reason, firstLine(c.Message)), ": ")
		}
	}
	if c := meta.FindStatusCondition(u.Status.Conditions, autov1alpha1.UpdateProgressing); c != nil {
		return fmt.Sprintf("%s waits/%s: %s", u.Spec.Type, c.Reason, firstLine(c.Message))
	}
	return string(u.Spec.Type) + " created"
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
