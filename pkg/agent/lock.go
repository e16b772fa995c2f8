package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

// holder is who holds a stack's lock, as the CLI names them.
type holder struct {
	user  string
	host  string
	pid   int64
	since string
}

func (h holder) String() string {
	return fmt.Sprintf("%s@%s (pid %d) since %s", h.user, h.host, h.pid, h.since)
}

// lockState is what the CLI said about a stack's lock.
type lockState struct {
	// locked says that the operation was refused because of a lock.
	locked bool
	// holders of the lock, as far as they were named.
	holders []holder
	// complete says that each holder is among the holders.
	complete bool
}

const (
	// lockedText begins the error of a backend that keeps locks as files.
	lockedText = "the stack is currently locked by "
	// createdText is in each line of that error that names a holder.
	createdText = ": created by "
	// conflictText is the error of Pulumi Cloud, which names nobody.
	conflictText = "[409] Conflict: Another update is currently in progress"
)

var (
	lockedLine = regexp.MustCompile(`^(?:error: )?` + lockedText + `(\d{1,9}) lock\(s\)\.`)
	holderLine = regexp.MustCompile(`^\s+\S.*` + createdText + `([^()]*)@([^\s()@]+) \(pid (\d{1,18})\) at (\S+)$`)
)

// parseLock reads the CLI's error text. It is strict about who holds the lock:
// unless the text has the one known form, with as many holders as it counts and
// nobody else named anywhere, it is not complete.
func parseLock(stderr string) lockState {
	state := lockState{locked: strings.Contains(stderr, lockedText) || strings.Contains(stderr, conflictText)}
	count := -1
	for line := range strings.Lines(stderr) {
		line = strings.TrimRight(line, "\r\n")
		if m := lockedLine.FindStringSubmatch(line); m != nil && count < 0 {
			count, _ = strconv.Atoi(m[1])
		} else if m := holderLine.FindStringSubmatch(line); m != nil && count >= 0 {
			pid, _ := strconv.ParseInt(m[3], 10, 64)
			state.holders = append(state.holders, holder{user: m[1], host: m[2], pid: pid, since: m[4]})
		}
	}
	state.complete = count > 0 && count == len(state.holders) &&
		strings.Count(stderr, lockedText) == 1 &&
		strings.Count(stderr, createdText) == count &&
		!strings.Contains(stderr, conflictText)
	return state
}

// heldByEnded says whether each holder of the lock is a process that has ended.
// A process of an ended run without a pid stands for every process of its host.
func (l lockState) heldByEnded(ended []autov1alpha1.LockHolder) bool {
	if !l.locked || !l.complete || len(l.holders) == 0 {
		return false
	}
	return !slices.ContainsFunc(l.holders, func(h holder) bool {
		return !slices.ContainsFunc(ended, func(e autov1alpha1.LockHolder) bool {
			return e.Host != "" && e.Host == h.host && (e.Pid == 0 || e.Pid == h.pid)
		})
	})
}

// fault of an operation that the lock has refused.
func (l lockState) fault(stack string) *fault {
	if len(l.holders) == 0 {
		return faultf(autov1alpha1.ReasonUpdateConflict,
			"Another update of stack %s is in progress: wait for it to end, or run pulumi cancel once it is known to be gone", stack)
	}
	names := make([]string, len(l.holders))
	for i, h := range l.holders {
		names[i] = h.String()
	}
	slices.Sort(names)
	return faultf(autov1alpha1.ReasonUpdateConflict,
		"The stack %s is locked by %s: wait for it to end, or run pulumi cancel once it is known to be gone",
		stack, strings.Join(names, " and "))
}
