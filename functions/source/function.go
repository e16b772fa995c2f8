package source

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/gitremote"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/stack"
	"github.com/updraft-dev/updraft/pkg/transport"
)

// Name of the function, and of its ServiceAccount.
const Name = "updraft-source"

const (
	// patience is how long a repository may take to answer.
	patience = 30 * time.Second
	// maxWrites is how often a Stack that changes meanwhile is written anew before
	// the event is answered with 503.
	maxWrites = 6
)

// Function is the source function.
type Function struct {
	Clients *record.Clients
	Alarms  *record.Alarms
	Broker  transport.Sender
	Now     func() time.Time
	Log     *slog.Logger

	// comparing holds that one comparison at a time is in memory.
	comparing sync.Mutex
}

// Handle asks what a poll asks, or finds the polls that a push concerns.
func (f *Function) Handle(ctx context.Context, e cloudevents.Event) error {
	about, err := event.About(e)
	if err != nil {
		return transport.Never(err)
	}
	if about.Kind == event.KindPush {
		return f.pushed(ctx, e, about)
	}
	if about.Kind != event.KindPoll {
		return transport.Never(fmt.Errorf("the source function does not look at a %s", about.Kind))
	}
	list, err := f.Clients.Pulumi.PulumiV1().Stacks(about.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list the Stacks of %s: %w", about, err)
	}
	sharing := record.Sharing(list.Items, about.Name)
	if len(sharing) > 0 {
		return f.poll(ctx, sharing)
	}
	if e.Type() != event.TypePing {
		return nil
	}
	// A PingSource rings for nobody. It is the stack function's to delete.
	return f.Broker.Send(ctx, event.NewDue(Name, about.String()+"/"+strconv.FormatInt(f.Now().UnixMilli(), 10), about))
}

// poll asks once, and writes the answer onto all that share it.
func (f *Function) poll(ctx context.Context, sharing []*pulumiv1.Stack) error {
	poll, _ := stack.PollOf(sharing[0]) // each of them has this one
	revision, problem, err := f.ask(ctx, poll)
	if err != nil {
		return err
	}
	look := &looked{poll: poll, revision: revision, problem: problem}
	for _, s := range sharing {
		if err := f.write(ctx, s, look); err != nil {
			return err
		}
	}
	return nil
}

// ask finds the commit that the poll's ref names. What a person has to do about
// is a problem; an error is for the event to come back.
func (f *Function) ask(ctx context.Context, poll stack.Poll) (revision, problem string, err error) {
	credentials, problem, err := f.credentials(ctx, poll)
	if err != nil || problem != "" {
		return "", problem, err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := gitremote.Remote{URL: poll.Repository, Credentials: credentials}.Resolve(limited, poll.Ref)
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err != nil:
		return "", err.Error(), nil
	default:
		return found.Commit, "", nil
	}
}

// write puts onto a Stack what was found, if that is news, and if the Stack still
// wants it. One that has changed meanwhile is read again; the repository is not.
func (f *Function) write(ctx context.Context, s *pulumiv1.Stack, look *looked) error {
	client := f.Clients.Pulumi.PulumiV1().Stacks(s.Namespace)
	name := s.Name
	for range maxWrites {
		wanted, needed := stack.PollOf(s)
		if !needed || wanted.Name() != look.poll.Name() {
			return nil
		}
		seen, news := stack.Observe(s, look.poll, look.revision, look.problem, metav1.NewTime(f.Now()))
		if !news {
			return nil
		}
		if base := stack.Base(s); base != "" && seen.SameAs == "" && look.problem == "" && f.same(ctx, s, look, base) {
			stack.SameAs(s, seen, base)
		}
		next := s.DeepCopy()
		next.Status.Source = seen
		_, err := client.UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: Name})
		if err == nil {
			f.Log.InfoContext(ctx, "Source observed", "namespace", s.Namespace, "name", name, "revision", seen.Revision, "same", seen.SameAs, "problem", look.problem)
			return nil
		}
		if !apierrors.IsConflict(err) {
			return record.Gone(err) // a Stack that is gone needs nothing
		}
		if s, err = record.Found(client.Get(ctx, name, metav1.GetOptions{})); err != nil {
			return fmt.Errorf("cannot get Stack %s: %w", name, err)
		}
		if s == nil {
			return nil
		}
	}
	return fmt.Errorf("the source of Stack %s cannot be written: it changes all the time", name)
}
