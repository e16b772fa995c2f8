package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/test/schemas"
)

const secret = "correct-horse-battery-staple"

// broker keeps what it is sent.
type broker struct {
	sent []cloudevents.Event
	err  error
}

func (b *broker) Send(_ context.Context, e cloudevents.Event) error {
	if b.err == nil {
		b.sent = append(b.sent, e)
	}
	return b.err
}

func newReceiver(t *testing.T) (*Receiver, *broker) {
	t.Helper()
	dir := t.TempDir()
	secrets := filepath.Join(dir, "secrets")
	for name, content := range map[string]string{"secrets/app": secret + "\n", "secrets/empty": "\n", "outside": secret} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	b := &broker{}
	return &Receiver{Secrets: secrets, Namespace: "updraft-system", Broker: b, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, b
}

// sign adds what a host of this kind proves itself by.
func sign(kind, with string, header http.Header, body string) {
	mac := hmac.New(sha256.New, []byte(with))
	mac.Write([]byte(body))
	sum := hex.EncodeToString(mac.Sum(nil))
	switch kind {
	case "github":
		header.Set("X-Hub-Signature-256", "sha256="+sum)
	case "gitea":
		header.Set("X-Gitea-Signature", sum)
	case "forgejo":
		header.Set("X-Forgejo-Signature", sum)
	case "bitbucket":
		header.Set("X-Hub-Signature", "sha256="+sum)
	case "gitlab":
		header.Set("X-Gitlab-Token", with)
	case "plain":
		header.Set("X-Updraft-Token", with)
	}
}

func send(r *Receiver, method, path string, header http.Header, body io.Reader) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, body)
	request.Header = header
	w := httptest.NewRecorder()
	r.ServeHTTP(w, request)
	return w
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// payloads are of each host, with what they ask to look at. They have the form
// that the hosts document, with names of nobody.
var payloads = map[string]struct {
	kind, file, header, value string
	want                      []event.Push
}{
	"GitHub's push": {"github", "github-push.json", "X-GitHub-Event", "push", []event.Push{{Repository: "git.example/octo/app", Ref: "refs/heads/main"}}},
	"GitHub's ping": {"github", "github-ping.json", "X-GitHub-Event", "ping", nil},
	"GitHub's star": {"github", "github-ping.json", "X-GitHub-Event", "star", nil},
	"GitLab's push, with a host of its own for ssh": {"gitlab", "gitlab-push.json", "X-Gitlab-Event", "Push Hook", []event.Push{{Repository: "git.example/octo/app", Ref: "refs/heads/main"}, {Repository: "ssh.git.example/octo/app", Ref: "refs/heads/main"}}},
	"GitLab's tag":            {"gitlab", "gitlab-tag.json", "X-Gitlab-Event", "Tag Push Hook", []event.Push{{Repository: "git.example/octo/app", Ref: "refs/tags/v1.0.0"}}},
	"GitLab's issue":          {"gitlab", "gitlab-issue.json", "X-Gitlab-Event", "Issue Hook", nil},
	"Gitea's push":            {"gitea", "gitea-push.json", "X-Gitea-Event", "push", []event.Push{{Repository: "git.example/octo/app", Ref: "refs/heads/main"}}},
	"Gitea's star":            {"gitea", "gitea-push.json", "X-Gitea-Event", "star", nil},
	"Forgejo's push":          {"forgejo", "gitea-push.json", "X-Forgejo-Event", "push", []event.Push{{Repository: "git.example/octo/app", Ref: "refs/heads/main"}}},
	"Bitbucket Cloud's push":  {"bitbucket", "bitbucket-push.json", "X-Event-Key", "repo:push", []event.Push{{Repository: "git.example/octo/app", Ref: "refs/heads/main"}, {Repository: "git.example/octo/app", Ref: "refs/tags/v1"}, {Repository: "git.example/octo/app", Ref: "refs/heads/old"}}},
	"Bitbucket Server's push": {"bitbucket", "bitbucket-server-push.json", "X-Event-Key", "repo:refs_changed", []event.Push{{Repository: "git.example/octo/app", Ref: "refs/heads/main"}, {Repository: "git.example/scm/octo/app", Ref: "refs/heads/main"}}},
	"Bitbucket Server's ping": {"bitbucket", "bitbucket-server-ping.json", "X-Event-Key", "diagnostics:ping", nil},
}

func TestPayloads(t *testing.T) {
	all, err := schemas.Load("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range payloads {
		t.Run(name, func(t *testing.T) {
			r, b := newReceiver(t)
			body, header := read(t, c.file), http.Header{}
			header.Set("Content-Type", "application/json")
			header.Set(c.header, c.value)
			sign(c.kind, secret, header, body)
			w := send(r, http.MethodPost, "/webhooks/"+c.kind+"/app", header, strings.NewReader(body))
			want := http.StatusAccepted
			if c.want == nil {
				want = http.StatusNoContent
			}
			if w.Code != want || w.Body.Len() > 0 {
				t.Fatalf("the answer is %d %s", w.Code, w.Body)
			}
			var got []event.Push
			for _, e := range b.sent {
				var p event.Push
				about, err := event.About(e)
				if err := errors.Join(err, all.Check(e), e.DataAs(&p)); err != nil {
					t.Fatal(err)
				}
				if e.Type() != event.TypePush || about != (event.Ref{Kind: event.KindPush, Namespace: "updraft-system", Name: p.Name()}) {
					t.Errorf("the event is %s", e)
				}
				got = append(got, p)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestForms(t *testing.T) {
	push := []event.Push{{Repository: "git.example/octo/app", Ref: "refs/heads/main"}}
	for name, c := range map[string]struct {
		kind, contentType, body string
		status                  int
		want                    []event.Push
	}{
		"GitHub's form":                 {"github", "application/x-www-form-urlencoded", url.Values{"payload": {read(t, "github-push.json")}}.Encode(), 202, push},
		"plain JSON":                    {"plain", "application/json", `{"repository":"https://git.example/octo/app","ref":"refs/heads/main"}`, 202, push},
		"a plain form":                  {"plain", "application/x-www-form-urlencoded", "repository=git@git.example:octo/app.git&ref=refs/heads/main", 202, push},
		"plain without a ref":           {"plain", "", `{"repository":"https://git.example/octo/app"}`, 202, []event.Push{{Repository: "git.example/octo/app"}}},
		"plain with a short ref":        {"plain", "", `{"repository":"https://git.example/octo/app","ref":"main"}`, 400, nil},
		"plain without a repository":    {"plain", "", `{}`, 422, nil},
		"plain that is no JSON":         {"plain", "", `repository`, 400, nil},
		"GitHub's without a repository": {"github", "", `{"ref":"refs/heads/main"}`, 422, nil},
		"GitHub's that is no JSON":      {"github", "", `[]`, 400, nil},
		"nested deep":                   {"plain", "", strings.Repeat("[", 10000), 400, nil},
	} {
		r, b := newReceiver(t)
		header := http.Header{}
		header.Set("Content-Type", c.contentType)
		header.Set("X-GitHub-Event", "push")
		sign(c.kind, secret, header, c.body)
		w := send(r, http.MethodPost, "/webhooks/"+c.kind+"/app", header, strings.NewReader(c.body))
		var got []event.Push
		for _, e := range b.sent {
			var p event.Push
			if err := e.DataAs(&p); err != nil {
				t.Fatal(err)
			}
			got = append(got, p)
		}
		if diff := cmp.Diff(c.want, got); w.Code != c.status || diff != "" {
			t.Errorf("%s: %d %s\n%s", name, w.Code, w.Body, diff)
		}
	}
}

// TestWhoDoesNotProveItselfIsToldTheSame holds that neither a receiver's name nor
// its secret can be found out.
func TestWhoDoesNotProveItselfIsToldTheSame(t *testing.T) {
	for name, c := range payloads {
		r, b := newReceiver(t)
		body, answers := read(t, c.file), map[string]bool{}
		for what, one := range map[string]struct {
			receiver string
			spoil    func(http.Header, *string)
		}{
			"another secret":   {"app", func(h http.Header, body *string) { sign(c.kind, "another", h, *body) }},
			"no secret":        {"app", func(http.Header, *string) {}},
			"an empty secret":  {"empty", func(h http.Header, body *string) { sign(c.kind, "", h, *body) }},
			"no receiver":      {"", func(h http.Header, body *string) { sign(c.kind, secret, h, *body) }},
			"another receiver": {"web", func(h http.Header, body *string) { sign(c.kind, secret, h, *body) }},
			"a file elsewhere": {"../outside", func(h http.Header, body *string) { sign(c.kind, secret, h, *body) }},
			"a hidden file":    {"..data", func(h http.Header, body *string) { sign(c.kind, secret, h, *body) }},
			"a signature of half": {"app", func(h http.Header, body *string) {
				sign(c.kind, secret, h, *body)
				for key := range h {
					if key != http.CanonicalHeaderKey(c.header) {
						h.Set(key, h.Get(key)[:len(h.Get(key))-2])
					}
				}
			}},
		} {
			header, sent := http.Header{}, body
			header.Set(c.header, c.value)
			one.spoil(header, &sent)
			w := send(r, http.MethodPost, "/webhooks/"+c.kind+"/"+one.receiver, header, strings.NewReader(sent))
			if w.Code != http.StatusUnauthorized {
				t.Errorf("%s, %s: %d %s", name, what, w.Code, w.Body)
			}
			answers[w.Body.String()] = true
		}
		if len(answers) != 1 || len(b.sent) > 0 {
			t.Errorf("%s: %d answers, %d events", name, len(answers), len(b.sent))
		}
		if c.kind == "gitlab" || c.kind == "plain" {
			continue // their token does not speak for the body
		}
		header := http.Header{}
		header.Set(c.header, c.value)
		sign(c.kind, secret, header, body)
		if w := send(r, http.MethodPost, "/webhooks/"+c.kind+"/app", header, strings.NewReader(body+" ")); w.Code != http.StatusUnauthorized {
			t.Errorf("%s: another body is taken", name)
		}
	}
}

func TestWhatIsRefusedEarly(t *testing.T) {
	r, b := newReceiver(t)
	token := http.Header{"X-Updraft-Token": {secret}}
	large := strings.Repeat("x", 25<<20)
	for name, c := range map[string]struct {
		method, path string
		body         io.Reader
		status       int
	}{
		"a body of 25 MB":              {http.MethodPost, "/webhooks/plain/app", strings.NewReader(large), http.StatusRequestEntityTooLarge},
		"one whose length is not told": {http.MethodPost, "/webhooks/plain/app", io.MultiReader(strings.NewReader(large)), http.StatusRequestEntityTooLarge},
		"another kind":                 {http.MethodPost, "/webhooks/svn/app", http.NoBody, http.StatusNotFound},
		"no kind":                      {http.MethodPost, "/webhooks/", http.NoBody, http.StatusNotFound},
		"GET":                          {http.MethodGet, "/webhooks/plain/app", http.NoBody, http.StatusMethodNotAllowed},
	} {
		if w := send(r, c.method, c.path, token, c.body); w.Code != c.status || w.Body.Len() == 0 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if len(b.sent) > 0 {
		t.Errorf("events = %v", b.sent)
	}
}

func TestAPushOfManyRefsIsOneOfTheRepository(t *testing.T) {
	var pushes []push
	for ref := range strings.SplitSeq(strings.Repeat("x", 100), "") {
		pushes = append(pushes, push{repositories: []string{"https://git.example/a", "git@git.example:a.git"}, ref: "refs/heads/" + ref + strings.Repeat("y", len(pushes))})
	}
	if diff := cmp.Diff([]event.Push{{Repository: "git.example/a"}}, looks(pushes)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestABrokerThatDoesNotAnswerIsTriedAgain(t *testing.T) {
	r, b := newReceiver(t)
	b.err = errors.New("no")
	body := `{"repository":"https://git.example/octo/app"}`
	if w := send(r, http.MethodPost, "/webhooks/plain/app", http.Header{"X-Updraft-Token": {secret}}, strings.NewReader(body)); w.Code != http.StatusServiceUnavailable {
		t.Errorf("the answer is %d", w.Code)
	}
}

func TestASecretCountsFromWhenItIsThere(t *testing.T) {
	r, _ := newReceiver(t)
	body, header := `{"repository":"https://git.example/octo/app"}`, http.Header{"X-Updraft-Token": {"new"}}
	if w := send(r, http.MethodPost, "/webhooks/plain/later", header, strings.NewReader(body)); w.Code != http.StatusUnauthorized {
		t.Errorf("before: %d", w.Code)
	}
	if err := os.WriteFile(filepath.Join(r.Secrets, "later"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w := send(r, http.MethodPost, "/webhooks/plain/later", header, strings.NewReader(body)); w.Code != http.StatusAccepted {
		t.Errorf("after: %d", w.Code)
	}
}

// FuzzPayloads reads whatever may be signed: it is told apart without a panic, and
// what comes out is an event.
func FuzzPayloads(f *testing.F) {
	for _, c := range payloads {
		content, err := os.ReadFile(filepath.Join("testdata", c.file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(c.kind, c.header, c.value, content)
	}
	f.Fuzz(func(t *testing.T, kind, name, value string, body []byte) {
		from, ok := hosts[kind]
		if !ok {
			return
		}
		header := http.Header{}
		header.Set(name, value)
		pushes, err := from.parse(header, body)
		if err != nil {
			return
		}
		for _, look := range looks(pushes) {
			e, err := event.NewPush("test", "1", "updraft-system", look)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := event.About(e); err != nil {
				t.Error(err)
			}
		}
	})
}
