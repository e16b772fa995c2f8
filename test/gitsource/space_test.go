package gitsource

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/gitremote/gittest"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/stack"
	"github.com/updraft-dev/updraft/pkg/transport"
)

// patience is how long anything may take on a busy machine.
const patience = 3 * time.Minute

// day is a period in which no PingSource rings by itself during a test.
const day = 24 * 60 * 60

var pingSources = schema.GroupVersionResource{Group: "sources.knative.dev", Version: "v1", Resource: "pingsources"}

// space is a namespace of a test, and the state of its stacks.
type space struct {
	*testing.T
	namespace, state string
	clients          *record.Clients
	sent             int
}

func newSpace(t *testing.T) *space {
	t.Helper()
	clients, err := record.NewClients(lab.env.Config)
	if err != nil {
		t.Fatal(err)
	}
	s := &space{T: t, state: t.TempDir(), clients: clients, namespace: "git-" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	_, err = clients.Core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// project is a Pulumi.yaml that gives a message.
func project(message string) string {
	return "name: app\nruntime: yaml\noutputs:\n  message: " + message + "\n"
}

// repository has one commit with a project in its root.
func repository(t *testing.T, message string) *gittest.Repository {
	r := gittest.New(t)
	r.Write("Pulumi.yaml", project(message))
	r.Commit()
	return r
}

// apply creates a Stack of a git source.
func (s *space) apply(name string, source pulumiv1.GitSource, changes ...func(*pulumiv1.Stack)) {
	s.Helper()
	passphrase := pulumiv1.ResourceRef{SelectorType: pulumiv1.ResourceSelectorLiteral, LiteralRef: &pulumiv1.LiteralRef{Value: "correct"}}
	object := &pulumiv1.Stack{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace},
		Spec: pulumiv1.StackSpec{
			Stack: name, GitSource: &source, ResyncFrequencySeconds: day,
			Backend: "file://" + s.state, EnvRefs: map[string]pulumiv1.ResourceRef{"PULUMI_CONFIG_PASSPHRASE": passphrase},
		},
	}
	for _, change := range changes {
		change(object)
	}
	_, err := s.clients.Pulumi.PulumiV1().Stacks(s.namespace).Create(s.Context(), object, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *space) get(name string) *pulumiv1.Stack {
	s.Helper()
	object, err := s.clients.Pulumi.PulumiV1().Stacks(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return object
}

// patch changes a Stack by a merge patch.
func (s *space) patch(name, patch string) {
	s.Helper()
	_, err := s.clients.Pulumi.PulumiV1().Stacks(s.namespace).Patch(s.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// until waits until a Stack is as it should be.
func (s *space) until(name, what string, is func(*pulumiv1.Stack) error) *pulumiv1.Stack {
	s.Helper()
	var last *pulumiv1.Stack
	s.eventually(fmt.Sprintf("Stack %s %s", name, what), func() error {
		last = s.get(name)
		if err := is(last); err != nil {
			return fmt.Errorf("%w; its status is %+v", err, last.Status)
		}
		return nil
	})
	return last
}

func (s *space) eventually(what string, ask func() error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			s.Fatalf("waited in vain: %s: %v", what, err)
		case <-tick.C:
		}
	}
}

// ranAt waits until a Stack is Ready and ran a commit with this message.
func (s *space) ranAt(name, commit, message string) *pulumiv1.Stack {
	s.Helper()
	return s.until(name, "ran commit "+commit, func(o *pulumiv1.Stack) error {
		last := o.Status.LastUpdate
		switch {
		case !meta.IsStatusConditionTrue(o.Status.Conditions, pulumiv1.ReadyCondition):
			return errors.New("it is not Ready")
		case last == nil || last.LastSuccessfulCommit != commit || last.LastAttemptedCommit != commit:
			return errors.New("it ran something else")
		case string(o.Status.Outputs["message"].Raw) != strconv.Quote(message):
			return errors.New("its output is another")
		}
		return nil
	})
}

// condition waits until a condition of a Stack has a reason, and a message with
// this in it.
func (s *space) condition(name, kind, reason, says string) {
	s.Helper()
	s.until(name, "is "+kind+"/"+reason, func(o *pulumiv1.Stack) error {
		c := meta.FindStatusCondition(o.Status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason || !strings.Contains(c.Message, says) {
			return fmt.Errorf("it does not say %q", says)
		}
		return nil
	})
}

// poll sends the event that a PingSource would.
func (s *space) poll(name string) {
	s.Helper()
	poll, ok := stack.PollOf(s.get(name))
	if !ok {
		s.Fatalf("Stack %s has no poll", name)
	}
	s.sent++
	sender, err := transport.NewSender(lab.env.BrokerURL)
	if err != nil {
		s.Fatal(err)
	}
	about := event.Ref{Kind: event.KindPoll, Namespace: s.namespace, Name: poll.Name()}
	if err := sender.Send(s.Context(), event.NewDue("test", s.namespace+"/"+strconv.Itoa(s.sent), about)); err != nil {
		s.Fatal(err)
	}
}

// sees waits until a Stack's status says what its source has.
func (s *space) sees(name, revision, message string) {
	s.Helper()
	s.until(name, "sees "+revision, func(o *pulumiv1.Stack) error {
		seen := o.Status.Source
		if seen == nil || seen.Revision != revision || !strings.Contains(seen.Message, message) || (message == "") != (seen.Message == "") {
			return errors.New("it sees something else")
		}
		return nil
	})
}

// updates of a Stack, in the order of their making.
func (s *space) updates(name string) []autov1alpha1.Update {
	s.Helper()
	list, err := s.clients.Pulumi.AutoV1alpha1().Updates(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: pulumiv1.LabelStackName + "=" + name})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// stays checks that a Stack has so many Updates and, once all that is under way
// has been looked at, no more.
func (s *space) stays(name string, updates int) {
	s.Helper()
	generation := s.get(name).Generation
	s.patch(name, `{"metadata":{"annotations":{"updraft.dev/suspend":"true"}}}`)
	s.until(name, "is looked at", func(o *pulumiv1.Stack) error {
		if o.Generation != generation || o.Status.CurrentUpdate != nil {
			return errors.New("something is under way")
		}
		return nil
	})
	if got := s.updates(name); len(got) != updates {
		s.Fatalf("Stack %s has %d Updates, want %d", name, len(got), updates)
	}
	s.patch(name, `{"metadata":{"annotations":{"updraft.dev/suspend":null}}}`)
}

// ring makes the PingSource of a Stack's poll ring each second.
func (s *space) ring(name string) {
	s.Helper()
	poll, _ := stack.PollOf(s.get(name))
	_, err := s.clients.Dynamic.Resource(pingSources).Namespace(s.namespace).Patch(s.Context(), poll.Name(), types.MergePatchType,
		[]byte(`{"spec":{"schedule":"* * * * * *"}}`), metav1.PatchOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// pollSource is the PingSource of a poll; nil if there is none.
func (s *space) pollSource(poll string) *unstructured.Unstructured {
	s.Helper()
	source, err := s.clients.Dynamic.Resource(pingSources).Namespace(s.namespace).Get(s.Context(), poll, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return source
}

// polls are the names of the PingSources of the namespace.
func (s *space) polls() []string {
	s.Helper()
	list, err := s.clients.Dynamic.Resource(pingSources).Namespace(s.namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	var names []string
	for _, source := range list.Items {
		names = append(names, source.GetName())
	}
	return names
}

// gone waits until a poll's PingSource is gone.
func (s *space) gone(poll string) {
	s.Helper()
	s.eventually("poll "+poll+" is gone", func() error {
		if s.pollSource(poll) != nil {
			return errors.New("it is there")
		}
		return nil
	})
}

// remove deletes a Stack and waits until it is gone.
func (s *space) remove(name string) {
	s.Helper()
	if err := s.clients.Pulumi.PulumiV1().Stacks(s.namespace).Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	s.eventually("Stack "+name+" is gone", func() error {
		_, err := s.clients.Pulumi.PulumiV1().Stacks(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}
