package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/transport"
)

// Path is where webhooks are sent to: Path<kind>/<receiver>.
const Path = "/webhooks/"

const (
	// maxBody is the largest payload that is read, in bytes. A push of a hundred
	// commits is some hundred thousand.
	maxBody = 4 << 20
	// maxEvents is how many refs, times spellings of the repository, one push may
	// be of before it is taken as one of the whole repository.
	maxEvents = 40
	// readTime is how long a sender may take to send its body, sendTime how long
	// the Broker may take.
	readTime = 10 * time.Second
	sendTime = 10 * time.Second
)

// Receiver takes the webhooks of git hosts.
type Receiver struct {
	// Secrets is the folder with the secret of each receiver, as a file of its
	// name. It is read for each request.
	Secrets string
	// Namespace of the installation.
	Namespace string
	Broker    transport.Sender
	Now       func() time.Time
	Log       *slog.Logger
}

// source is what events say that they are from.
const source = "webhook"

var receiverForm = regexp.MustCompile(`^[a-zA-Z0-9][-._a-zA-Z0-9]{0,252}$`)

// ServeHTTP takes a webhook: 202 for a push, 204 for what is none and well.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	status, err := r.take(w, request)
	if err != nil {
		r.Log.Warn("Webhook refused", "path", request.URL.Path, "status", status, "error", err.Error())
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ToUpper(err.Error()[:1])+err.Error()[1:]+"\n") // the host shows it to who set it up
		return
	}
	w.WriteHeader(status)
}

func (r *Receiver) take(w http.ResponseWriter, request *http.Request) (int, error) {
	kind, receiver, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, Path), "/")
	from, known := hosts[kind]
	switch {
	case !known:
		return http.StatusNotFound, fmt.Errorf("there is no kind of webhook called %.64q; send to %s<kind>/<receiver>, where the kind is one of %s", kind, Path, kinds())
	case request.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, errors.New("webhooks are sent with POST")
	case request.ContentLength > maxBody:
		return http.StatusRequestEntityTooLarge, tooLarge()
	}
	received := transport.ReadWithin(w, readTime)
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBody))
	received()
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return http.StatusRequestEntityTooLarge, tooLarge()
	}
	if err != nil {
		return http.StatusBadRequest, errors.New("the body cannot be read in full")
	}
	if !from.verify(r.secret(receiver), request.Header, body) {
		return http.StatusUnauthorized, errors.New("the signature or token is not the receiver's; set the same secret at the git host and under the receiver's name in the Secret updraft-webhooks")
	}
	if !isForm(request.Header) && transport.Deeper(body, maxDepth) {
		return http.StatusBadRequest, errors.New("objects and lists stand too deep in each other")
	}
	pushes, err := from.parse(request.Header, body)
	if err != nil {
		return http.StatusBadRequest, err
	}
	if len(pushes) == 0 {
		return http.StatusNoContent, nil
	}
	return r.tell(request.Context(), kind+"/"+receiver, pushes)
}

// maxDepth is how deep objects and lists of a payload may stand in each other.
const maxDepth = 32

func tooLarge() error { return fmt.Errorf("the body has more than %d bytes", maxBody) }

func kinds() string {
	var names []string
	for kind := range hosts {
		names = append(names, kind)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// secret of a receiver, or one that nobody has.
func (r *Receiver) secret(receiver string) []byte {
	nobody := nobodys()
	if !receiverForm.MatchString(receiver) {
		return nobody
	}
	content, err := os.ReadFile(filepath.Join(r.Secrets, receiver))
	content = []byte(strings.TrimRight(string(content), "\r\n"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.Log.Error("Cannot read the secret of a receiver", "receiver", receiver, "error", err.Error())
	}
	if err != nil || len(content) == 0 {
		return nobody
	}
	return content
}

// tell sends an event for each ref, and for each of the repository's spellings
// that are not the same in other words.
func (r *Receiver) tell(ctx context.Context, receiver string, pushes []push) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	wanted := looks(pushes)
	if len(wanted) == 0 {
		return http.StatusUnprocessableEntity, errors.New("the payload names no repository")
	}
	at := strconv.FormatInt(r.Now().UnixNano(), 36)
	for _, look := range wanted {
		e, err := event.NewPush(source, look.Name()+"/"+at, r.Namespace, look)
		if err == nil {
			err = r.Broker.Send(ctx, e)
		}
		if err != nil {
			r.Log.Error("Cannot tell of a push", "receiver", receiver, "error", err.Error())
			return http.StatusServiceUnavailable, errors.New("the push cannot be passed on now; send it again later")
		}
		r.Log.Info("Push received", "receiver", receiver, "repository", look.Repository, "ref", look.Ref)
	}
	return http.StatusAccepted, nil
}

// looks are what to look at after some pushes, each once.
func looks(pushes []push) []event.Push {
	var all []event.Push
	add := func(p event.Push) {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for _, p := range pushes {
		for _, repository := range p.repositories {
			if repository != "" {
				add(event.Push{Repository: event.RepositoryKey(repository), Ref: p.ref})
			}
		}
	}
	if len(all) <= maxEvents {
		return all
	}
	many := all
	all = nil
	for _, p := range many {
		if len(all) < maxEvents {
			add(event.Push{Repository: p.Repository})
		}
	}
	return all
}
