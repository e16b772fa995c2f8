package apiserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWatches asks a server that counts what reaches it.
func TestWatches(t *testing.T) {
	const pods, jobs = "/api/v1/pods", "/apis/batch/v1/namespaces/team/jobs"
	reached := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached++
		if r.URL.Query().Has("refuse") {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	w := newWatches([]watch{{path: pods, selector: "a=b"}, {path: jobs}})
	client := &http.Client{Transport: w.wrap(http.DefaultTransport)}

	for _, step := range []struct {
		reason, ask string
		code        int
		reaches     bool
		open        bool
	}{
		{"a list is no watch", jobs, 200, true, false},
		{"a watch that sends the list is refused here", pods + "?watch=true&labelSelector=a%3Db&sendInitialEvents=true", 422, false, false},
		{"a watch that the server refuses is not open", jobs + "?watch=true&refuse=yes", 403, true, false},
		{"one of two is open", jobs + "?watch=true&resourceVersion=7", 200, true, false},
		{"the same once more", jobs + "?watch=true&resourceVersion=9", 200, true, false},
		{"another selector is another watch", pods + "?watch=true", 200, true, false},
		{"both are open", pods + "?watch=true&labelSelector=a%3Db", 200, true, true},
		{"again, after all", pods + "?watch=true&labelSelector=a%3Db", 200, true, true},
	} {
		before := reached
		answer, err := client.Get(server.URL + step.ask)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != step.code || (reached > before) != step.reaches {
			t.Errorf("%s: answered %d, reached the server: %t", step.reason, answer.StatusCode, reached > before)
		}
		if step.code == 422 && !strings.Contains(string(body), `"kind":"Status"`) {
			t.Errorf("%s: the body is %s", step.reason, body)
		}
		select {
		case <-w.open:
			if !step.open {
				t.Fatalf("%s: open too early", step.reason)
			}
		default:
			if step.open {
				t.Errorf("%s: not open", step.reason)
			}
		}
	}
}
