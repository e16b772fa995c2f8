package source

import (
	"context"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/gitremote"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// looked is what a look at a repository found, for all Stacks that share it.
type looked struct {
	poll     stack.Poll
	revision string
	problem  string
	// changed are the files that differ from a commit, of those that were asked
	// for; nil where that is not known.
	changed map[string]*[]string
}

// same says whether what was found is, in all that a Stack depends on, the same as
// base. Where that cannot be found out it is another: a run too many is better
// than a change that is lost.
func (f *Function) same(ctx context.Context, s *pulumiv1.Stack, look *looked, base string) bool {
	if base == look.revision {
		return false // nothing to compare: it is the one that ran
	}
	changed, asked := look.changed[base]
	if !asked {
		changed = f.changed(ctx, look, base)
		if look.changed == nil {
			look.changed = map[string]*[]string{}
		}
		look.changed[base] = changed
	}
	return changed != nil && !stack.Touches(s, *changed)
}

// changed asks once for the files that differ.
func (f *Function) changed(ctx context.Context, look *looked, base string) *[]string {
	credentials, problem, err := f.credentials(ctx, look.poll)
	if err == nil && problem == "" {
		f.comparing.Lock()
		defer f.comparing.Unlock()
		limited, cancel := context.WithTimeout(ctx, patience/2)
		defer cancel()
		var files []string
		remote := gitremote.Remote{URL: look.poll.Repository, Credentials: credentials}
		if files, err = remote.Changed(limited, base, look.revision); err == nil {
			return &files
		}
		problem = err.Error()
	}
	f.Log.Warn("What a commit changes is not known", "namespace", look.poll.Namespace, "from", base, "to", look.revision, "problem", problem)
	return nil
}
