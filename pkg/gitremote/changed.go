package gitremote

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v6/plumbing"
	"github.com/go-git/go-git/v6/plumbing/object"
	"github.com/go-git/go-git/v6/plumbing/protocol/packp"
	"github.com/go-git/go-git/v6/plumbing/transport"
	"github.com/go-git/go-git/v6/storage/memory"
)

// maxTrees is how much of a repository's folders is held to compare two commits,
// in bytes. A hundred thousand files are some 5 MB.
const maxTrees = 32 << 20

// ErrTooLarge is what has more folders than are compared.
var ErrTooLarge = errors.New("the repository is too large to compare two commits of it")

// Changed lists the files that differ between two commits, as paths from the
// repository's root. It brings their folders, and the content of no file. It fails
// where a server does not do that, or no longer has one of the commits.
func (r Remote) Changed(ctx context.Context, from, to string) ([]string, error) {
	session, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = session.Close() }() // only read from
	into := &limited{Storage: memory.NewStorage(), left: maxTrees}
	err = session.Fetch(ctx, into, &transport.FetchRequest{
		Wants: []plumbing.Hash{plumbing.NewHash(from), plumbing.NewHash(to)}, Depth: 1, Filter: packp.FilterBlobNone(),
	})
	if errors.Is(err, ErrTooLarge) || errors.Is(err, transport.ErrFilterNotSupported) {
		return nil, err
	}
	if err != nil {
		return nil, r.explain(err)
	}
	var trees [2]*object.Tree
	for i, hash := range []string{from, to} {
		commit, err := object.GetCommit(into, plumbing.NewHash(hash))
		if err != nil {
			return nil, fmt.Errorf("%w: repository %s has no commit %s", ErrRef, r.shown(), hash)
		}
		if trees[i], err = commit.Tree(); err != nil {
			return nil, fmt.Errorf("cannot read commit %s: %w", hash, err)
		}
	}
	changes, err := object.DiffTreeContext(ctx, trees[0], trees[1])
	if err != nil {
		return nil, fmt.Errorf("cannot compare commits %s and %s: %w", from, to, err)
	}
	var files []string
	for _, change := range changes {
		for _, name := range []string{change.From.Name, change.To.Name} {
			if name != "" && (len(files) == 0 || files[len(files)-1] != name) {
				files = append(files, name)
			}
		}
	}
	return files, nil
}

// limited is a storage that takes so much and no more.
type limited struct {
	*memory.Storage
	left int64
}

// SetEncodedObject keeps an object, if there is room.
func (l *limited) SetEncodedObject(o plumbing.EncodedObject) (plumbing.Hash, error) {
	if l.left -= o.Size(); l.left < 0 {
		return plumbing.ZeroHash, ErrTooLarge
	}
	return l.Storage.SetEncodedObject(o)
}
