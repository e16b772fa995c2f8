package status

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// tellEnd wakes the Updates that wait for the Workspace and the Stacks that wait
// for this one, and tells other systems.
func (f *Function) tellEnd(ctx context.Context, u *autov1alpha1.Update) error {
	if err := f.wakeUpdates(ctx, u); err != nil {
		return err
	}
	if stateOf(u) != autov1alpha1.ResultNotRun {
		if err := record.Happened(ctx, f.Clients.Core, Name, updateHappening(u), f.Now()); err != nil {
			return err
		}
	}
	if run.Taken(u) {
		if err := f.tell(ctx, u, event.KindUpdate, u.Name, ended(u)); err != nil {
			return err
		}
	}
	return f.tellStack(ctx, u)
}

// tellStack tells what the Update made of its Stack, and wakes the Stacks that
// have it as a prerequisite.
func (f *Function) tellStack(ctx context.Context, u *autov1alpha1.Update) error {
	_, s, err := f.stackOf(ctx, u)
	if err != nil || s == nil || !stack.MadeFor(u, s.UID) {
		return err
	}
	if folded(s, u) {
		if err := record.Happened(ctx, f.Clients.Core, Name, stackHappening(s, u), f.Now()); err != nil {
			return err
		}
	}
	for _, n := range stackNews(s, u) {
		if err := f.tell(ctx, u, event.KindStack, s.Name, n); err != nil {
			return err
		}
	}
	if !folded(s, u) {
		return nil
	}
	return f.wakeDependents(ctx, s, u)
}

// news is an event for other systems, which tells of what an Update came to.
type news struct {
	eventType string
	// state is the last part of the event's id.
	state string
	data  any
}

// tell sends news about an object. Its id is that of every repeat of it.
func (f *Function) tell(ctx context.Context, u *autov1alpha1.Update, kind, name string, n news) error {
	about := event.Ref{Kind: kind, Namespace: u.Namespace, Name: name}
	e, err := event.New(n.eventType, Name, string(u.UID)+"/"+n.state, about, n.data)
	if err != nil {
		return err
	}
	return f.Broker.Send(ctx, e)
}

func started(u *autov1alpha1.Update) news {
	return news{event.TypeRunStarted, "started", event.RunStarted{Run: runOf(u), Stack: stackName(u)}}
}

func ended(u *autov1alpha1.Update) news {
	return news{event.TypeRunFinished, "finished", event.RunEnded{
		Run: runOf(u), Stack: stackName(u), State: string(stateOf(u)), Reason: string(u.FailedReason()), Counts: countsOf(u),
	}}
}

// stackNews is what a settled Update means for the Stack that it was made for, as
// that is now. An Update that was not folded into it, a refresh that somebody asked
// for, may yet have found drift.
func stackNews(s *pulumiv1.Stack, u *autov1alpha1.Update) (told []news) {
	if n := stack.Drift(u); n > 0 {
		told = append(told, news{event.TypeStackDrifted, "drifted", event.StackDrifted{Run: runOf(u), Resources: n, Counts: countsOf(u)}})
	}
	if !folded(s, u) {
		return told
	}
	state := stateOf(u)
	switch {
	case s.Status.LastUpdate.State != pulumiv1.SucceededStackStateMessage:
		told = append(told, news{event.TypeStackFailed, string(state), event.StackFailed{
			Run: runOf(u), State: string(state), Reason: string(u.FailedReason()), Counts: countsOf(u),
		}})
	case u.Spec.Type == autov1alpha1.DestroyType && s.DeletionTimestamp != nil: // the stack function lets go of it, and says so
	default:
		told = append(told, news{event.TypeStackSucceeded, string(state), event.StackSucceeded{Run: runOf(u), Counts: countsOf(u)}})
	}
	return told
}

// stalledNews is that an Update's end stalls its Stack: for whoever folds it in, to
// be told before the write. What stalls the Stack after that is not its doing, and
// is told by the stack function.
func stalledNews(u *autov1alpha1.Update, before, after *pulumiv1.StackStatus) []news {
	if !stack.NewlyStalled(before, after) {
		return nil
	}
	reason := meta.FindStatusCondition(after.Conditions, pulumiv1.StalledCondition).Reason
	return []news{{event.TypeStackStalled, "stalled", event.StackStalled{Reason: reason, Update: u.Name}}}
}

// folded says whether the Stack's last Update is this one.
func folded(s *pulumiv1.Stack, u *autov1alpha1.Update) bool {
	return stateOf(u) != autov1alpha1.ResultNotRun && s.Status.LastUpdate != nil && s.Status.LastUpdate.Name == u.Name
}

func stateOf(u *autov1alpha1.Update) autov1alpha1.ResultState {
	if u.Status.Result == nil {
		return autov1alpha1.ResultFailed // settled by nobody of ours
	}
	return u.Status.Result.State
}

func runOf(u *autov1alpha1.Update) event.Run {
	return event.Run{Update: u.Name, Type: string(u.Spec.Type)}
}

func countsOf(u *autov1alpha1.Update) event.Counts {
	c := event.Counts{Permalink: u.Status.Permalink}
	if u.Status.Result != nil {
		c.Changes = u.Status.Result.Changes
	}
	return c
}

func stackName(u *autov1alpha1.Update) string {
	if u.Annotations[pulumiv1.AnnotationStackUID] == "" {
		return ""
	}
	return u.Labels[pulumiv1.LabelStackName]
}
