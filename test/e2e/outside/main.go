// Command outside is a pod that stands for the world outside in the tests on a
// cluster. It keeps all in memory.
//
//   - A git server: one repository, /repository.git, over smart HTTP. A POST to
//     /commit/PATH makes the body the content of that file on the branch main, and
//     answers with the commit.
//   - A sender: a POST to /send, of a request as JSON, sends that and answers with
//     what came back.
//   - A subscriber: a POST of an event to /events is kept; a GET lists them.
//   - Where a collector sends spans and metrics on, as OTLP's JSON: a POST to /spans
//     or /metrics is kept; a GET has a line for each, with ?with=TEXT of those that
//     have that in them.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
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
	mux.HandleFunc("POST /send", send)
	kept := &kept{}
	mux.HandleFunc("POST /events", kept.add)
	mux.HandleFunc("GET /events", kept.list)
	for _, of := range []string{"/spans", "/metrics"} {
		kept := &lines{}
		mux.HandleFunc("POST "+of, kept.add)
		mux.HandleFunc("GET "+of, kept.list)
	}
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// send answers with what a request came to. Both are JSON: see test/e2e.
func send(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		URL    string
		Header map[string]string
		Body   string
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, asked.URL, strings.NewReader(asked.Body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for key, value := range asked.Header {
		request.Header.Set(key, value)
	}
	sent := time.Now()
	response, err := http.DefaultClient.Do(request)
	took := time.Since(sent)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	answer := map[string]any{"Status": response.StatusCode, "Header": response.Header, "Body": string(body), "Took": took}
	_ = json.NewEncoder(w).Encode(answer)
}

// kept are the events that came.
type kept struct {
	mu     sync.Mutex
	events []event.Event
}

func (k *kept) add(w http.ResponseWriter, r *http.Request) {
	e, err := binding.ToEvent(r.Context(), cehttp.NewMessageFromHttpRequest(r))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, *e)
	w.WriteHeader(http.StatusNoContent)
}

func (k *kept) list(w http.ResponseWriter, _ *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = json.NewEncoder(w).Encode(k.events)
}

// lines are bodies, each of which is a line.
type lines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lines) add(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(append(l.text, body...), '\n')
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

func (l *lines) list(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	with := []byte(r.URL.Query().Get("with"))
	for line := range bytes.Lines(l.text) {
		if bytes.Contains(line, with) {
			_, _ = w.Write(line)
		}
	}
}
