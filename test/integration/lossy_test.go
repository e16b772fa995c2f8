package integration

import (
	"fmt"
	"testing"
)

func TestStacksConvergeThoughOneEventInThreeIsLost(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, lossy)
	s.program("greets", greets)
	names := []string{"one", "two", "three"}
	for _, name := range names {
		s.create(s.stackOf(name, "greets", destroyed))
	}
	for _, name := range names {
		s.awaitReady(name)
		s.change(name, config("name", name))
	}
	for _, name := range names {
		ready := s.awaitReady(name)
		if got, want := string(ready.Status.Outputs["message"].Raw), fmt.Sprintf(`"Hello, %s!"`, name); got != want {
			t.Errorf("%s says %s, want %s", name, got, want)
		}
		if n := s.operations("state", "greets", name); n != 2 {
			t.Errorf("the CLI ran %d times for %s, want 2", n, name)
		}
	}
	s.awaitRest()
	for _, name := range names {
		s.delete(name, background)
	}
	for _, name := range names {
		s.awaitGone(name)
		if n := s.operations("state", "greets", name); n != 3 {
			t.Errorf("the CLI ran %d times for %s, want 3", n, name)
		}
	}
	s.kubectl("delete", "program", "greets")
	s.awaitNothing()
}
