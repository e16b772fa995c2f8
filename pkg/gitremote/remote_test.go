package gitremote

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	githttp "github.com/go-git/go-git/v6/plumbing/transport/http"
	"github.com/go-git/go-git/v6/storage/memory"

	"github.com/updraft-dev/updraft/pkg/gitremote/gittest"
)

// world is a repository with a branch, a tag of each sort and a commit that is
// the tip of nothing, and its URLs.
type world struct {
	repository               *gittest.Repository
	first, tagged, tip, side string
}

func newWorld(t *testing.T) world {
	r := gittest.New(t)
	w := world{repository: r}
	r.Write("file", "1")
	w.first = r.Commit()
	r.Write("file", "2")
	w.tagged = r.Commit()
	r.Git("tag", "plain")
	r.Git("tag", "--annotate", "--message=A version", "v1")
	r.Git("checkout", "--quiet", "-b", "feature/side")
	r.Write("file", "side")
	w.side = r.Commit()
	r.Git("tag", "both", w.first)
	r.Git("branch", "both", w.side)
	r.Git("checkout", "--quiet", "main")
	r.Write("file", "3")
	w.tip = r.Commit()
	return w
}

// ways are the URLs of a repository: as a folder, and over HTTP with each of the
// two protocols.
func (w world) ways(t *testing.T) map[string]string {
	return map[string]string{"file": w.repository.URL(), "http": gittest.Serve(t, w.repository).URL}
}

func TestResolve(t *testing.T) {
	w := newWorld(t)
	cases := map[string]struct{ ref, name, commit string }{
		"A short branch":                         {"main", "refs/heads/main", w.tip},
		"A branch with a slash":                  {"feature/side", "refs/heads/feature/side", w.side},
		"A full branch":                          {"refs/heads/main", "refs/heads/main", w.tip},
		"A lightweight tag":                      {"plain", "refs/tags/plain", w.tagged},
		"An annotated tag leads to its commit":   {"v1", "refs/tags/v1", w.tagged},
		"A full tag":                             {"refs/tags/v1", "refs/tags/v1", w.tagged},
		"A branch comes before a tag":            {"both", "refs/heads/both", w.side},
		"A tag in full, of a branch's name":      {"refs/tags/both", "refs/tags/both", w.first},
		"A ref that is under refs but no branch": {"tags/v1", "refs/tags/v1", w.tagged},
		"No ref is the default branch":           {"", "refs/heads/main", w.tip},
	}
	for way, url := range w.ways(t) {
		for name, c := range cases {
			t.Run(way+"/"+name, func(t *testing.T) {
				found, err := Remote{URL: url}.Resolve(t.Context(), c.ref)
				if err != nil {
					t.Fatal(err)
				}
				if found.Name != c.name || found.Commit != c.commit {
					t.Errorf("Resolve(%q) = %s %s, want %s %s", c.ref, found.Name, found.Commit, c.name, c.commit)
				}
			})
		}
	}
}

func TestBring(t *testing.T) {
	w := newWorld(t)
	gone := w.gone()
	cases := map[string]struct {
		ref     string
		shallow bool
		commit  string
		history int // commits in the storage; 0 is any
		fails   error
	}{
		"A branch with its history":                    {ref: "main", commit: w.tip, history: 3},
		"A branch alone":                               {ref: "main", shallow: true, commit: w.tip, history: 1},
		"An annotated tag alone":                       {ref: "v1", shallow: true, commit: w.tagged},
		"A commit at the tip":                          {ref: w.tip, commit: w.tip, history: 3},
		"A commit that the branch has left behind":     {ref: w.first, commit: w.first, history: 1},
		"A commit behind the tip, alone":               {ref: w.tagged, shallow: true, commit: w.tagged, history: 1},
		"A commit in capitals":                         {ref: strings.ToUpper(w.tip), commit: w.tip, history: 3},
		"A commit that is in no repository":            {ref: strings.Repeat("ab", 20), fails: ErrRef},
		"A branch that is not there":                   {ref: "nowhere", fails: ErrRef},
		"A tag of what is no commit":                   {ref: "blob", fails: ErrRef},
		"A name that git does not allow":               {ref: "a..b", fails: ErrRef},
		"A commit that is no longer in any branch, is": {ref: gone, commit: gone, history: 4},
	}
	for way, url := range w.ways(t) {
		for name, c := range cases {
			t.Run(way+"/"+name, func(t *testing.T) {
				st := memory.NewStorage()
				found, err := Remote{URL: url}.Bring(t.Context(), st, c.ref, c.shallow)
				if c.fails != nil {
					if !errors.Is(err, c.fails) {
						t.Fatalf("Bring() error = %v, want one that is %v", err, c.fails)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if found.Commit != c.commit || c.history > 0 && len(st.Commits) != c.history {
					t.Errorf("Bring() = %s with %d commits, want %s with %d", found.Commit, len(st.Commits), c.commit, c.history)
				}
			})
		}
	}
}

// gone makes a commit that no ref leads to, and a tag of a file.
func (w world) gone() string {
	r := w.repository
	r.Git("tag", "blob", r.Git("rev-parse", "main:file"))
	r.Git("checkout", "--quiet", "--detach")
	r.Write("file", "gone")
	commit := r.Commit()
	r.Git("checkout", "--quiet", "main")
	return commit
}

// A server may answer with the older protocol, and then gives only what its refs
// lead to: the commit is looked for among all branches and tags.
func TestBringFromAServerThatGivesOnlyTips(t *testing.T) {
	w := newWorld(t)
	server := gittest.Serve(t, w.repository)
	server.Old()
	for _, shallow := range []bool{false, true} {
		st := memory.NewStorage()
		found, err := Remote{URL: server.URL}.Bring(t.Context(), st, w.first, shallow)
		if err != nil {
			t.Fatal(err)
		}
		if found.Commit != w.first || !holds(st, found.object) {
			t.Errorf("Bring() = %s, want %s", found.Commit, w.first)
		}
	}
	if _, err := (Remote{URL: server.URL}).Bring(t.Context(), memory.NewStorage(), strings.Repeat("ab", 20), true); !errors.Is(err, ErrRef) {
		t.Errorf("Bring() of an unknown commit: %v, want %v", err, ErrRef)
	}
}

func TestErrorsAreSortedAndStable(t *testing.T) {
	w := newWorld(t)
	server := gittest.Serve(t, w.repository)
	locked := gittest.Serve(t, w.repository)
	locked.Protect("git", "right")
	empty := gittest.New(t)
	cases := map[string]struct {
		remote Remote
		is     error
		says   string
	}{
		"No such repository":        {Remote{URL: strings.Replace(server.URL, "repository", "other", 1)}, ErrRepository, "there is no repository"},
		"No such folder":            {Remote{URL: "file:///nonexistent/repository"}, ErrRepository, "there is no repository file:///nonexistent/repository"},
		"No credentials":            {Remote{URL: locked.URL}, ErrCredentials, "wants credentials"},
		"Wrong credentials":         {Remote{URL: locked.URL, Credentials: Credentials{Token: "wrong"}}, ErrCredentials, "or others than these"},
		"An empty repository":       {Remote{URL: empty.URL()}, ErrRef, "has no branch or tag"},
		"An empty one over HTTP":    {Remote{URL: gittest.Serve(t, empty).URL}, ErrRef, "has no branch or tag"},
		"Nobody listens":            {Remote{URL: "http://" + unused(t) + "/r.git"}, ErrUnreachable, "refuses connections"},
		"SSH":                       {Remote{URL: "ssh://git@example.com/r.git"}, ErrURL, "ssh URLs are not served yet"},
		"SSH as scp writes it":      {Remote{URL: "git@example.com:r.git"}, ErrURL, "no https, http or file URL"},
		"A path":                    {Remote{URL: "/srv/r.git"}, ErrURL, "no https, http or file URL"},
		"A password is not shown":   {Remote{URL: "http://me:hush@" + unused(t) + "/r.git"}, ErrUnreachable, "me:xxxxx@"},
		"A password, and bad URL":   {Remote{URL: "ftp://me:hush@x/r.git"}, ErrURL, "ftp URLs are not served"},
		"A password, and no URL":    {Remote{URL: "://me:hush@x/r.git"}, ErrURL, "is no https"},
		"A ref that is not there":   {Remote{URL: server.URL}, ErrRef, `has no branch or tag "absent"`},
		"A server that is no git's": {Remote{URL: web(t)}, ErrUnreachable, "cannot be read"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.remote.Resolve(t.Context(), "absent")
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Resolve() error = %v, want one that is %v and says %q", err, c.is, c.says)
			}
			if strings.Contains(fmt.Sprint(err), "hush") || strings.Contains(fmt.Sprint(err), "wrong") {
				t.Errorf("the error names a credential: %v", err)
			}
			_, again := c.remote.Resolve(t.Context(), "absent")
			if fmt.Sprint(err) != fmt.Sprint(again) {
				t.Errorf("the error changes with no cause: %v, then %v", err, again)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	w := newWorld(t)
	server := gittest.Serve(t, w.repository)
	server.Protect("git", "hush")
	if _, err := (Remote{URL: server.URL, Credentials: Credentials{Token: "hush"}}).Resolve(t.Context(), "main"); err != nil {
		t.Error(err)
	}
	server.Protect("me", "hush")
	remote := Remote{URL: server.URL, Credentials: Credentials{Username: "me", Password: "hush"}}
	if _, err := remote.Bring(t.Context(), memory.NewStorage(), "main", true); err != nil {
		t.Error(err)
	}
}

func TestACancelledContextIsNoSentence(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Remote{URL: gittest.Serve(t, newWorld(t).repository).URL}.Resolve(ctx, "main")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Resolve() error = %v, want %v", err, context.Canceled)
	}
}

// unused is an address where nobody listens.
func unused(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// web is a server that answers anything with a page.
func web(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>hello</html>"))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/r.git"
}

// What the system says has ports and servers in it; what is said of it has not.
func TestErrorsOfTheSystemAreSorted(t *testing.T) {
	for says, err := range map[string]error{
		"the host of repository file:///r is not known":      &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "git.example", Server: "10.0.0.1:53"}},
		"repository file:///r did not answer in time":        &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		"the server of repository file:///r failed":          fmt.Errorf("x: %w", &githttp.Err{Status: 502}),
		"the server of repository file:///r refused":         &githttp.Err{Status: 429},
		"the certificate of the server of repository file:/": fmt.Errorf("x: %w", x509.UnknownAuthorityError{}),
	} {
		got := Remote{URL: "file:///r"}.explain(err)
		if !errors.Is(got, ErrUnreachable) || !strings.Contains(got.Error(), says) {
			t.Errorf("explain(%v) = %v, want one that says %q", err, got, says)
		}
	}
}
