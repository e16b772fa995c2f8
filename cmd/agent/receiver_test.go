package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/updraft-dev/updraft/pkg/event"
)

// report is one that arrived.
type report struct {
	eventType, id string
	data          []byte
	status        int
}

// receiver stands in for the status function.
type receiver struct {
	t      *testing.T
	server *httptest.Server
	// answer gives the status for a report; nil is 204 for all. earlier counts
	// the reports of this id that came before.
	answer func(r report, earlier int) int

	mu      sync.Mutex
	reports []report
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	e, err := cehttp.NewEventFromHTTPRequest(request)
	if err != nil {
		r.t.Errorf("a report is no event: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if got := request.Header.Get("Authorization"); got != "Bearer "+token {
		r.t.Errorf("a report says it is from %q", got)
	}
	if about, err := event.About(*e); err != nil || about != (event.Ref{Kind: event.KindUpdate, Namespace: "team", Name: "app-17c"}) {
		r.t.Errorf("a report is about %v (%v)", about, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	got := report{eventType: e.Type(), id: e.ID(), data: e.Data(), status: http.StatusNoContent}
	if r.answer != nil {
		earlier := 0
		for _, other := range r.reports {
			if other.id == got.id {
				earlier++
			}
		}
		got.status = r.answer(got, earlier)
	}
	r.reports = append(r.reports, got)
	w.WriteHeader(got.status)
}

// of gives the reports of a type.
func (r *receiver) of(eventType string) []report {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []report
	for _, one := range r.reports {
		if one.eventType == eventType {
			found = append(found, one)
		}
	}
	return found
}

// finished gives the report of the end, of which there must be one.
func (r *receiver) finished() event.Finished {
	r.t.Helper()
	var data event.Finished
	reports := r.of(event.TypeRunFinished)
	if len(reports) != 1 {
		r.t.Fatalf("there are %d reports of the end, want 1", len(reports))
	}
	if err := json.Unmarshal(reports[0].data, &data); err != nil {
		r.t.Fatal(err)
	}
	return data
}

// running gives the last report of a beginning.
func (r *receiver) running() event.Running {
	r.t.Helper()
	var data event.Running
	reports := r.of(event.TypeRunRunning)
	if len(reports) == 0 {
		r.t.Fatal("there is no report of a beginning")
	}
	if err := json.Unmarshal(reports[len(reports)-1].data, &data); err != nil {
		r.t.Fatal(err)
	}
	return data
}
