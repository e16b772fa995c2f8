package integration

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/updraft-dev/updraft/functions/gateway"
	"github.com/updraft-dev/updraft/pkg/event"
)

// versions are those of all objects of a namespace.
func (s *space) versions() map[string]string {
	s.Helper()
	versions := map[string]string{}
	for kind := range ourKinds {
		if kind == "Event" {
			continue // nobody acts on these
		}
		for _, object := range s.objects(s.Context(), kind) {
			versions[kind+" "+object.GetName()] = object.GetResourceVersion()
		}
	}
	return versions
}

// atRest is a space with a Stack that needs nothing.
func atRest(t *testing.T) (*space, string) {
	t.Helper()
	s := newSpace(t, lab.main, plain)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets"))
	update := s.awaitReady("app").Status.LastUpdate.Name
	s.awaitRest()
	return s, update
}

func TestWhatIsNoCloudEventIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	s, _ := atRest(t)
	before := s.versions()
	requests := map[string]struct {
		method, contentType, body string
		header                    map[string]string
		want                      int
	}{
		"A GET":                       {http.MethodGet, "", "", nil, http.StatusMethodNotAllowed},
		"Nothing":                     {http.MethodPost, "", "", nil, http.StatusBadRequest},
		"Text":                        {http.MethodPost, "text/plain", "hello", nil, http.StatusBadRequest},
		"JSON that is cut off":        {http.MethodPost, cloudevents.ApplicationCloudEventsJSON, `{"specversion": "1.0", "id":`, nil, http.StatusBadRequest},
		"An event without an id":      {http.MethodPost, cloudevents.ApplicationCloudEventsJSON, `{"specversion": "1.0", "type": "dev.updraft.due", "source": "/test"}`, nil, http.StatusBadRequest},
		"An event of no known spec":   {http.MethodPost, "", "", map[string]string{"Ce-Specversion": "9.9", "Ce-Id": "1", "Ce-Type": "dev.updraft.due", "Ce-Source": "/test"}, http.StatusBadRequest},
		"An event without a source":   {http.MethodPost, "", "", map[string]string{"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Type": "dev.updraft.due"}, http.StatusBadRequest},
		"Five megabytes of something": {http.MethodPost, cloudevents.ApplicationCloudEventsJSON, `{"specversion": "1.0", "id": "` + strings.Repeat("1", 5<<20) + `"}`, nil, http.StatusBadRequest},
	}
	for function, url := range s.woken() {
		for name, r := range requests {
			request, err := http.NewRequestWithContext(t.Context(), r.method, url, strings.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			if r.contentType != "" {
				request.Header.Set("Content-Type", r.contentType)
			}
			for key, value := range r.header {
				request.Header.Set(key, value)
			}
			if got := answer(t, request); got != r.want {
				t.Errorf("%s to %s is answered %d, want %d", name, function, got, r.want)
			}
		}
	}
	if after := s.versions(); !maps.Equal(before, after) {
		t.Errorf("objects changed from %v to %v", before, after)
	}
}

// woken are the functions that events of the Broker and of runs wake: all but the
// gateway, which asks who sends (test/gateway).
func (s *space) woken() map[string]string {
	functions := maps.Clone(s.Functions)
	delete(functions, gateway.Name)
	return functions
}

func TestEventsAboutWhatIsNotThereAreHarmless(t *testing.T) {
	t.Parallel()
	s, update := atRest(t)
	before := s.versions()
	const stack, updates, status, source = "updraft-stack", "updraft-update", "updraft-status", "updraft-source"
	ref := func(kind, name string) event.Ref { return event.Ref{Kind: kind, Namespace: s.namespace, Name: name} }
	cases := map[string]struct {
		about event.Ref
		look  []string // the functions that accept it; the others never will
	}{
		"An unknown Stack":      {ref(event.KindStack, "nobody"), []string{stack, updates}},
		"An unknown Update":     {ref(event.KindUpdate, "nobody"), []string{updates, status}},
		"An unknown Program":    {ref(event.KindProgram, "nobody"), []string{stack}},
		"An unknown Workspace":  {ref(event.KindWorkspace, "nobody"), []string{stack}},
		"An unknown Pod":        {ref(event.KindPod, "nobody-12345"), []string{status}},
		"A Pod without a dash":  {ref(event.KindPod, "nobody"), []string{status}},
		"An unknown Job":        {ref(event.KindJob, "nobody"), []string{status}},
		"An unknown poll":       {ref(event.KindPoll, "nobody"), []string{source, stack}},
		"An unknown namespace":  {event.Ref{Kind: event.KindStack, Namespace: "nowhere", Name: "app"}, []string{stack, updates}},
		"An unknown kind":       {ref("Widget", "app"), nil},
		"No name":               {ref(event.KindStack, ""), nil},
		"A name that is a path": {ref(event.KindStack, "../../secrets/hello"), nil},
		"A Stack at rest":       {ref(event.KindStack, "app"), []string{stack, updates}},
		"An Update at rest":     {ref(event.KindUpdate, update), []string{updates, status}},
	}
	for name, c := range cases {
		for function, url := range s.woken() {
			id := strings.ReplaceAll(fmt.Sprintf("%s/%s/%s", s.namespace, function, name), " ", "-")
			want, lines := http.StatusUnprocessableEntity, 1
			if slices.Contains(c.look, function) || function == "updraft-sweep" { // which sweeps whatever it is told
				want, lines = http.StatusNoContent, 0
			}
			if got := send(t.Context(), t, url, event.NewDue("test", id, c.about), ""); got != want {
				t.Errorf("%s: %s answers %d, want %d", name, function, got, want)
			}
			if logs, _ := witness.about(id); len(logs) != lines {
				t.Errorf("%s: %s logs %v", name, function, logs)
			}
		}
	}
	// What the Broker takes in goes the same way.
	for _, c := range cases {
		if got := send(t.Context(), t, s.BrokerURL, event.NewDue("test", "broker/"+s.namespace+"/"+c.about.String(), c.about), ""); got != http.StatusAccepted {
			t.Errorf("the Broker answers %d", got)
		}
	}
	if after := s.versions(); !maps.Equal(before, after) {
		t.Errorf("objects changed from %v to %v", before, after)
	}
	s.request("app", "still alive")
	s.awaitReady("app")
}
