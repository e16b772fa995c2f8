package stack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// paths are the globs of what in its repository a Stack depends on; none if it
// depends on all.
func paths(stack *pulumiv1.Stack) []string {
	depth := 0 // a comma between braces is the glob's own
	globs := strings.FieldsFunc(stack.Annotations[pulumiv1.AnnotationPaths], func(r rune) bool {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		return r == '\n' || r == ',' && depth <= 0
	})
	for i := range globs {
		globs[i] = strings.Trim(strings.TrimSpace(globs[i]), "/")
	}
	return slices.DeleteFunc(globs, func(g string) bool { return g == "" })
}

// validatePaths says what is wrong with the globs, or "". One that matched
// nothing would hide each commit.
func validatePaths(stack *pulumiv1.Stack) string {
	for _, glob := range paths(stack) {
		if !doublestar.ValidatePattern(glob) || strings.HasPrefix(glob, "!") || strings.HasPrefix(glob, "./") || slices.Contains(strings.Split(glob, "/"), "..") {
			return fmt.Sprintf("annotation %s: %q is no glob of files in the repository, as apps/web/** is", pulumiv1.AnnotationPaths, glob)
		}
	}
	return ""
}

// Touches says whether one of the files that changed is one that the Stack
// depends on. A glob that names a folder stands for all in it.
func Touches(stack *pulumiv1.Stack, changed []string) bool {
	globs := paths(stack)
	if len(globs) == 0 {
		return true
	}
	for _, file := range changed {
		for _, glob := range globs {
			if doublestar.MatchUnvalidated(glob, file) || doublestar.MatchUnvalidated(glob+"/**", file) {
				return true
			}
		}
	}
	return false
}

// Base is the commit that a new one is compared with for what it changes: the
// one that runs, or the one that ran last. It is "" if there is nothing to compare:
// the Stack depends on all of its repository, or nothing has run.
func Base(stack *pulumiv1.Stack) string {
	switch {
	case len(paths(stack)) == 0:
		return ""
	case stack.Status.CurrentUpdate != nil && stack.Status.CurrentUpdate.Commit != "":
		return stack.Status.CurrentUpdate.Commit
	case stack.Status.LastUpdate != nil:
		return stack.Status.LastUpdate.LastAttemptedCommit
	default:
		return ""
	}
}

// SameAs notes in what is seen of a Stack's source that the revision is, in all
// that the Stack depends on, the same as base.
func SameAs(stack *pulumiv1.Stack, seen *pulumiv1.SourceStatus, base string) {
	seen.SameAs, seen.Paths = base, stack.Annotations[pulumiv1.AnnotationPaths]
}

// sameAs is the commit that ran and that the newest one is the same as, in what
// the Stack depends on; "" if it is not, or if that is not known. What was found
// for other paths, or for another commit than the one that ran last, does not
// count: so each commit is compared with what ran, and not with its parent, and
// none that was left out can hide another.
func sameAs(stack *pulumiv1.Stack) string {
	seen, last := stack.Status.Source, stack.Status.LastUpdate
	if seen == nil || seen.SameAs == "" || last == nil || len(paths(stack)) == 0 ||
		seen.Paths != stack.Annotations[pulumiv1.AnnotationPaths] || seen.SameAs != last.LastAttemptedCommit {
		return ""
	}
	return seen.SameAs
}
