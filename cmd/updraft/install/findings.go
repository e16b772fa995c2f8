package install

import (
	"fmt"
)

// findings are what preflight saw.
type findings struct {
	// problems each say what is missing and what to do.
	problems []string
	// notes are what a person should know and nothing to stop at.
	notes []string
	// operator says that another operator acts on the same objects: nothing may
	// go on beside it.
	operator bool
}

func (f *findings) problem(format string, arguments ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, arguments...))
}

func (f *findings) note(format string, arguments ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, arguments...))
}

// report prints all of it. It fails if there is a problem.
func (f *findings) report(s *screen) error {
	for _, note := range f.notes {
		s.print("Note: %s", note)
	}
	for _, problem := range f.problems {
		s.print("Problem: %s", problem)
	}
	switch len(f.problems) {
	case 0:
		s.say("The cluster has what Updraft needs")
		return nil
	case 1:
		return fmt.Errorf("the cluster is not ready for Updraft: 1 problem, see above; nothing was changed")
	default:
		return fmt.Errorf("the cluster is not ready for Updraft: %d problems, see above; nothing was changed", len(f.problems))
	}
}
