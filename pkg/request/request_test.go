package request

import (
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

func newEvent(kind, subject, data string) cloudevents.Event {
	e := cloudevents.New()
	e.SetType(kind)
	e.SetSource("/ci")
	e.SetID("1")
	if subject != "" {
		e.SetSubject(subject)
	}
	if data != "" {
		_ = e.SetData(cloudevents.ApplicationJSON, []byte(data))
	}
	return e
}

func TestParse(t *testing.T) {
	ask := func(o Operation) Request {
		return Request{Operation: o, Namespace: "team", Stack: "app", Identity: Identity("/ci", "1")}
	}
	with := func(r Request, change func(*Request)) Request { change(&r); return r }
	cases := map[string]struct {
		kind, subject, data string
		want                Request
		says                string
	}{
		"By subject":                       {kind: "dev.updraft.request.update", subject: "team/app", want: ask(Update)},
		"By the subject of our own events": {kind: "dev.updraft.request.preview", subject: "stack/team/app", want: ask(Preview)},
		"By data":                          {kind: "dev.updraft.request.refresh", data: `{"namespace":"team","stack":"app"}`, want: ask(Refresh)},
		"By both, which agree":             {kind: "dev.updraft.request.destroy", subject: "team/app", data: `{"stack":"app"}`, want: ask(Destroy)},
		"In a namespace called stack":      {kind: "dev.updraft.request.update", subject: "stack/app", want: with(ask(Update), func(r *Request) { r.Namespace = "stack" })},
		"With a message": {
			kind: "dev.updraft.request.update", subject: "team/app", data: "{\"message\":\" Image\\n1.2\\u0000\\u202e \"}",
			want: with(ask(Update), func(r *Request) { r.Message = "Image 1.2" }),
		},
		"With a long message": {
			kind: "dev.updraft.request.update", subject: "team/app", data: `{"message":"` + strings.Repeat("ä", 600) + `"}`,
			want: with(ask(Update), func(r *Request) { r.Message = strings.Repeat("ä", 511) + "…" }),
		},
		"Cancel of an Update": {
			kind: "dev.updraft.request.cancel", subject: "team/app", data: `{"update":"app-1"}`,
			want: with(ask(Cancel), func(r *Request) { r.Update = "app-1" }),
		},
		"Another type":                 {kind: "dev.updraft.due", subject: "team/app", says: "use dev.updraft.request.update, "},
		"An operation that is none":    {kind: "dev.updraft.request.up", subject: "team/app", says: "are not understood here"},
		"No Stack":                     {kind: "dev.updraft.request.update", says: "names no Stack"},
		"A subject without namespace":  {kind: "dev.updraft.request.update", subject: "app", says: "use <namespace>/<name>"},
		"A subject of another kind":    {kind: "dev.updraft.request.update", subject: "update/team/app", says: "use <namespace>/<name>"},
		"A subject with too much":      {kind: "dev.updraft.request.update", subject: "stack/team/app/x", says: "use <namespace>/<name>"},
		"A subject that leads astray":  {kind: "dev.updraft.request.update", subject: "../app", says: "is no name of a namespace"},
		"A Stack that is no name":      {kind: "dev.updraft.request.update", subject: "team/App?x", says: "is no name of a Stack"},
		"Subject and data that differ": {kind: "dev.updraft.request.update", subject: "team/app", data: `{"namespace":"other"}`, says: "name one"},
		"A field that is misspelt":     {kind: "dev.updraft.request.update", subject: "team/app", data: `{"mesage":"x"}`, says: `unknown field "mesage"`},
		"Data that is a list":          {kind: "dev.updraft.request.update", subject: "team/app", data: `[]`, says: "send a JSON object"},
		"Data with more behind":        {kind: "dev.updraft.request.update", subject: "team/app", data: `{}{}`, says: "more than one"},
		"An Update that is no name":    {kind: "dev.updraft.request.cancel", subject: "team/app", data: `{"update":"../x"}`, says: "no name of an Update"},
		"An Update, not to cancel":     {kind: "dev.updraft.request.update", subject: "team/app", data: `{"update":"app-1"}`, says: "leave it out"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, problem := Parse(newEvent(c.kind, c.subject, c.data))
			if c.says != "" {
				if problem == nil || problem.Why != Invalid || !strings.Contains(problem.Error(), c.says) {
					t.Fatalf("problem = %+v, want one that says %q", problem, c.says)
				}
				return
			}
			if problem != nil {
				t.Fatal(problem)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("Data that is XML", func(t *testing.T) {
		e := newEvent("dev.updraft.request.update", "team/app", "")
		if err := e.SetData("application/xml", []byte("<a/>")); err != nil {
			t.Fatal(err)
		}
		if _, problem := Parse(e); problem == nil || !strings.Contains(problem.Error(), "send JSON") {
			t.Errorf("problem = %+v", problem)
		}
	})
}

func TestIdentitiesAreOfSourceAndID(t *testing.T) {
	seen := map[string][2]string{}
	for _, pair := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"", "abc"}, {"abc", ""}, {"a", "b c"}, {"/ci", "1"}, {"/ci", "2"}} {
		identity := Identity(pair[0], pair[1])
		if other, found := seen[identity]; found {
			t.Errorf("%q and %q have the same identity", other, pair)
		}
		if seen[identity] = pair; identity != Identity(pair[0], pair[1]) || !takenForm.MatchString(identity+":update") {
			t.Errorf("the identity of %q is %q", pair, identity)
		}
	}
}

// FuzzParse reads whatever an event may say: what comes out is safe as names and
// as annotations, and the event is known again.
func FuzzParse(f *testing.F) {
	f.Add("/ci", "1", "team/app", `{"message":"m"}`, "user")
	f.Add("a:b c", "1 2,3\n", "stack/team/app", `{"namespace":"team","stack":"app"}`, "a\x00b")
	f.Add("", "\xff", "../..", `{"update":"x"`, strings.Repeat("ü", 999))
	f.Fuzz(func(t *testing.T, source, id, subject, data, by string) {
		e := newEvent("dev.updraft.request.update", subject, data)
		_ = e.Context.SetSource(source)
		_ = e.Context.SetID(id)
		r, problem := Parse(e)
		if problem != nil {
			if problem.Detail == "" || strings.ContainsAny(problem.Detail, "\n\x00") {
				t.Errorf("problem = %q", problem.Detail)
			}
			return
		}
		r.By = by
		if len(validation.IsDNS1123Label(r.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(r.Stack)) > 0 || strings.ContainsAny(asks(r), "\n\x00") {
			t.Errorf("request = %+v", r)
		}
		if operation, found := find(remember("x y "+remember("", Request{Identity: Identity("other", "0"), Operation: Cancel}), r), r.Identity); !found || operation != Update {
			t.Error("it is not known again")
		}
	})
}
