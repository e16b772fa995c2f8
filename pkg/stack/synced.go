package stack

import (
	"fmt"
	"math"
	"time"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

const (
	// maxFailures is how many failures beyond the first stop the retries. The
	// reference has the same number.
	maxFailures = 3
	// firstBackoff and backoffFactor give the waits 10 s, 30 s, 90 s, ...
	firstBackoff  = 10 * time.Second
	backoffFactor = 3
	// defaultMaxBackoff caps the waits.
	defaultMaxBackoff = 24 * time.Hour
	// minResync is the shortest resync period, and the default.
	minResync = time.Minute
)

// sync is whether what ran last is what is wanted.
type sync struct {
	// why a run is needed; "" if none is.
	why string
	// resync says that nothing but time asks for it.
	resync bool
	// next is when to look again though nothing changes; zero if never.
	next time.Time
}

// synced compares what ran last with what is wanted: generation, request,
// revision, and then how it went. Nothing is hashed. A revision "" is one that
// nobody has seen, which is no other than the one that ran.
func synced(stack *pulumiv1.Stack, revision string, now time.Time) sync {
	last := stack.Status.LastUpdate
	switch {
	case last == nil && deleting(stack):
		return sync{why: "Stack marked for deletion"}
	case last == nil:
		return sync{why: "Initial stack update"}
	case deleting(stack) && last.Type != pulumiv1.DestroyUpdateType:
		return sync{why: "Stack marked for deletion"}
	case last.Generation != stack.Generation:
		return sync{why: fmt.Sprintf("New stack generation: %d", stack.Generation)}
	case last.ReconcileRequest != request(stack):
		return sync{why: fmt.Sprintf("Sync request: %q", request(stack))}
	case last.State == pulumiv1.SucceededStackStateMessage:
		return syncedAfterSuccess(stack, last, revision, now)
	default:
		return syncedAfterFailure(stack, last, revision, now)
	}
}

// Destroyed says whether a deleted Stack's destroy has succeeded, so that it may
// go.
func Destroyed(stack *pulumiv1.Stack) bool {
	last := stack.Status.LastUpdate
	return deleting(stack) && last != nil && last.State == pulumiv1.SucceededStackStateMessage && synced(stack, "", time.Time{}).why == ""
}

func syncedAfterSuccess(stack *pulumiv1.Stack, last *pulumiv1.StackUpdateState, revision string, now time.Time) sync {
	if deleting(stack) {
		return sync{} // destroyed: the source no longer counts
	}
	if revision != "" && last.LastSuccessfulCommit != revision {
		return sync{why: fmt.Sprintf("New commit detected: %q", revision)}
	}
	if !stack.Spec.ContinueResyncOnCommitMatch {
		return sync{}
	}
	is := dueAt(last.LastResyncTime.Add(resyncPeriod(stack)), now, "Resync time elapsed")
	is.resync = is.why != ""
	return is
}

func syncedAfterFailure(stack *pulumiv1.Stack, last *pulumiv1.StackUpdateState, revision string, now time.Time) sync {
	retry := dueAt(last.LastResyncTime.Add(backoff(stack, last.Failures)), now, "Backoff time elapsed")
	switch {
	case deleting(stack):
		return retry // a destroy is tried for as long as the Stack is there
	case revision != "" && last.LastAttemptedCommit != revision:
		return sync{why: fmt.Sprintf("New commit detected: %q", revision)}
	case final(last), exhausted(stack, last):
		return sync{}
	default:
		return retry
	}
}

func dueAt(due, now time.Time, why string) sync {
	if now.Before(due) {
		return sync{next: due}
	}
	return sync{why: why}
}

// final says whether a failure is not tried again as things are.
func final(last *pulumiv1.StackUpdateState) bool {
	switch autov1alpha1.ConditionReason(last.Reason) {
	case autov1alpha1.ReasonCanceled, autov1alpha1.ReasonPulumiVersionTooLow, autov1alpha1.ReasonInvalid:
		return true
	default:
		return false
	}
}

// exhausted says whether a failure was tried again as often as it is.
func exhausted(stack *pulumiv1.Stack, last *pulumiv1.StackUpdateState) bool {
	if last.Reason == string(autov1alpha1.ReasonUpdateConflict) && stack.Spec.RetryOnUpdateConflict {
		return false
	}
	return last.Failures >= maxFailures
}

// backoff is the wait after a failure: 10 s · 3ⁿ, capped.
func backoff(stack *pulumiv1.Stack, failures int64) time.Duration {
	limit := defaultMaxBackoff
	if s := stack.Spec.RetryMaxBackoffDurationSeconds; s > 0 {
		limit = seconds(s)
	}
	wait := firstBackoff
	for ; failures > 0 && wait < limit; failures-- {
		if wait > limit/backoffFactor {
			return limit
		}
		wait *= backoffFactor
	}
	return wait // the first is as long as it is, whatever the cap
}

func resyncPeriod(stack *pulumiv1.Stack) time.Duration {
	return max(seconds(stack.Spec.ResyncFrequencySeconds), minResync)
}

// seconds is a duration of a user's number of them: none is negative, and a
// number too large for one is the longest.
func seconds(n int64) time.Duration {
	return time.Duration(max(0, min(n, math.MaxInt64/int64(time.Second)))) * time.Second
}
