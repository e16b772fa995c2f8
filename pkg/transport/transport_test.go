package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/observe"
)

var (
	stacks   = schema.GroupResource{Group: "pulumi.com", Resource: "stacks"}
	conflict = apierrors.NewConflict(stacks, "app", errors.New("newer"))
	made     = apierrors.NewAlreadyExists(stacks, "app")
)

func TestStatus(t *testing.T) {
	cases := map[string]struct {
		err  error
		want int
	}{
		"None is accepted":                   {nil, 204},
		"Never is never":                     {Never(errors.New("x")), 422},
		"A mark is seen through a wrap":      {fmt.Errorf("cannot do it: %w", Never(errors.New("x"))), 422},
		"A refusal has its own":              {Refuse(http.StatusConflict, errors.New("x")), 409},
		"The outer mark counts":              {Refuse(http.StatusForbidden, Never(errors.New("x"))), 403},
		"Any other may be well later":        {errors.New("x"), 503},
		"The API server's conflict too":      {conflict, 503},
		"What the API server does not know":  {apierrors.NewNotFound(stacks, "app"), 503},
		"A request that took too long is so": {context.DeadlineExceeded, 503},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Status(c.err); got != c.want {
				t.Errorf("Status = %d, want %d", got, c.want)
			}
		})
	}
	if err := Never(conflict); !errors.Is(err, conflict) || err.Error() != conflict.Error() {
		t.Errorf("The mark hides %v", err)
	}
}

func binaryRequest(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	for key, value := range map[string]string{
		"Ce-Id": "1", "Ce-Type": "dev.updraft.due", "Ce-Source": "/test", "Ce-Specversion": "1.0",
		"Ce-Kind": "Stack", "Ce-Namespace": "team", "Ce-Name": "app", "Content-Type": "application/json",
	} {
		r.Header.Set(key, value)
	}
	return r
}

func TestHandler(t *testing.T) {
	without := func(header string) *http.Request {
		r := binaryRequest(`{}`)
		r.Header.Del(header)
		return r
	}
	structured := func(body string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/cloudevents+json")
		return r
	}
	cases := map[string]struct {
		request *http.Request
		answers []error
		want    int
		looks   int
	}{
		"An event in binary mode is looked at":     {request: binaryRequest(`{}`), want: 204, looks: 1},
		"An event without data is looked at":       {request: binaryRequest(``), want: 204, looks: 1},
		"An event in structured mode is looked at": {request: structured(`{"specversion":"1.0","id":"1","type":"t","source":"/s","kind":"Stack","name":"app"}`), want: 204, looks: 1},
		"What is no event is refused":              {request: httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{}`)), want: 400},
		"A batch is no event": {request: func() *http.Request {
			r := structured(`[]`)
			r.Header.Set("Content-Type", "application/cloudevents-batch+json")
			return r
		}(), want: 400},
		"An event without id is refused":                  {request: without("Ce-Id"), want: 400},
		"An event without type is refused":                {request: without("Ce-Type"), want: 400},
		"An event without source is refused":              {request: without("Ce-Source"), want: 400},
		"An event without version is refused":             {request: without("Ce-Specversion"), want: 400},
		"A structured event that is no JSON":              {request: structured(`{`), want: 400},
		"A structured event that says nothing":            {request: structured(`{}`), want: 400},
		"A body within the limit is read":                 {request: binaryRequest(strings.Repeat("x", maxBody)), want: 204, looks: 1},
		"A body beyond the limit is refused":              {request: binaryRequest(strings.Repeat("x", maxBody+1)), want: 400},
		"A structured body beyond the limit is too":       {request: structured(`{"specversion":"1.0","id":"1","type":"t","source":"/s","data":"` + strings.Repeat("x", maxBody) + `"}`), want: 400},
		"A GET is refused":                                {request: httptest.NewRequest(http.MethodGet, "/", nil), want: 405},
		"A PUT of an event is refused":                    {request: func() *http.Request { r := binaryRequest(`{}`); r.Method = http.MethodPut; return r }(), want: 405},
		"What fails may be well later":                    {request: binaryRequest(``), answers: []error{errors.New("x")}, want: 503, looks: 1},
		"What is never well is not brought back":          {request: binaryRequest(``), answers: []error{Never(errors.New("x"))}, want: 422, looks: 1},
		"A refusal has its own answer":                    {request: binaryRequest(``), answers: []error{Refuse(http.StatusUnauthorized, errors.New("x"))}, want: 401, looks: 1},
		"A conflict is looked at again":                   {request: binaryRequest(``), answers: []error{fmt.Errorf("cannot write Stack app: %w", conflict), nil}, want: 204, looks: 2},
		"What was made meanwhile is looked at again":      {request: binaryRequest(``), answers: []error{made, made, nil}, want: 204, looks: 3},
		"A failure after a conflict is one":               {request: binaryRequest(``), answers: []error{conflict, Never(errors.New("x"))}, want: 422, looks: 2},
		"Conflicts without end are left for later":        {request: binaryRequest(``), answers: []error{conflict, conflict, conflict, conflict, conflict, conflict, nil}, want: 503, looks: 6},
		"A refusal that is a conflict is not one of ours": {request: binaryRequest(``), answers: []error{Refuse(http.StatusConflict, errors.New("taken by another pod"))}, want: 409, looks: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			looks := 0
			handler := Handler(slog.New(slog.DiscardHandler), func(_ context.Context, _ cloudevents.Event) error {
				looks++
				if looks <= len(c.answers) {
					return c.answers[looks-1]
				}
				return nil
			})
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, c.request)
			if recorder.Code != c.want || looks != c.looks {
				t.Errorf("answer %d after %d looks, want %d after %d", recorder.Code, looks, c.want, c.looks)
			}
			if recorder.Body.Len() > 0 || recorder.Header().Get("Ce-Id") != "" {
				t.Errorf("The answer has a body, which a Broker takes for an event: %s", recorder.Body)
			}
			if allow := recorder.Header().Get("Allow"); (allow == "POST") != (c.want == 405) {
				t.Errorf("Allow: %q", allow)
			}
		})
	}
}

func TestAHandlerSeesTheEventAndWhoSentIt(t *testing.T) {
	r := binaryRequest(`{"a":1}`)
	r.Header.Set("Authorization", "Bearer token")
	var seen cloudevents.Event
	var from string
	handle := func(ctx context.Context, e cloudevents.Event) error {
		seen, from = e, Authorization(ctx)
		return nil
	}
	Handler(slog.New(slog.DiscardHandler), handle).ServeHTTP(httptest.NewRecorder(), r)
	about, err := event.About(seen)
	if err != nil || about != (event.Ref{Kind: "Stack", Namespace: "team", Name: "app"}) || string(seen.Data()) != `{"a":1}` || from != "Bearer token" {
		t.Errorf("event %v, %v, from %q", seen, err, from)
	}
	if got := Authorization(context.Background()); got != "" {
		t.Errorf("Without a request it is %q", got)
	}
}

func TestALogOfARefusalHoldsNoToken(t *testing.T) {
	var log bytes.Buffer
	r := binaryRequest(`{"secret":"hunter2"}`)
	r.Header.Set("Authorization", "Bearer hunter2")
	handle := func(context.Context, cloudevents.Event) error { return errors.New("not now") }
	Handler(slog.New(slog.NewTextHandler(&log, nil)), handle).ServeHTTP(httptest.NewRecorder(), r)
	if text := log.String(); strings.Contains(text, "hunter2") || !strings.Contains(text, "not now") || !strings.Contains(text, "status=503") {
		t.Errorf("log = %s", text)
	}
}

func TestSend(t *testing.T) {
	about := event.Ref{Kind: "Stack", Namespace: "team", Name: "app"}
	for status, accepted := range map[int]bool{200: true, 202: true, 204: true, 400: false, 404: false, 422: false, 500: false, 503: false} {
		var got *http.Request
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
		}))
		sender, err := NewSender(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		err = sender.Send(t.Context(), event.NewDue("test", "1", about))
		server.Close()
		if (err == nil) != accepted {
			t.Errorf("status %d: %v", status, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "dev.updraft.due") || !strings.Contains(err.Error(), "stack/team/app")) {
			t.Errorf("It does not say what was not sent: %v", err)
		}
		if got.Header.Get("Ce-Type") != "dev.updraft.due" || got.Header.Get("Ce-Name") != "app" {
			t.Errorf("headers = %v", got.Header)
		}
	}
	if _, err := NewSender("://"); err == nil {
		t.Error("A target that is no URL is taken")
	}
}

func TestSendToNobodyFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	sender, err := NewSender(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.Send(t.Context(), event.NewDue("test", "1", event.Ref{Kind: "Stack", Namespace: "team", Name: "app"})); err == nil {
		t.Error("It is said to be accepted")
	}
}

func TestServeFinishesWhatIsUnderWay(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := Serve(t.Context(), address, http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("On an address that is taken: %v", err)
	}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	begun, end := make(chan struct{}), make(chan struct{})
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-end
			w.WriteHeader(http.StatusNoContent)
		}))
	}()
	answered := make(chan int, 1)
	go func() {
		for t.Context().Err() == nil {
			response, err := http.Get("http://" + address)
			if err != nil {
				continue // it does not listen yet
			}
			_ = response.Body.Close()
			answered <- response.StatusCode
			return
		}
	}()
	<-begun
	stop()
	close(end)
	if got := <-answered; got != http.StatusNoContent {
		t.Errorf("The request under way was answered %d", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve = %v", err)
	}
}

// A function that traces nothing itself passes on the trace that it is called in.
func TestATraceIsPassedOn(t *testing.T) {
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	var got string
	last := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Traceparent")
		w.WriteHeader(http.StatusAccepted)
	}))
	defer last.Close()
	sender, err := NewSender(last.URL)
	if err != nil {
		t.Fatal(err)
	}
	about := event.Ref{Kind: "Stack", Namespace: "team", Name: "app"}
	var telemetry *observe.Telemetry // off
	first := httptest.NewServer(telemetry.Serve(Handler(slog.New(slog.DiscardHandler), func(ctx context.Context, _ cloudevents.Event) error {
		return sender.Send(ctx, event.NewDue("test", "2", about))
	})))
	defer first.Close()
	request, err := cehttp.NewHTTPRequestFromEvent(t.Context(), first.URL, event.NewDue("test", "1", about))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Traceparent", traceparent)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent || got != traceparent {
		t.Errorf("answer %d, sent on with %q", answer.StatusCode, got)
	}
}
