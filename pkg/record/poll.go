package record

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/client/clientset/versioned"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/stack"
)

const (
	// annotationPeriod is on a poll: how often it was wanted.
	annotationPeriod = "updraft.dev/period"
	// annotationPeriodOf is on a poll: the UID of a Stack that wants it as often.
	annotationPeriodOf = "updraft.dev/period-of"
)

// KeepPoll sees to it that the Stack's source is polled as often as it wants, and
// that no poll goes on for what it no longer wants. A poll that is well costs one
// read, a Stack without one nothing.
func (a *Alarms) KeepPoll(ctx context.Context, client versioned.Interface, s *pulumiv1.Stack) error {
	current := ""
	if poll, needed := stack.PollOf(s); needed {
		current = poll.Name()
		existing, err := a.poll(ctx, s.Namespace, current)
		if err != nil {
			return err
		}
		if !suits(existing, s) {
			if err := a.SyncPoll(ctx, client, s.Namespace, current); err != nil {
				return err
			}
		}
	}
	seen := s.Status.Source
	if seen == nil || seen.Poll == "" || seen.Poll == current {
		return nil
	}
	former, err := a.poll(ctx, s.Namespace, seen.Poll)
	if err != nil || former == nil || !owns(s, former) {
		return err
	}
	return a.SyncPoll(ctx, client, s.Namespace, seen.Poll)
}

// SyncPoll makes the poll of this name what the Stacks of its namespace want: it
// is owned by all that share it, and rings as often as the most impatient wants.
// If none does, it goes. It is read before the Stacks are, so that of two who
// write it the one who has seen less meets a conflict.
func (a *Alarms) SyncPoll(ctx context.Context, client versioned.Interface, namespace, name string) error {
	existing, err := a.poll(ctx, namespace, name)
	if err != nil {
		return err
	}
	list, err := client.PulumiV1().Stacks(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list the Stacks of poll %s: %w", name, err)
	}
	sharing := Sharing(list.Items, name)
	source := a.Client.Resource(pingSources).Namespace(namespace)
	switch {
	case len(sharing) == 0 && existing == nil:
		return nil
	case len(sharing) == 0:
		options, version := Only(existing), existing.GetResourceVersion()
		options.Preconditions.ResourceVersion = &version
		if err := source.Delete(ctx, name, options); err != nil {
			return fmt.Errorf("cannot delete poll %s: %w", name, err)
		}
		return nil
	}
	wanted := a.pollSource(sharing, event.Ref{Kind: event.KindPoll, Namespace: namespace, Name: name})
	switch {
	case existing == nil:
		_, err = source.Create(ctx, wanted, metav1.CreateOptions{})
	case samePoll(existing, wanted):
		return nil
	default:
		wanted.SetUID(existing.GetUID())
		wanted.SetResourceVersion(existing.GetResourceVersion())
		_, err = source.Update(ctx, wanted, metav1.UpdateOptions{})
	}
	if err != nil && !Closed(err) {
		return fmt.Errorf("cannot set poll %s: %w", name, err)
	}
	return nil
}

// Sharing are the Stacks that need the poll of this name, by name.
func Sharing(stacks []pulumiv1.Stack, name string) []*pulumiv1.Stack {
	var sharing []*pulumiv1.Stack
	for i := range stacks {
		if poll, needed := stack.PollOf(&stacks[i]); needed && poll.Name() == name {
			sharing = append(sharing, &stacks[i])
		}
	}
	sort.Slice(sharing, func(i, j int) bool { return sharing[i].Name < sharing[j].Name })
	return sharing
}

func (a *Alarms) poll(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	found, err := Found(a.Client.Resource(pingSources).Namespace(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("cannot get poll %s: %w", name, err)
	}
	return found, nil
}

// suits says whether a poll is as one of its Stacks wants it, whatever the others
// want.
func suits(poll *unstructured.Unstructured, s *pulumiv1.Stack) bool {
	if poll == nil || !owns(s, poll) {
		return false
	}
	period, err := time.ParseDuration(poll.GetAnnotations()[annotationPeriod])
	if err != nil || period > stack.PollPeriod(s) {
		return false
	}
	asked := poll.GetAnnotations()[annotationPeriodOf] == string(s.UID)
	return !asked || period == stack.PollPeriod(s)
}

func owns(s *pulumiv1.Stack, poll *unstructured.Unstructured) bool {
	for _, owner := range poll.GetOwnerReferences() {
		if owner.UID == s.UID {
			return true
		}
	}
	return false
}

func samePoll(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		a.GetAnnotations()[annotationPeriod] == b.GetAnnotations()[annotationPeriod] &&
		a.GetAnnotations()[annotationPeriodOf] == b.GetAnnotations()[annotationPeriodOf]
}

func (a *Alarms) pollSource(sharing []*pulumiv1.Stack, about event.Ref) *unstructured.Unstructured {
	period, of := shortest(sharing)
	owners := make([]any, 0, len(sharing))
	for _, s := range sharing {
		owners = append(owners, map[string]any{
			"apiVersion": pulumiv1.SchemeGroupVersion.String(), "kind": event.KindStack, "name": s.Name, "uid": string(s.UID),
		})
	}
	return a.ring(about, pollSchedule(about.Name, period), map[string]any{
		annotationPeriod: period.String(), annotationPeriodOf: string(of),
	}, owners)
}

// shortest is the period of the most impatient Stack, and which that is.
func shortest(sharing []*pulumiv1.Stack) (time.Duration, types.UID) {
	of := sharing[0]
	for _, s := range sharing[1:] {
		if stack.PollPeriod(s) < stack.PollPeriod(of) {
			of = s
		}
	}
	return stack.PollPeriod(of), of.UID
}

// pollSchedule is a cron line with seconds that rings at least once a period, and
// evenly: its period is the next shorter one that divides an hour or a day. The
// phase is a hash, so that not all polls ring at once.
func pollSchedule(name string, period time.Duration) string {
	sum := sha256.Sum256([]byte(name))
	phase := func(i, n int) int { return int(binary.BigEndian.Uint32(sum[4*i:]) % uint32(n)) }
	second, minutes, hours := phase(0, 60), int(period/time.Minute), int(period/time.Hour)
	switch {
	case minutes <= 1:
		return fmt.Sprintf("%d * * * * *", second)
	case hours < 1:
		every := divisor(60, minutes)
		return fmt.Sprintf("%d %d/%d * * * *", second, phase(1, every), every)
	case hours == 1:
		return fmt.Sprintf("%d %d * * * *", second, phase(1, 60))
	case hours < 24:
		every := divisor(24, hours)
		return fmt.Sprintf("%d %d %d/%d * * *", second, phase(1, 60), phase(2, every), every)
	default:
		return fmt.Sprintf("%d %d %d * * *", second, phase(1, 60), phase(2, 24))
	}
}

// divisor is the largest divisor of n that is at most limit.
func divisor(n, limit int) int {
	for d := limit; d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}
