package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/updraft-dev/updraft/pkg/client/clientset/versioned"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/request"
)

// Name of the function, and of its ServiceAccount.
const Name = "updraft-gateway"

const (
	// readTime is how long a sender may take to send its body.
	readTime = 10 * time.Second
	// workTime is how long a request may take in all, in front of the 60 s that
	// Knative gives it.
	workTime = 50 * time.Second
)

// Function is the gateway function.
type Function struct {
	Pulumi versioned.Interface
	Tokens authenticationv1client.TokenReviewsGetter
	Access authorizationv1client.SubjectAccessReviewsGetter
	// Audience that a token must have been made for.
	Audience string
	// ClusterTokens says that a token for the API server is good as well.
	ClusterTokens bool
	Log           *slog.Logger
}

// ServeHTTP takes events at the path /.
func (f *Function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), workTime)
	defer cancel()
	f.answer(w, f.take(ctx, w, r))
}

// take goes from what costs the least to what costs the most: headers, the
// token's review, the body, the right to each of its events, and what they ask
// for.
func (f *Function) take(ctx context.Context, w http.ResponseWriter, r *http.Request) response {
	if problem := acceptable(r); problem != nil {
		return refused(problem)
	}
	token, problem := bearer(r)
	if problem != nil {
		return refused(problem)
	}
	user, problem := f.authenticate(ctx, token)
	if problem != nil {
		return refused(problem)
	}
	events, batch, problem := read(w, r)
	if problem != nil {
		return refused(problem)
	}
	requests := make([]request.Request, 0, len(events))
	for _, e := range events {
		asked, problem := request.Parse(e)
		if problem != nil {
			return refused(about(problem, e, batch))
		}
		asked.By = user.Username
		requests = append(requests, asked)
	}
	if problem := f.authorize(ctx, user, requests); problem != nil {
		f.Log.Warn("Request refused", "by", user.Username, "why", string(problem.Why), "detail", problem.Detail)
		return refused(problem)
	}
	results := make([]result, 0, len(events))
	for i := range requests {
		results = append(results, f.look(ctx, events[i], requests[i]))
	}
	return response{results: results, batch: batch}
}

// look is do as a look, whose span is the request's, or the first of its trace.
func (f *Function) look(ctx context.Context, e cloudevents.Event, r request.Request) result {
	e.SetExtension("kind", event.KindStack)
	e.SetExtension("namespace", r.Namespace)
	e.SetExtension("name", r.Stack)
	ctx, look := observe.Begin(ctx, f.Log, e)
	done := f.do(ctx, e.Source(), e.ID(), r)
	status := http.StatusAccepted
	if done.problem != nil {
		status = statuses[done.problem.Why]
	}
	look.End(ctx, status)
	return done
}

// do does what one request asks for.
func (f *Function) do(ctx context.Context, source, id string, r request.Request) result {
	v, problem := f.act(ctx, r)
	log := f.Log.With("operation", string(r.Operation), "namespace", r.Namespace, "name", r.Stack, "by", r.By, "request", r.Identity)
	if problem != nil {
		log.WarnContext(ctx, "Request refused", "why", string(problem.Why), "detail", problem.Detail)
		return result{source: source, id: id, problem: problem}
	}
	log.InfoContext(ctx, "Request taken", "repeated", v.Repeated, "update", v.About)
	return result{source: source, id: id, location: location(r, v), repeated: v.Repeated}
}

// asked is who a review found a token to be.
type asked = authenticationv1.UserInfo
