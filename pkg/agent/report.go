package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/run"
)

// answer is what became of a report.
type answer int

const (
	// accepted: the report counts.
	accepted answer = iota
	// refused: another pod has the run, or it is settled in another way.
	refused
	// rejected: the report will never be understood.
	rejected
	// unsent: it was given up before there was an answer that counts.
	unsent
)

const (
	// firstWait and longestWait are between two attempts of a report.
	firstWait   = 200 * time.Millisecond
	longestWait = 5 * time.Second
	// attemptTimeout covers a status function that has to start first.
	attemptTimeout = time.Minute
)

// reporter tells the status function about a run, as the pod.
type reporter struct {
	client    *http.Client
	url       string
	tokenFile string
	about     event.Ref
	uid       string
	log       *slog.Logger
	tracing   tracing
}

func newReporter(c Config, spec run.Spec) *reporter {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// The status function is in the cluster, and the token is for nobody else:
	// no proxy of the program's, and no redirect.
	transport.Proxy = nil
	return &reporter{
		client: &http.Client{
			Transport:     transport,
			Timeout:       attemptTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url:       c.ReportURL,
		tokenFile: c.path(run.TokenFile),
		about:     event.Ref{Kind: event.KindUpdate, Namespace: spec.Namespace, Name: spec.Name},
		uid:       spec.UID,
		log:       c.Log,
	}
}

// post sends a report until it has an answer that counts or ctx is done. A
// repeat carries the same id.
func (r *reporter) post(ctx context.Context, eventType, id string, data any) answer {
	ctx, span := r.tracing.Start(ctx, "report "+strings.TrimPrefix(eventType, event.PrefixRun))
	defer span.End()
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		status, err := r.attempt(ctx, eventType, r.uid+"/"+id, data)
		got, final := judge(status)
		switch {
		case err == nil && final:
			if got != accepted {
				r.log.Warn("report was not accepted", "report", id, "status", status)
			}
			return got
		case ctx.Err() != nil:
			return unsent
		case err != nil:
			r.log.Warn("cannot report, will try again", "report", id, "error", err)
		default:
			r.log.Warn("cannot report, will try again", "report", id, "status", status)
		}
		select {
		case <-ctx.Done():
			return unsent
		case <-time.After(wait/2 + rand.N(wait)):
		}
	}
}

// judge says what an answer's status means, and whether it is final.
func judge(status int) (got answer, final bool) {
	switch {
	case status >= 200 && status < 300:
		return accepted, true
	case status == http.StatusConflict:
		return refused, true
	// A token that is not known yet, a function that is not there yet, or one
	// that has too much to do: all of these pass.
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound,
		status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500, status < 200:
		return unsent, false
	default:
		return rejected, true
	}
}

// attempt sends a report once. The token is read each time, for it expires and
// is replaced.
func (r *reporter) attempt(ctx context.Context, eventType, id string, data any) (status int, err error) {
	e, err := event.New(eventType, "agent", id, r.about, data)
	if err != nil {
		return 0, err
	}
	request, err := cehttp.NewHTTPRequestFromEvent(ctx, r.url, e)
	if err != nil {
		return 0, fmt.Errorf("cannot make the request: %w", err)
	}
	token, err := os.ReadFile(r.tokenFile)
	if err != nil {
		return 0, fmt.Errorf("cannot read the pod's token: %w", err)
	}
	observe.Inject(ctx, request.Header)
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	response, err := r.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	if err != nil {
		r.log.Debug("answer was cut off", "report", id, "error", err)
	}
	return response.StatusCode, nil
}
