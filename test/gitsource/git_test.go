package gitsource

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/gitremote/gittest"
	"github.com/updraft-dev/updraft/pkg/stack"
)

func TestACommitLeadsToOneUpdate(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	r := repository(t, "one")
	first := r.Git("rev-parse", "HEAD")
	s.apply("app", pulumiv1.GitSource{ProjectRepo: gittest.Serve(t, r).URL, Branch: "main"})

	ran := s.ranAt("app", first, "one")
	if ran.Status.Source != nil {
		t.Errorf("the first update waited for a poll: %+v", ran.Status.Source)
	}
	s.poll("app")
	s.sees("app", first, "")
	s.stays("app", 1)

	r.Write("Pulumi.yaml", project("two"))
	second := r.Commit()
	s.poll("app")
	s.poll("app")
	s.ranAt("app", second, "two")
	s.stays("app", 2)
	for i, u := range s.updates("app") {
		stands, err := stack.ParseFor(&u)
		want := []string{"", second}[i]
		if err != nil || stands.Revision != want || u.Status.Result.Commit != []string{first, second}[i] {
			t.Errorf("Update %d stands for %q and ran %s (%v)", i, stands.Revision, u.Status.Result.Commit, err)
		}
	}

	r.Write("Pulumi.yaml", project("three"))
	third := r.Commit()
	s.ring("app")
	s.ranAt("app", third, "three")
	s.stays("app", 3)
}

func TestStacksOfOneRepositoryShareAPoll(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	r := repository(t, "root")
	r.Write("web/Pulumi.yaml", project("web"))
	first := r.Commit()
	server := gittest.Serve(t, r)
	s.apply("root", pulumiv1.GitSource{ProjectRepo: server.URL, Branch: "main"})
	s.apply("web", pulumiv1.GitSource{ProjectRepo: server.URL, Branch: "main", RepoDir: "web", Shallow: true})
	s.ranAt("root", first, "root")
	s.ranAt("web", first, "web")

	poll, _ := stack.PollOf(s.get("root"))
	s.eventually("both own the poll", func() error {
		if source := s.pollSource(poll.Name()); source == nil || len(source.GetOwnerReferences()) != 2 {
			return errors.New("they do not")
		}
		return nil
	})

	r.Write("README.md", "A change for both\n")
	second := r.Commit()
	before := server.Sessions()
	s.poll("web")
	s.ranAt("root", second, "root")
	s.ranAt("web", second, "web")
	if got := server.Sessions() - before; got != 1+2 {
		t.Errorf("%d sessions with the server, want one to list its refs and one of each run", got)
	}

	// Who has left it is no owner, and the last takes it along.
	s.patch("root", `{"spec":{"branch":null,"commit":"`+first+`"}}`)
	s.ranAt("root", first, "root")
	s.eventually("one owns the poll", func() error {
		if source := s.pollSource(poll.Name()); source == nil || len(source.GetOwnerReferences()) != 1 {
			return errors.New("it does not")
		}
		return nil
	})
	s.remove("web")
	s.gone(poll.Name())
}

func TestAPollThatNobodyNeedsGoes(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	r := repository(t, "one")
	first := r.Git("rev-parse", "HEAD")
	s.apply("app", pulumiv1.GitSource{ProjectRepo: r.URL(), Branch: "main"})
	s.ranAt("app", first, "one")
	poll, _ := stack.PollOf(s.get("app"))
	s.ring("app") // it has seen nothing yet, so that the Stack does not remember it
	s.patch("app", `{"spec":{"branch":null,"commit":"`+first+`"}}`)
	s.gone(poll.Name())
}

func TestRefs(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	r := repository(t, "old")
	old := r.Git("rev-parse", "HEAD")
	r.Git("tag", "--annotate", "--message=A version", "v1")
	r.Write("Pulumi.yaml", project("new"))
	r.Write("infra/Pulumi.yaml", project("infra"))
	tip := r.Commit()
	cases := map[string]struct {
		source          pulumiv1.GitSource
		commit, message string
	}{
		"tag":    {pulumiv1.GitSource{Branch: "v1"}, old, "old"},
		"commit": {pulumiv1.GitSource{Commit: old, Shallow: true}, old, "old"},
		"dir":    {pulumiv1.GitSource{Branch: "refs/heads/main", RepoDir: "infra"}, tip, "infra"},
	}
	for name, c := range cases {
		c.source.ProjectRepo = r.URL()
		s.apply(name, c.source)
	}
	for name, c := range cases {
		s.ranAt(name, c.commit, c.message)
	}
	if s.get("commit").Status.Source != nil || len(s.polls()) != 2 {
		t.Errorf("polls are %v, want one of the tag and one of the branch", s.polls())
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	r := repository(t, "one")
	server := gittest.Serve(t, r)
	invalid := map[string]struct {
		source pulumiv1.GitSource
		says   string
	}{
		"no-repository": {pulumiv1.GitSource{Branch: "main"}, `missing "projectRepo"`},
		"no-ref":        {pulumiv1.GitSource{ProjectRepo: server.URL}, `missing "commit" or "branch"`},
		"two-refs":      {pulumiv1.GitSource{ProjectRepo: server.URL, Branch: "main", Commit: "main"}, `only one of "commit" or "branch" should be specified`},
		"bad-url":       {pulumiv1.GitSource{ProjectRepo: "git@git.example:app", Branch: "main"}, "SSH is not served yet"},
	}
	failing := map[string]struct {
		source pulumiv1.GitSource
		says   string
	}{
		"bad-branch":     {pulumiv1.GitSource{ProjectRepo: server.URL, Branch: "nowhere"}, `has no branch or tag "nowhere"`},
		"bad-commit":     {pulumiv1.GitSource{ProjectRepo: server.URL, Commit: strings.Repeat("ab", 20)}, "has no commit abab"},
		"bad-repository": {pulumiv1.GitSource{ProjectRepo: strings.Replace(server.URL, "repository", "other", 1), Branch: "main"}, "there is no repository http"},
		"bad-dir":        {pulumiv1.GitSource{ProjectRepo: server.URL, Branch: "main", RepoDir: "infra"}, "has no folder infra"},
	}
	for name, c := range invalid {
		s.apply(name, c.source)
	}
	for name, c := range failing {
		s.apply(name, c.source)
	}
	for name, c := range invalid {
		s.condition(name, pulumiv1.StalledCondition, string(pulumiv1.StalledSpecInvalid), c.says)
	}
	for name, c := range failing {
		o := s.until(name, "fails", func(o *pulumiv1.Stack) error {
			if last := o.Status.LastUpdate; last == nil || last.State != pulumiv1.FailedStackStateMessage {
				return errors.New("it does not")
			}
			return nil
		})
		if last := o.Status.LastUpdate; last.Reason != "WorkspaceFailed" || !strings.Contains(last.Message, c.says) {
			t.Errorf("%s: %s %q, want one that says %q", name, last.Reason, last.Message, c.says)
		}
	}
	s.poll("bad-branch")
	s.sees("bad-branch", "", `has no branch or tag "nowhere"`)

	// It is corrected at the source, and found by the next poll.
	r.Git("branch", "nowhere")
	s.poll("bad-branch")
	s.ranAt("bad-branch", r.Git("rev-parse", "HEAD"), "one")
}

func TestARepositoryThatCannotBeReadAnyMore(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	r := repository(t, "one")
	first := r.Git("rev-parse", "HEAD")
	server := gittest.Serve(t, r)
	_, err := s.clients.Core.Secrets(s.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "git"}, StringData: map[string]string{"accessToken": token},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server.Protect("git", token)
	reference := pulumiv1.ResourceRef{SelectorType: pulumiv1.ResourceSelectorSecret, SecretRef: &pulumiv1.SecretSelector{Name: "git", Key: "accessToken"}}
	s.apply("app", pulumiv1.GitSource{ProjectRepo: server.URL, Branch: "main", GitAuth: &pulumiv1.GitAuthConfig{PersonalAccessToken: &reference}})
	s.apply("old", pulumiv1.GitSource{ProjectRepo: server.URL, Branch: "main", GitAuthSecret: "git"})
	s.ranAt("app", first, "one")
	s.ranAt("old", first, "one")
	s.poll("app")
	s.poll("old")
	s.sees("app", first, "")
	s.sees("old", first, "")

	server.Protect("git", "another")
	s.poll("app")
	s.sees("app", first, "wants credentials, or others than these")
	s.condition("app", pulumiv1.ReadyCondition, string(pulumiv1.ReadyCompleted), "cannot be read")
	before := server.Refused()
	s.poll("app")
	s.eventually("it is polled again", func() error {
		if got := server.Refused(); got == before {
			return errors.New("it is not: " + strconv.Itoa(got))
		}
		return nil
	})
	s.stays("app", 1)

	server.Protect("git", token)
	s.poll("app")
	s.sees("app", first, "")
	s.stays("app", 1)
}
