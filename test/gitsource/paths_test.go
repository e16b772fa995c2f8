package gitsource

import (
	"errors"
	"testing"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/gitremote/gittest"
)

func TestACommitThatTouchesNothingOfAStackStartsNoRun(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	r := repository(t, "root")
	r.Git("config", "uploadpack.allowFilter", "true")
	r.Write("web/Pulumi.yaml", project("web"))
	r.Write("api/Pulumi.yaml", project("api"))
	first := r.Commit()
	server := gittest.Serve(t, r)
	on := func(dir string) pulumiv1.GitSource {
		return pulumiv1.GitSource{ProjectRepo: server.URL, Branch: "main", RepoDir: dir}
	}
	depends := func(globs string) func(*pulumiv1.Stack) {
		return func(o *pulumiv1.Stack) { o.Annotations = map[string]string{pulumiv1.AnnotationPaths: globs} }
	}
	s.apply("web", on("web"), depends("web, shared/**"))
	s.apply("api", on("api"), depends("api/**"))
	s.ranAt("web", first, "web")
	s.ranAt("api", first, "api")

	r.Write("api/Pulumi.yaml", project("api 2"))
	second := r.Commit()
	before := server.Sessions()
	s.poll("web")
	s.ranAt("api", second, "api 2")
	s.sees("web", second, "")
	if seen := s.get("web").Status.Source; seen.SameAs != first {
		t.Errorf("web sees %+v", seen)
	}
	s.stays("web", 1)
	if got := server.Sessions() - before; got != 1+1+1 {
		t.Errorf("%d sessions with the server, want one to list its refs, one to compare, and one of the run", got)
	}

	// What is of both runs both, each compared with what it ran.
	r.Write("shared/names", "a")
	third := r.Commit()
	r.Write("README.md", "About")
	fourth := r.Commit()
	s.poll("web")
	s.ranAt("web", fourth, "web")
	s.sees("api", fourth, "")
	if seen := s.get("api").Status.Source; seen.SameAs != second {
		t.Errorf("api sees %+v, not compared with %s and not with %s", seen, second, third)
	}
	s.stays("api", 2)

	// A commit that was left out runs when something else asks for a run.
	s.patch("api", `{"metadata":{"annotations":{"pulumi.com/reconciliation-request":"1"}}}`)
	s.ranAt("api", fourth, "api 2")
	s.until("web", "is at rest", func(o *pulumiv1.Stack) error {
		if o.Status.CurrentUpdate != nil {
			return errors.New("it is not")
		}
		return nil
	})
	s.stays("web", 2)
}
