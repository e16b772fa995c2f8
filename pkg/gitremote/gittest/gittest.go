// Package gittest makes git repositories for tests with the git program, and
// serves them over HTTP on loopback with git's own http-backend.
//
// It promises that nothing of the developer's own git configuration counts.
package gittest

import (
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Repository is a repository in a folder of its own.
type Repository struct {
	// Dir is the folder, with a worktree.
	Dir string
	t   testing.TB
}

// New makes a repository with the branch main and no commit.
func New(t testing.TB) *Repository {
	t.Helper()
	r := &Repository{Dir: filepath.Join(t.TempDir(), "repository"), t: t}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Git("init", "--quiet", "--initial-branch=main")
	return r
}

// URL by which the repository is read as a folder.
func (r *Repository) URL() string { return "file://" + r.Dir }

// Git runs a git command in the repository and gives what it printed.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	return r.GitWith("", args...)
}

// GitWith runs a git command that reads input.
func (r *Repository) GitWith(input string, args ...string) string {
	r.t.Helper()
	command := exec.Command("git", args...)
	command.Dir = r.Dir
	command.Env = environment()
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@updraft.dev",
		"GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@updraft.dev",
	}
}

// Write writes a file of the worktree.
func (r *Repository) Write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// Commit commits the whole worktree, changed or not, and gives the hash.
func (r *Repository) Commit() string {
	r.t.Helper()
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--allow-empty", "--message=A change")
	return r.Git("rev-parse", "HEAD")
}

// Server serves a repository over HTTP.
type Server struct {
	// URL of the repository.
	URL string

	mu         sync.Mutex
	user, pass string
	old        bool
	sessions   int
	refused    int
}

// Serve serves a repository.
func Serve(t testing.TB, r *Repository) *Server {
	t.Helper()
	backend := filepath.Join(r.Git("--exec-path"), "git-http-backend")
	env := append(environment(), "GIT_PROJECT_ROOT="+filepath.Join(r.Dir, ".git"), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test")
	s := &Server{}
	handler := &cgi.Handler{Path: backend, Root: "/repository.git", Env: env, Stderr: io.Discard}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !strings.HasPrefix(request.URL.Path, "/repository.git/") {
			http.NotFound(w, request)
			return
		}
		if !s.allowed(request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		served := *handler
		served.Env = slices.Concat(handler.Env, s.begin(request))
		served.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL + "/repository.git"
	return s
}

// Protect lets in only who has this name and password.
func (s *Server) Protect(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user, s.pass = user, password
}

func (s *Server) allowed(request *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.user == "" {
		return true
	}
	user, password, _ := request.BasicAuth()
	if user == s.user && password == s.pass {
		return true
	}
	s.refused++
	return false
}

// Old makes the server speak the older protocol only, which gives no commit that
// no ref points to.
func (s *Server) Old() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = true
}

// begin counts a session, which begins with one GET, and gives the protocol that
// its client asks for.
func (s *Server) begin(request *http.Request) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if request.Method == http.MethodGet {
		s.sessions++
	}
	if s.old {
		return nil
	}
	return []string{"GIT_PROTOCOL=" + request.Header.Get("Git-Protocol")}
}

// Sessions is how many clients have begun to talk to the server.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

// Refused is how many requests had no credentials, or the wrong ones.
func (s *Server) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}
