package sweep

import (
	"sort"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// World is all objects of our kinds.
type World struct {
	Stacks     []pulumiv1.Stack
	Programs   []pulumiv1.Program
	Workspaces []autov1alpha1.Workspace
	Updates    []autov1alpha1.Update
}

// Missed lists what is not at rest and may have to be looked at, each once,
// sorted.
func Missed(w World) []event.Ref {
	refs := map[event.Ref]bool{}
	stacks, programs, mayHold := map[string]bool{}, revisions(w.Programs), holders(w.Updates)
	for i := range w.Stacks {
		s := &w.Stacks[i]
		stacks[string(s.UID)] = true
		if !atRest(s, programs) {
			refs[event.Ref{Kind: event.KindStack, Namespace: s.Namespace, Name: s.Name}] = true
		}
	}
	for i := range w.Programs {
		if p := &w.Programs[i]; p.Status.ObservedGeneration != p.Generation {
			refs[event.Ref{Kind: event.KindProgram, Namespace: p.Namespace, Name: p.Name}] = true
		}
	}
	orphan := func(namespace, name, uid string) {
		if uid != "" && name != "" && !stacks[uid] {
			refs[event.Ref{Kind: event.KindStack, Namespace: namespace, Name: name}] = true
		}
	}
	for i := range w.Workspaces {
		ws := &w.Workspaces[i]
		orphan(ws.Namespace, ws.Name, ws.Annotations[pulumiv1.AnnotationStackUID])
		if ws.DeletionTimestamp != nil || ws.Status.Run != nil && !mayHold[ws.Status.Run.UID] {
			refs[event.Ref{Kind: event.KindWorkspace, Namespace: ws.Namespace, Name: ws.Name}] = true
		}
	}
	for i := range w.Updates {
		u := &w.Updates[i]
		orphan(u.Namespace, u.Labels[pulumiv1.LabelStackName], u.Annotations[pulumiv1.AnnotationStackUID])
		if !u.Settled() || record.HasFinalizer(u) {
			refs[event.Ref{Kind: event.KindUpdate, Namespace: u.Namespace, Name: u.Name}] = true
		}
	}
	return sorted(refs)
}

// revisions are what Stacks may run, by the Program's namespace and name.
func revisions(programs []pulumiv1.Program) map[types.NamespacedName]string {
	found := map[types.NamespacedName]string{}
	for i := range programs {
		p := &programs[i]
		found[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = strconv.FormatInt(p.Generation, 10)
	}
	return found
}

// holders are the Updates that may hold a lock, by UID.
func holders(updates []autov1alpha1.Update) map[types.UID]bool {
	found := map[types.UID]bool{}
	for i := range updates {
		found[updates[i].UID] = !updates[i].Settled()
	}
	return found
}

// atRest says whether a Stack waits for nothing but a change of itself or of its
// source: it is Ready or Stalled as both are now, with nothing claimed, no other
// revision seen and nothing that comes with time or with another object.
func atRest(s *pulumiv1.Stack, programs map[types.NamespacedName]string) bool {
	if s.DeletionTimestamp != nil || s.Status.CurrentUpdate != nil ||
		s.Status.ObservedGeneration != s.Generation ||
		s.Status.ObservedReconcileRequest != s.Annotations[pulumiv1.AnnotationReconcileRequest] {
		return false
	}
	if stack.RunsBehind(s) {
		return false
	}
	ran := s.Status.LastUpdate != nil && s.Status.LastUpdate.Generation == s.Generation
	if p := s.Spec.ProgramRef; p != nil && s.Spec.GitSource == nil && ran {
		revision, found := programs[types.NamespacedName{Namespace: s.Namespace, Name: p.Name}]
		if !found || revision != s.Status.LastUpdate.LastAttemptedCommit {
			return false
		}
	}
	if stalled := meta.FindStatusCondition(s.Status.Conditions, pulumiv1.StalledCondition); stalled != nil {
		switch pulumiv1.StalledReason(stalled.Reason) {
		case pulumiv1.StalledSourceUnavailable:
			return false
		case pulumiv1.StalledSpecInvalid:
			return true
		default:
			return ran // else something that is not of the Stack is in its way
		}
	}
	return meta.IsStatusConditionTrue(s.Status.Conditions, pulumiv1.ReadyCondition) && !s.Spec.ContinueResyncOnCommitMatch
}

// Expired lists the Updates that have outlived their time since they were
// settled and from which nothing follows any more.
func Expired(updates []autov1alpha1.Update, now time.Time) []autov1alpha1.Update {
	var expired []autov1alpha1.Update
	for _, u := range updates {
		ttl := u.Spec.TtlAfterCompleted
		if ttl == nil || !u.Settled() || record.HasFinalizer(&u) || u.DeletionTimestamp != nil {
			continue
		}
		if now.After(u.Status.EndTime.Add(ttl.Duration)) {
			expired = append(expired, u)
		}
	}
	return expired
}

func sorted(refs map[event.Ref]bool) []event.Ref {
	list := make([]event.Ref, 0, len(refs))
	for r := range refs {
		list = append(list, r)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].String() < list[j].String() })
	return list
}
