package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/cloudevents/sdk-go/v2/binding"
	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/updraft-dev/updraft/pkg/request"
	"github.com/updraft-dev/updraft/pkg/transport"
)

const (
	// maxBody is the largest body that is read, in bytes. A request is some
	// hundred; a batch has up to maxBatch of them.
	maxBody = 1 << 20
	// maxBatch is how many events a batch may have.
	maxBatch = 100
	// maxDepth is how deep objects and lists may stand in each other.
	maxDepth = 32
)

// acceptable says what is wrong with a request by its headers alone.
func acceptable(r *http.Request) *request.Problem {
	switch {
	case r.URL.Path != "/":
		return request.Problemf(request.NotFound, "There is nothing at this path; send events to /")
	case r.Method != http.MethodPost:
		return request.Problemf(request.MethodNotAllowed, "Events are sent with POST")
	case r.ContentLength > maxBody:
		return tooLarge()
	case r.Header.Get("Content-Encoding") != "":
		return request.Problemf(request.UnsupportedMediaType, "The body is compressed; send it as it is")
	case isBatch(r), cehttp.NewMessageFromHttpRequest(r).ReadEncoding() != binding.EncodingUnknown:
		return nil
	default:
		return request.Problemf(request.UnsupportedMediaType, "The request has neither the headers (ce-id, ce-source, ce-type, ce-specversion) nor the content type (application/cloudevents+json, application/cloudevents-batch+json) of a CloudEvent")
	}
}

func tooLarge() *request.Problem {
	return request.Problemf(request.TooLarge, "The body has more than %d bytes; send less", maxBody)
}

func isBatch(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == cloudevents.ApplicationCloudEventsBatchJSON
}

// read is the events of a request, of which there is one unless it is a batch.
func read(w http.ResponseWriter, r *http.Request) (events []cloudevents.Event, batch bool, problem *request.Problem) {
	received := transport.ReadWithin(w, readTime)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	received()
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, false, tooLarge()
	}
	if err != nil {
		return nil, false, request.Problemf(request.Malformed, "The body cannot be read in full: %v", err)
	}
	if mayBeJSON(r) && transport.Deeper(body, maxDepth) {
		return nil, false, request.Problemf(request.Malformed, "Objects and lists stand deeper in each other than %d; send them flatter", maxDepth)
	}
	if batch = isBatch(r); batch {
		events, problem = ofBatch(body)
	} else {
		r.Body = io.NopCloser(bytes.NewReader(body))
		events, problem = single(r)
	}
	if problem != nil {
		return nil, batch, problem
	}
	for _, e := range events {
		if err := e.Validate(); err != nil {
			return nil, batch, about(request.Problemf(request.Malformed, "The event is not valid: %s", oneLine(err)), e, batch)
		}
	}
	return events, batch, nil
}

func ofBatch(body []byte) ([]cloudevents.Event, *request.Problem) {
	var events []cloudevents.Event
	if err := json.Unmarshal(body, &events); err != nil {
		return nil, request.Problemf(request.Malformed, "The batch cannot be read: %s; send a JSON list of events", oneLine(err))
	}
	if len(events) > maxBatch {
		return nil, request.Problemf(request.TooLarge, "The batch has %d events; send at most %d", len(events), maxBatch)
	}
	return events, nil
}

func single(r *http.Request) ([]cloudevents.Event, *request.Problem) {
	e, err := binding.ToEvent(r.Context(), cehttp.NewMessageFromHttpRequest(r))
	if err != nil {
		return nil, request.Problemf(request.Malformed, "The event cannot be read: %s", oneLine(err))
	}
	return []cloudevents.Event{*e}, nil
}

// about says of which event of a batch a problem is.
func about(p *request.Problem, e cloudevents.Event, batch bool) *request.Problem {
	if !batch {
		return p
	}
	return request.Problemf(p.Why, "Event %.64q of source %.64q: %s (no event of the batch was taken)", e.ID(), e.Source(), p.Detail)
}

// oneLine is what a library says, where that has many lines.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// mayBeJSON says whether a parser of JSON will see the body.
func mayBeJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err != nil || strings.HasSuffix(kind, "json")
}
