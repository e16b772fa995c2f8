package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/updraft-dev/updraft/pkg/observe"
)

const (
	// maxBody is the largest event that is read, in bytes: a report's outputs
	// must fit a Secret, which holds 1 MiB.
	maxBody = 4 << 20
	// maxLooks is how often a look that meets conflicts looks again before the
	// event is answered with 503.
	maxLooks = 6
	// drain is how long a server that was told to stop waits for its requests.
	drain = 20 * time.Second
)

// Handle does what an event is a reason for.
type Handle func(ctx context.Context, e cloudevents.Event) error

type authorizationKey struct{}

// Authorization is the Authorization header of the request that brought the
// event.
func Authorization(ctx context.Context) string {
	s, _ := ctx.Value(authorizationKey{}).(string)
	return s
}

// Handler answers requests that carry a CloudEvent in binary or structured mode.
func Handler(log *slog.Logger, handle Handle) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		e, err := read(r)
		if err != nil {
			observe.Dropped(r.Context())
			log.WarnContext(r.Context(), "Refused what is no CloudEvent", "error", err.Error())
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		ctx := context.WithValue(r.Context(), authorizationKey{}, r.Header.Get("Authorization"))
		ctx, look := observe.Begin(ctx, log, e)
		err = lookAgain(ctx, handle, e)
		status := Status(err)
		defer look.End(ctx, status)
		if status == http.StatusBadRequest || status == http.StatusUnprocessableEntity {
			observe.Dropped(ctx)
		}
		if err != nil {
			log.WarnContext(ctx, "Event refused", "type", e.Type(), "subject", e.Subject(), "id", e.ID(), "status", status, "error", err.Error())
		}
		w.WriteHeader(status)
	})
}

func read(r *http.Request) (cloudevents.Event, error) {
	message := cehttp.NewMessageFromHttpRequest(r)
	if message.ReadEncoding() == binding.EncodingUnknown {
		return cloudevents.Event{}, errors.New("the request has neither the headers nor the content type of a CloudEvent")
	}
	e, err := binding.ToEvent(r.Context(), message)
	if err != nil {
		return cloudevents.Event{}, fmt.Errorf("cannot read the event: %w", err)
	}
	if err := e.Validate(); err != nil {
		return cloudevents.Event{}, fmt.Errorf("the event is not valid: %w", err)
	}
	return *e, nil
}

// lookAgain looks again as long as a write met a newer object, or one that was
// made meanwhile: what was decided no longer rests on the world as it is.
func lookAgain(ctx context.Context, handle Handle, e cloudevents.Event) error {
	var err error
	for range maxLooks {
		if err = handle(ctx, e); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

// Serve answers on the address until ctx ends, then lets the requests under way
// finish.
func Serve(ctx context.Context, address string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("cannot serve on %s: %w", address, err)
	case <-ctx.Done():
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		return server.Shutdown(last)
	}
}
