// Command gitserver is a git server for the tests on a cluster: a pod with one
// repository in its memory, /repository.git, over smart HTTP. A POST to /commit/PATH
// makes the body the content of that file on the branch main, and answers with the
// commit.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"time"

	"github.com/go-git/go-billy/v6/memfs"
	"github.com/go-git/go-billy/v6/util"
	"github.com/go-git/go-git/v6"
	"github.com/go-git/go-git/v6/backend"
	"github.com/go-git/go-git/v6/plumbing"
	"github.com/go-git/go-git/v6/plumbing/object"
	"github.com/go-git/go-git/v6/storage"
	"github.com/go-git/go-git/v6/storage/memory"
)

// only loads the one repository that there is.
type only struct{ store storage.Storer }

func (o only) Load(*url.URL) (storage.Storer, error) { return o.store, nil }

func main() {
	store, files := memory.NewStorage(), memfs.New()
	repository, err := git.Init(store, git.WithWorkTree(files), git.WithDefaultBranch(plumbing.NewBranchReferenceName("main")))
	if err != nil {
		log.Fatal(err)
	}
	worktree, err := repository.Worktree()
	if err != nil {
		log.Fatal(err)
	}
	commit := func(path string, content io.Reader) (plumbing.Hash, error) {
		text, err := io.ReadAll(content)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if err := util.WriteFile(files, path, text, 0o644); err != nil {
			return plumbing.ZeroHash, err
		}
		if _, err := worktree.Add(path); err != nil {
			return plumbing.ZeroHash, err
		}
		author := object.Signature{Name: "Test", Email: "test@updraft.dev", When: time.Now()}
		return worktree.Commit("Change "+path, &git.CommitOptions{Author: &author})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /commit/{path...}", func(w http.ResponseWriter, r *http.Request) {
		hash, err := commit(r.PathValue("path"), r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, hash)
	})
	served := backend.New(only{store})
	served.ErrorLog = log.Default()
	mux.Handle("/repository.git/", served)
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
