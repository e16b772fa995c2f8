package abuse

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/client-go/rest"
)

// call is one run of a function: all that it asks of the world goes through here. The driver has one too, to which nothing is done.
type call struct {
	w    *world
	who  string // "" for the driver
	next http.RoundTripper
	dead bool
}

// config is a configuration whose requests go through the call.
func (c *call) config(base *rest.Config) *rest.Config {
	config := rest.CopyConfig(base)
	config.ContentType = "application/json" // to be read here
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		c.next = next
		return c
	})
	return config
}

// RoundTrip cuts off, checks and records.
func (c *call) RoundTrip(request *http.Request) (*http.Response, error) {
	if c.dead {
		return nil, errCut
	}
	target := parse(request)
	if !target.writes() {
		return c.next.RoundTrip(c.scoped(request))
	}
	body, err := c.prepare(request, target)
	if err != nil {
		return nil, err
	}
	m := c.fault("write", target.String())
	if m == before {
		return nil, errCut
	}
	response, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	c.w.trace("    %s %s %d", c.who, target, response.StatusCode)
	if response.StatusCode < 300 {
		c.w.wrote(c.who, target, body, answer)
	}
	if m == after {
		return nil, errCut
	}
	return response, nil
}

// fault is what is done to this write or event; the call is over if it is cut off.
func (c *call) fault(series, what string) mode {
	if c.who == "" || !c.w.counting {
		return none
	}
	n := c.w.count(series)
	c.w.situate(series, c.who+" "+what)
	m := c.w.faults.next(series, n)
	if m != none {
		c.w.trace("    %s %s %d: %s: %s", c.who, series, n, m, what)
	}
	switch m {
	case before, after:
		c.dead, c.w.cutAt = true, m
	case stall:
		c.w.stall()
	}
	return m
}

// prepare checks a write, and keeps the real Job controller from a Job.
func (c *call) prepare(request *http.Request, target target) ([]byte, error) {
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		request.Body.Close()
	}
	if c.who != "" {
		c.w.checkRequest(c.who, target, body)
	}
	if target.method == http.MethodPost && target.resource == "jobs" {
		managed, err := managedByUs(body)
		if err != nil {
			return nil, err
		}
		body = managed
	}
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	request.GetBody = nil
	return body, nil
}

func managedByUs(job []byte) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(job, &object); err != nil {
		return nil, fmt.Errorf("a Job that is not JSON: %w", err)
	}
	object["spec"].(map[string]any)["managedBy"] = "updraft.dev/abuse"
	return json.Marshal(object)
}

// scoped confines a look at all namespaces to that of the case.
func (c *call) scoped(request *http.Request) *http.Request {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if c.who == "" || len(parts) != 4 || parts[0] != "apis" || !strings.Contains(parts[1], "pulumi.com") {
		return request
	}
	request = request.Clone(request.Context())
	request.URL.Path = fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", parts[1], parts[2], c.w.namespace, parts[3])
	return request
}

// Send is the Broker's ingress.
func (c *call) Send(_ context.Context, e cloudevents.Event) error {
	if c.dead {
		return errCut
	}
	c.w.checkEvent(c.who, e)
	m := c.fault("send", e.Type()+" "+e.Subject())
	if m == before {
		return errCut
	}
	c.w.trace("    %s sends %s about %s", c.who, e.Type(), e.Subject())
	c.w.broker(e)
	if m == after {
		return errCut
	}
	return nil
}

// target is what a request is about.
type target struct {
	method, resource, namespace, name, subresource string
}

func (t target) String() string {
	s := t.method + " " + t.resource
	if t.name != "" {
		s += "/" + t.name
	}
	if t.subresource != "" {
		s += "/" + t.subresource
	}
	return s
}

// parse reads a path of the API: /api/v1/… or /apis/group/version/….
func parse(request *http.Request) target {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	t := target{method: request.Method}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return t
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&t.resource, &t.name, &t.subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	return t
}

func (t target) writes() bool {
	switch t.method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return t.resource != "tokenreviews" && t.subresource != "token"
	default:
		return false
	}
}
