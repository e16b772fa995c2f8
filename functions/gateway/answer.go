package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/request"
)

// statuses are the HTTP answers to problems. A Broker brings an event back that
// is answered 404, 409 or 503, and no other: a cancel of nothing, brought back, would
// cancel a later run.
var statuses = map[request.Why]int{
	request.Malformed:            http.StatusBadRequest,
	request.Unauthenticated:      http.StatusUnauthorized,
	request.Forbidden:            http.StatusForbidden,
	request.NotFound:             http.StatusNotFound,
	request.MethodNotAllowed:     http.StatusMethodNotAllowed,
	request.Conflict:             http.StatusConflict,
	request.NoWorkspace:          http.StatusConflict,
	request.NothingToCancel:      http.StatusUnprocessableEntity,
	request.IdentityUsed:         http.StatusUnprocessableEntity,
	request.TooLarge:             http.StatusRequestEntityTooLarge,
	request.UnsupportedMediaType: http.StatusUnsupportedMediaType,
	request.Invalid:              http.StatusUnprocessableEntity,
	request.Unavailable:          http.StatusServiceUnavailable,
}

// repeatedHeader tells a sender that its event was taken before.
const repeatedHeader = "Updraft-Repeated"

// response is what a request is answered: a problem, or the result of each of its
// events.
type response struct {
	problem *request.Problem
	results []result
	batch   bool
}

// result is what became of one event.
type result struct {
	source, id string
	location   string
	repeated   bool
	problem    *request.Problem
}

func refused(p *request.Problem) response { return response{problem: p} }

// problemJSON is a problem by RFC 9457.
type problemJSON struct {
	Type    string       `json:"type"`
	Title   string       `json:"title"`
	Status  int          `json:"status"`
	Detail  string       `json:"detail"`
	Results []resultJSON `json:"results,omitempty"`
}

// resultJSON is what became of one event of a batch.
type resultJSON struct {
	Source   string `json:"source"`
	ID       string `json:"id"`
	Status   int    `json:"status"`
	Location string `json:"location,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
	Type     string `json:"type,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// answer writes a response. What was accepted has no body, but in a batch: a
// Broker takes a body that is no CloudEvent for a failure.
func (f *Function) answer(w http.ResponseWriter, r response) {
	worst := r.worst()
	switch {
	case worst != nil:
		if worst.Why == request.Unauthenticated {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+f.Audience+`"`)
		}
		if worst.Why == request.MethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		status := statuses[worst.Why]
		body := problemJSON{Type: typeOf(worst.Why), Title: http.StatusText(status), Status: status, Detail: worst.Detail}
		if r.batch {
			body.Results = r.each()
		}
		f.encode(w, "application/problem+json", status, body)
	case r.batch:
		f.encode(w, "application/json", http.StatusAccepted, r.each())
	default:
		w.Header().Set("Location", r.results[0].location)
		if r.results[0].repeated {
			w.Header().Set(repeatedHeader, "true")
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

// worst is the problem that the whole is answered with; nil if there is none. One
// that may be well later comes first: the sender is to send the whole again, and
// what was taken is not taken twice.
func (r response) worst() *request.Problem {
	worst := r.problem
	for _, one := range r.results {
		if p := one.problem; p != nil && (worst == nil || p.Why == request.Unavailable && worst.Why != request.Unavailable) {
			worst = p
		}
	}
	return worst
}

func (r response) each() []resultJSON {
	each := make([]resultJSON, 0, len(r.results))
	for _, one := range r.results {
		j := resultJSON{Source: one.source, ID: one.id, Status: http.StatusAccepted, Location: one.location, Repeated: one.repeated}
		if p := one.problem; p != nil {
			j.Status, j.Type, j.Detail = statuses[p.Why], typeOf(p.Why), p.Detail
		}
		each = append(each, j)
	}
	return each
}

func typeOf(why request.Why) string { return "urn:updraft:problem:" + string(why) }

func (f *Function) encode(w http.ResponseWriter, contentType string, status int, body any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // it is read by people, and by no browser as HTML
	if err := encoder.Encode(body); err != nil {
		f.Log.Error("Cannot encode an answer", "error", err.Error())
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // who asked may have gone
}

// location is where the API server has what a request is about: its Update, or
// the Stack, which makes one.
func location(r request.Request, v request.Verdict) string {
	if v.About == "" {
		return "/apis/" + pulumiv1.SchemeGroupVersion.String() + "/namespaces/" + r.Namespace + "/stacks/" + r.Stack
	}
	return "/apis/" + autov1alpha1.SchemeGroupVersion.String() + "/namespaces/" + r.Namespace + "/updates/" + v.About
}
