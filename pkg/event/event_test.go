package event

import (
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNewDue(t *testing.T) {
	about := Ref{Kind: KindStack, Namespace: "team", Name: "app"}
	e := NewDue("updraft-sweep", "1", about)
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{
		"type": e.Type(), "source": e.Source(), "id": e.ID(), "subject": e.Subject(), "version": e.SpecVersion(), "data": len(e.Data()),
	}
	for name, value := range e.Extensions() {
		got["extension "+name] = value
	}
	want := map[string]any{
		"type": "dev.updraft.due", "source": "/updraft/updraft-sweep", "id": "1", "subject": "stack/team/app", "version": "1.0", "data": 0,
		"extension kind": "Stack", "extension namespace": "team", "extension name": "app",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	back, err := About(e)
	if err != nil || back != about {
		t.Errorf("About = %v, %v", back, err)
	}
	if got := about.String(); got != "Stack team/app" {
		t.Errorf("String = %q", got)
	}
}

func TestNew(t *testing.T) {
	about := Ref{Kind: KindUpdate, Namespace: "team", Name: "app-1"}
	t.Run("Data is JSON", func(t *testing.T) {
		e, err := New(TypeRunFinished, "agent", "1", about, Finished{UID: "u", State: "succeeded", Outputs: map[string]Output{"a": {Value: []byte(`{"b":1}`), Secret: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"uid":"u","state":"succeeded","outputs":{"a":{"value":{"b":1},"secret":true}}}`; string(e.Data()) != want || e.DataContentType() != "application/json" {
			t.Errorf("data = %s of %s", e.Data(), e.DataContentType())
		}
		var back Finished
		if err := e.DataAs(&back); err != nil || string(back.Outputs["a"].Value) != `{"b":1}` {
			t.Errorf("back = %+v, %v", back, err)
		}
	})
	t.Run("No data is none", func(t *testing.T) {
		e, err := New(TypeRunStarted, "status", "1", about, nil)
		if err != nil || e.Data() != nil || e.DataContentType() != "" {
			t.Errorf("data = %s of %s, %v", e.Data(), e.DataContentType(), err)
		}
	})
	t.Run("Data that is no JSON is refused", func(t *testing.T) {
		if _, err := New(TypeRunStarted, "status", "1", about, make(chan int)); err == nil || !strings.Contains(err.Error(), TypeRunStarted) {
			t.Errorf("error = %v", err)
		}
	})
}

func TestAbout(t *testing.T) {
	type names = map[string]any
	cases := map[string]struct {
		extensions names
		want       Ref
		refused    bool
	}{
		"All three":                    {extensions: names{"kind": "Stack", "namespace": "team", "name": "app"}, want: Ref{"Stack", "team", "app"}},
		"A name with dots":             {extensions: names{"kind": "Job", "namespace": "team", "name": "app.v1"}, want: Ref{"Job", "team", "app.v1"}},
		"None":                         {refused: true},
		"No kind":                      {extensions: names{"namespace": "team", "name": "app"}, refused: true},
		"No name":                      {extensions: names{"kind": "Stack", "namespace": "team"}, refused: true},
		"No namespace":                 {extensions: names{"kind": "Stack", "name": "app"}, refused: true},
		"A name with a slash":          {extensions: names{"kind": "Stack", "namespace": "team", "name": "a/b"}, refused: true},
		"A name of another namespace":  {extensions: names{"kind": "Stack", "namespace": "team", "name": "../other/app"}, refused: true},
		"A namespace with a slash":     {extensions: names{"kind": "Stack", "namespace": "a/b", "name": "app"}, refused: true},
		"A namespace with dots":        {extensions: names{"kind": "Stack", "namespace": "a.b", "name": "app"}, refused: true},
		"A name with a question":       {extensions: names{"kind": "Stack", "namespace": "team", "name": "app?dryRun=All"}, refused: true},
		"A name with capitals":         {extensions: names{"kind": "Stack", "namespace": "team", "name": "App"}, refused: true},
		"A name that is too long":      {extensions: names{"kind": "Stack", "namespace": "team", "name": strings.Repeat("a", 254)}, refused: true},
		"A namespace that is too long": {extensions: names{"kind": "Stack", "namespace": strings.Repeat("a", 64), "name": "app"}, refused: true},
		"A name that is a number":      {extensions: names{"kind": "Stack", "namespace": "team", "name": int32(7)}, refused: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := cloudevents.New()
			e.SetID("1")
			for key, value := range c.extensions {
				e.SetExtension(key, value)
			}
			got, err := About(e)
			if (err != nil) != c.refused || err == nil && got != c.want {
				t.Errorf("About = %v, %v", got, err)
			}
		})
	}
}

// FuzzAbout reads whatever an event may carry: no name comes out of it that the
// API server would take for another place.
func FuzzAbout(f *testing.F) {
	f.Add("Stack", "team", "app")
	f.Add("", "", "")
	f.Add("Stack", "te/am", "../x")
	f.Add("Stack\x00", "team\n", "äpp")
	f.Add("Stack", "team", strings.Repeat("a.", 200))
	f.Fuzz(func(t *testing.T, kind, namespace, name string) {
		e := cloudevents.New()
		e.SetExtension("kind", kind)
		e.SetExtension("namespace", namespace)
		e.SetExtension("name", name)
		got, err := About(e)
		if err != nil {
			return
		}
		if got.Kind == "" || len(validation.IsDNS1123Label(got.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(got.Name)) > 0 {
			t.Errorf("About = %+v", got)
		}
		if again, err := About(NewDue("test", "1", got)); err != nil || again != got {
			t.Errorf("There and back it is %+v, %v", again, err)
		}
	})
}
