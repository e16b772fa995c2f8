package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cloudevents/sdk-go/v2/binding"
	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/updraft-dev/updraft/pkg/event"
)

// witness keeps all that was logged and all that went through a Broker.
var witness = &testimony{}

type testimony struct {
	mu     sync.Mutex
	logs   []string
	events []string
	// told counts events for other systems by type, and problems are what is wrong
	// with any that was sent.
	told     map[string]int
	problems []error
}

// logger writes what is kept.
func (w *testimony) logger(place string) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})).With("place", place)
}

// Write keeps one record.
func (w *testimony) Write(record []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs = append(w.logs, string(bytes.TrimSpace(record)))
	return len(record), nil
}

// wrap listens to what is sent to the Broker.
func (w *testimony) wrap(name string, handler http.Handler) http.Handler {
	if name != "broker" {
		return handler
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			w.hear(r, body)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(rw, r)
	})
}

func (w *testimony) hear(r *http.Request, body []byte) {
	copied := r.Clone(r.Context())
	copied.Body = io.NopCloser(bytes.NewReader(body))
	text := fmt.Sprintf("%v %s", r.Header, body)
	if e, err := binding.ToEvent(r.Context(), cehttp.NewMessageFromHttpRequest(copied)); err == nil {
		if structured, err := json.Marshal(e); err == nil {
			text = string(structured)
		}
		w.judge(e)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, text)
}

// judge holds an event to its schema.
func (w *testimony) judge(e *cloudevents.Event) {
	problem := lab.schemas.Check(*e)
	w.mu.Lock()
	defer w.mu.Unlock()
	if problem != nil {
		w.problems = append(w.problems, problem)
	}
	if w.told == nil {
		w.told = map[string]int{}
	}
	w.told[e.Type()]++
}

// untold are the types with a schema of which no event was sent. Nobody pushes here.
func (w *testimony) untold() (types []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for eventType := range lab.schemas {
		if w.told[eventType] == 0 && eventType != event.TypePush {
			types = append(types, eventType)
		}
	}
	return types
}

// write writes all that is kept into a folder.
func (w *testimony) write(folder string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "log"), []byte(strings.Join(w.logs, "\n")), 0o600),
		os.WriteFile(filepath.Join(folder, "events"), []byte(strings.Join(w.events, "\n")), 0o600))
}

// about are the records that hold a text.
func (w *testimony) about(text string) (logs, events []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return containing(w.logs, text), containing(w.events, text)
}

func containing(lines []string, text string) []string {
	var found []string
	for _, line := range lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// samplesSecrets are in the samples' Secrets, and may be in no other object.
var samplesSecrets = []string{"correct-horse-battery-staple", "only-for-friends"}

// secretValues may be in no event, log and status.
var secretValues = append([]string{inlineSecret}, samplesSecrets...)

// shownValues are in outputs and configuration, which who reads a Stack may see, and
// in no event.
var shownValues = []string{"Hello, ", "Good night, "}

// inlineSecret is what a test writes into a Stack in plain text.
const inlineSecret = "plain-in-the-stack-and-nowhere-else"

// verdict is what the logs and events of the whole run say.
func (w *testimony) verdict() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := slices.Clone(w.problems)
	for _, value := range shownValues {
		for _, line := range containing(w.events, value) {
			errs = append(errs, fmt.Errorf("configuration or an output is in an event: %s", line))
		}
	}
	for _, line := range w.logs {
		if beyondRights(line) {
			errs = append(errs, fmt.Errorf("a function went beyond its rights: %s", line))
		}
	}
	for what, lines := range map[string][]string{"log": w.logs, "event": w.events} {
		for _, secret := range secretValues {
			for _, line := range containing(lines, secret) {
				errs = append(errs, fmt.Errorf("a secret value is in a %s: %s", what, line))
			}
		}
	}
	lab.mu.Lock()
	defer lab.mu.Unlock()
	for _, p := range lab.places {
		errs = append(errs, p.watch.verdict())
	}
	return errors.Join(errs...)
}

// beyondRights says whether a record tells of a right that was missing, in the
// API server's words for that; there are other things that it forbids.
func beyondRights(record string) bool {
	return strings.Contains(record, "is forbidden: User ")
}
