package stack

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

func withPaths(globs string) *pulumiv1.Stack {
	return &pulumiv1.Stack{
		ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "team", Annotations: map[string]string{pulumiv1.AnnotationPaths: globs}},
		Spec:       pulumiv1.StackSpec{Stack: "dev", GitSource: &pulumiv1.GitSource{ProjectRepo: "https://git.example/app", Branch: "main"}},
	}
}

func TestTouches(t *testing.T) {
	for _, c := range []struct {
		globs, changed string
		want           bool
	}{
		{"", "anything", true},
		{" , \n", "anything", true},
		{"apps/web/**", "apps/web/index.ts", true},
		{"apps/web/**", "apps/web/a/b/c", true},
		{"apps/web/**", "apps/website/index.ts", false},
		{"apps/web/**", "README.md", false},
		{"apps/web", "apps/web/index.ts", true},
		{"apps/web/", "apps/web/index.ts", true},
		{"/apps/web/", "apps/web/index.ts", true},
		{"apps/web", "apps/website", false},
		{"*.md", "README.md", true},
		{"*.md", "docs/README.md", false},
		{"**/*.md", "docs/README.md", true},
		{"apps/{web,api}/**", "apps/api/x", true},
		{"apps/*/Pulumi.yaml", "apps/x/Pulumi.yaml", true},
		{"apps/web/**, libs/**", "README.md libs/a", true},
		{"apps/web/**\nlibs/**", "libs/a", true},
		{"apps/web/**", "", false},
	} {
		if got := Touches(withPaths(c.globs), strings.Fields(c.changed)); got != c.want {
			t.Errorf("%q touched by %q: %v", c.globs, c.changed, got)
		}
	}
}

func TestGlobsThatCannotBeServed(t *testing.T) {
	for globs, refused := range map[string]bool{
		"": false, "apps/**": false, "a,b": false, "/apps/": false, "a[": true, "{a": true, "!docs/**": true, "../x": true, "apps/../x": true, "./apps": true, "a..b": false,
	} {
		if problem := Validate(withPaths(globs)); (problem != "") != refused {
			t.Errorf("%q: %q", globs, problem)
		}
	}
}

// A commit that touches nothing of a Stack starts no run, and hides none that does.
func TestWhatACommitTouches(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const globs, ran, newest = "apps/web/**", "aaaa", "bbbb"
	ready := func(change func(*pulumiv1.Stack)) World {
		s := withPaths(globs)
		s.Generation = 1
		s.Status.LastUpdate = &pulumiv1.StackUpdateState{
			Generation: 1, State: pulumiv1.SucceededStackStateMessage, LastAttemptedCommit: ran, LastSuccessfulCommit: ran, LastResyncTime: metav1.NewTime(now),
		}
		s.Status.Source = &pulumiv1.SourceStatus{Poll: pollOf(s).Name(), Revision: newest}
		SameAs(s, s.Status.Source, ran)
		change(s)
		s.Finalizers = []string{pulumiv1.Finalizer}
		w := World{Stack: s}
		w.Source, _ = GitSource(s)
		return w
	}
	for name, c := range map[string]struct {
		change func(*pulumiv1.Stack)
		runs   bool
	}{
		"It touches nothing":                  {func(*pulumiv1.Stack) {}, false},
		"It is not known what it touches":     {func(s *pulumiv1.Stack) { s.Status.Source.SameAs = "" }, true},
		"It was compared with another commit": {func(s *pulumiv1.Stack) { s.Status.Source.SameAs = "cccc" }, true},
		"It was compared by other paths":      {func(s *pulumiv1.Stack) { s.Annotations[pulumiv1.AnnotationPaths] = "apps/api/**" }, true},
		"The paths are gone":                  {func(s *pulumiv1.Stack) { delete(s.Annotations, pulumiv1.AnnotationPaths) }, true},
		"The poll is of another branch":       {func(s *pulumiv1.Stack) { s.Spec.Branch = "other" }, false}, // nothing is seen of it yet
		"The commit that ran is another by now": {func(s *pulumiv1.Stack) {
			s.Status.LastUpdate.LastAttemptedCommit = "cccc"
			s.Status.LastUpdate.LastSuccessfulCommit = "cccc"
		}, true},
		"Another generation runs":                {func(s *pulumiv1.Stack) { s.Generation = 2 }, true},
		"A request runs":                         {func(s *pulumiv1.Stack) { s.Annotations[pulumiv1.AnnotationReconcileRequest] = "x" }, true},
		"What ran has failed, for good":          {func(s *pulumiv1.Stack) { fail(s, maxFailures) }, false},
		"What ran has failed, and another is on": {func(s *pulumiv1.Stack) { fail(s, maxFailures); s.Status.Source.SameAs = "" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := ready(c.change)
			v := Assess(w, now)
			if got := v.Action == Claim; got != c.runs {
				t.Fatalf("the action is %s", v.Action)
			}
			if c.runs && v.Plan.Wanted.Revision != newest {
				t.Errorf("it runs %s, and not the newest", v.Plan.Wanted.Revision)
			}
			if behind := RunsBehind(w.Stack); behind && !c.runs {
				t.Error("the sweep would look at it for ever")
			}
		})
	}
}

func fail(s *pulumiv1.Stack, failures int64) {
	s.Status.LastUpdate.State, s.Status.LastUpdate.Failures = pulumiv1.FailedStackStateMessage, failures
	s.Status.LastUpdate.LastSuccessfulCommit = "0000"
}

func TestBase(t *testing.T) {
	last := func(s *pulumiv1.Stack) { s.Status.LastUpdate = &pulumiv1.StackUpdateState{LastAttemptedCommit: "aaaa"} }
	for name, c := range map[string]struct {
		globs  string
		change func(*pulumiv1.Stack)
		want   string
	}{
		"What ran last": {"apps/**", last, "aaaa"},
		"What runs now": {"apps/**", func(s *pulumiv1.Stack) {
			last(s)
			s.Status.CurrentUpdate = &pulumiv1.CurrentStackUpdate{Commit: "bbbb"}
		}, "bbbb"},
		"What nobody told": {"apps/**", func(s *pulumiv1.Stack) { last(s); s.Status.CurrentUpdate = &pulumiv1.CurrentStackUpdate{} }, "aaaa"},
		"Nothing ran":      {"apps/**", func(*pulumiv1.Stack) {}, ""},
		"No paths":         {"", last, ""},
	} {
		s := withPaths(c.globs)
		if c.change(s); Base(s) != c.want {
			t.Errorf("%s: %q", name, Base(s))
		}
	}
}
