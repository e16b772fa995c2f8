package gitremote

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v6/plumbing"
	"github.com/go-git/go-git/v6/plumbing/object"
	"github.com/go-git/go-git/v6/plumbing/transport"
	"github.com/go-git/go-git/v6/storage"

	"github.com/updraft-dev/updraft/pkg/run"
)

// Bring puts the commit that a ref names into a storage, with its history, or
// with shallow without, and says what it found. A ref that is a hash is that
// very commit: it is asked for by its hash, and where a server does not allow
// that, all branches and tags are brought and it is looked for among them.
func (r Remote) Bring(ctx context.Context, into storage.Storer, ref string, shallow bool) (Found, error) {
	if !run.IsCommit(ref) {
		return r.bringRef(ctx, into, ref, shallow)
	}
	found := Found{Commit: plumbing.NewHash(ref).String(), object: plumbing.NewHash(ref)}
	err := r.bringHash(ctx, into, found.object, shallow)
	if err == nil || errors.Is(err, ErrURL) || errors.Is(err, ErrRepository) || errors.Is(err, ErrCredentials) || ctx.Err() != nil {
		return found, err
	}
	if err := r.bringAll(ctx, into); err != nil {
		return found, err
	}
	if !holds(into, found.object) {
		return found, fmt.Errorf("%w: repository %s has no commit %s", ErrRef, r.shown(), found.Commit)
	}
	return found, nil
}

func (r Remote) bringRef(ctx context.Context, into storage.Storer, ref string, shallow bool) (Found, error) {
	session, err := r.open(ctx)
	if err != nil {
		return Found{}, err
	}
	defer func() { _ = session.Close() }() // only read from
	found, err := r.find(ctx, session, ref)
	if err != nil {
		return found, err
	}
	if err := r.fetch(ctx, session, into, shallow, found.object); err != nil {
		return found, err
	}
	if !holds(into, plumbing.NewHash(found.Commit)) {
		return found, fmt.Errorf("%w: %s of repository %s names no commit", ErrRef, found.Name, r.shown())
	}
	return found, nil
}

func (r Remote) bringHash(ctx context.Context, into storage.Storer, hash plumbing.Hash, shallow bool) error {
	session, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // only read from
	if err := r.fetch(ctx, session, into, shallow, hash); err != nil {
		return err
	}
	if !holds(into, hash) {
		return fmt.Errorf("%w: repository %s has no commit %s", ErrRef, r.shown(), hash)
	}
	return nil
}

// bringAll brings all branches and tags with their history.
func (r Remote) bringAll(ctx context.Context, into storage.Storer) error {
	session, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // only read from
	listed, err := session.GetRemoteRefs(ctx, &transport.GetRemoteRefsOptions{RefPrefixes: []string{"refs/heads/", "refs/tags/"}})
	if err != nil {
		return r.explain(err)
	}
	var wants []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, reference := range listed.References {
		name := reference.Name()
		if reference.Type() != plumbing.HashReference || seen[reference.Hash()] || !name.IsBranch() && !name.IsTag() || isPeeled(name) {
			continue
		}
		seen[reference.Hash()] = true
		wants = append(wants, reference.Hash())
	}
	return r.fetch(ctx, session, into, false, wants...)
}

func isPeeled(name plumbing.ReferenceName) bool {
	text := name.String()
	return len(text) > len(peeled) && text[len(text)-len(peeled):] == peeled
}

func (r Remote) fetch(ctx context.Context, session transport.Session, into storage.Storer, shallow bool, wants ...plumbing.Hash) error {
	if len(wants) == 0 {
		return fmt.Errorf("%w: repository %s is empty", ErrRef, r.shown())
	}
	request := &transport.FetchRequest{Wants: wants}
	if shallow {
		request.Depth = 1
	}
	err := session.Fetch(ctx, into, request)
	if errors.Is(err, transport.ErrShallowNotSupported) {
		request.Depth = 0 // the whole is more than was asked for, and as good
		err = session.Fetch(ctx, into, request)
	}
	if err != nil && !errors.Is(err, transport.ErrNoChange) {
		return r.explain(err)
	}
	return nil
}

func holds(st storage.Storer, hash plumbing.Hash) bool {
	_, err := object.GetCommit(st, hash)
	return err == nil
}
