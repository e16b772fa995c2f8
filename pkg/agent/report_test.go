package agent

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/go-cmp/cmp"

	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

func TestJudge(t *testing.T) {
	cases := map[string]struct {
		statuses []int
		want     answer
		final    bool
	}{
		"A success is accepted":                     {[]int{200, 202, 204}, accepted, true},
		"A conflict is refused":                     {[]int{409}, refused, true},
		"What passes is tried again":                {[]int{401, 403, 404, 408, 429, 500, 502, 503, 504, 0}, unsent, false},
		"What will never be understood is given up": {[]int{400, 410, 413, 415, 422}, rejected, true},
		"A redirect is not followed":                {[]int{301, 302, 307, 308}, rejected, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, status := range c.statuses {
				if got, final := judge(status); got != c.want || final != c.final {
					t.Errorf("judge(%d) = %v, %v; want %v, %v", status, got, final, c.want, c.final)
				}
			}
		})
	}
}

func TestAReportIsRepeatedAsTheSameEventWithTheTokenOfTheTime(t *testing.T) {
	config := Config{Root: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	makeFolder(t, config.path("identity"))
	token := config.path(run.TokenFile)
	writeFile(t, token, "first\n")

	type seen struct {
		ID, Type, Subject, Source, Authorization, Body string
	}
	var got []seen
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := cehttp.NewEventFromHTTPRequest(r)
		if err != nil {
			t.Error(err)
		}
		got = append(got, seen{e.ID(), e.Type(), e.Subject(), e.Source(), r.Header.Get("Authorization"), string(e.Data())})
		writeFile(t, token, "second\n")
		if len(got) == 1 {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	config.ReportURL = server.URL

	r := newReporter(config, run.Spec{Namespace: "team", Name: "app-17c", UID: "u-1"})
	if got := r.post(t.Context(), event.TypeRunTaken, "taken", event.Taken{UID: "u-1"}); got != accepted {
		t.Errorf("post() = %v, want accepted", got)
	}
	report := func(authorization string) seen {
		return seen{"u-1/taken", event.TypeRunTaken, "update/team/app-17c", "/updraft/agent", authorization, `{"uid":"u-1"}`}
	}
	if diff := cmp.Diff([]seen{report("Bearer first"), report("Bearer second")}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestATokenIsNotTakenToAnotherPlace(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	config := Config{Root: t.TempDir(), ReportURL: server.URL, Log: slog.New(slog.DiscardHandler)}
	makeFolder(t, config.path("identity"))
	writeFile(t, config.path(run.TokenFile), "token")

	if got := newReporter(config, run.Spec{Name: "a"}).post(t.Context(), event.TypeRunTaken, "taken", nil); got != rejected {
		t.Errorf("post() = %v, want rejected", got)
	}
	if elsewhere.Load() != 0 {
		t.Error("the redirect was followed")
	}
}

func TestAReportIsGivenUpWhenItsTimeIsOver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	config := Config{Root: t.TempDir(), ReportURL: server.URL, Log: slog.New(slog.DiscardHandler)}
	makeFolder(t, filepath.Dir(config.path(run.TokenFile)))
	writeFile(t, config.path(run.TokenFile), "token")
	if got := newReporter(config, run.Spec{Name: "a"}).post(ctx, event.TypeRunRunning, "running", nil); got != unsent {
		t.Errorf("post() = %v, want unsent", got)
	}
}
