package gitsource

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/gitremote/gittest"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// push sends what GitHub would of a push, signed with a secret.
func (s *space) push(secret, repository, ref string) int {
	s.Helper()
	payload, err := json.Marshal(map[string]any{
		"ref": ref, "repository": map[string]any{"clone_url": repository, "html_url": strings.TrimSuffix(repository, ".git")},
	})
	if err != nil {
		s.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(payload)
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, lab.env.Functions["updraft-gateway"]+"/webhooks/github/app", bytes.NewReader(payload))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("X-GitHub-Event", "push")
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// gathers lists the alarms that gather pushes.
func (s *space) gathers() []string {
	s.Helper()
	list, err := s.clients.Dynamic.Resource(pingSources).Namespace(dev.SystemNamespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	var names []string
	for _, source := range list.Items {
		if strings.HasPrefix(source.GetName(), "updraft-push-") {
			names = append(names, source.GetName())
		}
	}
	return names
}

// TestABurstOfPushesIsOneLook is not parallel: it counts the sessions with a
// server, and no poll of another test may be late.
func TestABurstOfPushesIsOneLook(t *testing.T) {
	const secret = "hush-hush"
	s := newSpace(t)
	webhooks := filepath.Join(lab.folder, "state", "webhooks")
	if err := errors.Join(os.MkdirAll(webhooks, 0o700), os.WriteFile(filepath.Join(webhooks, "app"), []byte(secret), 0o600)); err != nil {
		t.Fatal(err)
	}
	r := repository(t, "one")
	first := r.Git("rev-parse", "HEAD")
	server := gittest.Serve(t, r)
	s.apply("app", pulumiv1.GitSource{ProjectRepo: server.URL, Branch: "main"})
	s.ranAt("app", first, "one")
	s.poll("app")
	s.sees("app", first, "")
	poll, _ := stack.PollOf(s.get("app"))
	s.eventually("the poll is there", func() error {
		if s.pollSource(poll.Name()) == nil {
			return errors.New("it is not")
		}
		return nil
	})
	s.stays("app", 1)

	r.Write("Pulumi.yaml", project("two"))
	second := r.Commit()
	if got := s.push("another", server.URL, "refs/heads/main"); got != http.StatusUnauthorized {
		t.Errorf("a wrong signature is answered %d", got)
	}
	if got := s.gathers(); len(got) > 0 {
		t.Errorf("a wrong signature set %v", got)
	}
	// Pushes of the repository that no Stack follows, and of another repository.
	for _, one := range [][2]string{{server.URL, "refs/heads/other"}, {server.URL + "-web", "refs/heads/main"}} {
		if got := s.push(secret, one[0], one[1]); got != http.StatusAccepted {
			t.Errorf("the answer is %d", got)
		}
	}
	s.eventually("their alarms have rung", func() error {
		if left := s.gathers(); len(left) > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
	s.stays("app", 1)
	before := server.Sessions()

	const burst = 500
	began := time.Now()
	var wait sync.WaitGroup
	slots := make(chan bool, 16)
	for range burst {
		slots <- true
		wait.Go(func() {
			defer func() { <-slots }()
			if got := s.push(secret, server.URL+"/", "refs/heads/main"); got != http.StatusAccepted {
				t.Errorf("the answer is %d", got)
			}
		})
	}
	wait.Wait()
	sent := time.Since(began)
	t.Logf("%d pushes were taken in %.1f s", burst, sent.Seconds())
	s.sees("app", second, "")
	t.Logf("the commit was seen %.1f s after the first push", time.Since(began).Seconds())
	s.ranAt("app", second, "two")
	s.eventually("the alarm is gone", func() error {
		if left := s.gathers(); len(left) > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
	s.stays("app", 2)
	looks := server.Sessions() - before - 1 // the run fetches once
	t.Logf("%d pushes made %d looks at the repository", burst, looks)
	if most := 1 + int(sent/(3*time.Second)); looks < 1 || looks > most { // an alarm gathers for three seconds, or more
		t.Errorf("it should be %d at most", most)
	}
}
