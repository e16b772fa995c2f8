package gitremote

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v6/plumbing"
	"github.com/go-git/go-git/v6/plumbing/client"
	"github.com/go-git/go-git/v6/plumbing/protocol"
	"github.com/go-git/go-git/v6/plumbing/transport"
	githttp "github.com/go-git/go-git/v6/plumbing/transport/http"
)

// tokenUser goes with a token: servers want some name and look at none.
const tokenUser = "git"

// peeled ends the name of what an annotated tag points to.
const peeled = "^{}"

// Remote is a repository elsewhere.
type Remote struct {
	// URL of the repository: https, http or file.
	URL string
	// Credentials to present to it.
	Credentials Credentials
}

// Credentials for a repository: a token, or a name and a password, or none.
type Credentials struct {
	Token, Username, Password string
}

// Found is what a ref names.
type Found struct {
	// Name of the ref in full; "" for a commit that was asked for by its hash.
	Name string
	// Commit that it names.
	Commit string
	// object is what the ref points to: the commit, or an annotated tag.
	object plumbing.Hash
}

// Resolve asks which commit a ref names now: a branch or a tag, short or in
// full, or "" for the repository's default branch. It is one git ls-remote.
func (r Remote) Resolve(ctx context.Context, ref string) (Found, error) {
	session, err := r.open(ctx)
	if err != nil {
		return Found{}, err
	}
	defer func() { _ = session.Close() }() // only read from
	return r.find(ctx, session, ref)
}

func (r Remote) open(ctx context.Context) (transport.Session, error) {
	address, err := r.address()
	if err != nil {
		return nil, err
	}
	var options []client.Option
	switch c := r.Credentials; {
	case c.Token != "":
		options = append(options, client.WithHTTPAuth(&githttp.BasicAuth{Username: tokenUser, Password: c.Token}))
	case c.Username != "" || c.Password != "":
		options = append(options, client.WithHTTPAuth(&githttp.BasicAuth{Username: c.Username, Password: c.Password}))
	}
	session, err := client.New(options...).Handshake(ctx, &transport.Request{
		URL: address, Command: transport.UploadPackService, Protocol: protocol.V2,
	})
	if err != nil {
		return nil, r.explain(err)
	}
	return session, nil
}

// address is the URL of a kind that is served.
func (r Remote) address() (*url.URL, error) {
	address, err := url.Parse(r.URL)
	if err != nil || address.Scheme == "" {
		return nil, fmt.Errorf("%w: %q is no https, http or file URL", ErrURL, r.shown())
	}
	switch address.Scheme {
	case "https", "http", "file":
		return address, nil
	default:
		return nil, fmt.Errorf("%w: %s URLs are not served yet, only https, http and file", ErrURL, address.Scheme)
	}
}

// shown is the URL without a password.
func (r Remote) shown() string {
	if address, err := url.Parse(r.URL); err == nil {
		return address.Redacted()
	}
	return "it"
}

// find looks a ref up by git's rules, but that a branch comes before a tag of
// the same name, as for git clone.
func (r Remote) find(ctx context.Context, session transport.Session, ref string) (Found, error) {
	candidates := names(ref)
	listed, err := session.GetRemoteRefs(ctx, &transport.GetRemoteRefsOptions{RefPrefixes: candidates})
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		listed, err = &transport.RemoteRefs{}, nil // or it has none of these
	}
	if err != nil {
		return Found{}, r.explain(err)
	}
	refs := map[string]*plumbing.Reference{}
	for _, reference := range listed.References {
		refs[reference.Name().String()] = reference
	}
	for _, name := range candidates {
		if found, ok := follow(refs, name); ok {
			return found, nil
		}
	}
	if ref == "" {
		return Found{}, fmt.Errorf("%w: repository %s has no default branch", ErrRef, r.shown())
	}
	return Found{}, fmt.Errorf("%w: repository %s has no branch or tag %q", ErrRef, r.shown(), ref)
}

func names(ref string) []string {
	switch {
	case ref == "" || ref == "HEAD":
		return []string{"HEAD", "refs/heads/"}
	case strings.HasPrefix(ref, "refs/"):
		return []string{ref}
	default:
		return []string{"refs/heads/" + ref, "refs/tags/" + ref, "refs/" + ref}
	}
}

// follow a name to a commit. What a symbolic ref leads to was listed with it.
func follow(refs map[string]*plumbing.Reference, name string) (Found, bool) {
	reference, ok := refs[name]
	if ok && reference.Type() == plumbing.SymbolicReference {
		reference, ok = refs[reference.Target().String()]
	}
	if !ok || reference.Type() != plumbing.HashReference {
		return Found{}, false
	}
	found := Found{Name: reference.Name().String(), Commit: reference.Hash().String(), object: reference.Hash()}
	if target, ok := refs[name+peeled]; ok {
		found.Commit = target.Hash().String()
	}
	return found, true
}

// explain gives an error of a transport as one of ours.
func (r Remote) explain(err error) error {
	why := kind(err)
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %s", why.err, strings.ReplaceAll(why.sentence, "%", r.shown()))
}
