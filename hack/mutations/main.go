// Command mutations breaks Updraft in each way that test/abuse/mutations knows, in a copy of the tree, and demands that the abuse harness
// finds it: that the named case fails and says what it should. A fault that only keeps the tree from being built counts as not found.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/updraft-dev/updraft/test/abuse/mutations"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		os.Exit(1)
	}
}

// run tries the mutations whose name one of the patterns matches, or all.
func run(patterns []string) error {
	chosen, err := choose(patterns)
	if err != nil {
		return err
	}
	root, err := output(".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	missed := 0
	for _, m := range chosen {
		began := time.Now()
		fmt.Fprintf(os.Stderr, "%s: %s\n", m.Name, m.Breaks)
		caught, err := try(strings.TrimSpace(root), m)
		if err != nil {
			missed++
			fmt.Fprintf(os.Stderr, "    NOT CAUGHT: %v\n", err)
			caught = []string{"NOT CAUGHT"}
		}
		fmt.Fprintf(table, "%s\t%.0f s\t%s\n", m.Name, time.Since(began).Seconds(), strings.Join(caught, "; "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d mutations were not caught", missed, len(chosen))
	}
	return nil
}

func choose(patterns []string) ([]mutations.Mutation, error) {
	all, err := mutations.All()
	if err != nil {
		return nil, err
	}
	wanted, err := regexp.Compile(strings.Join(patterns, "|"))
	if err != nil {
		return nil, err
	}
	var chosen []mutations.Mutation
	for _, m := range all {
		if wanted.MatchString(m.Name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutation is called %s", wanted)
	}
	return chosen, nil
}

// try runs the cases of a mutation in a copy of the tree that has it, and returns the tests that caught it.
func try(root string, m mutations.Mutation) (caught []string, err error) {
	dir, err := os.MkdirTemp("", "updraft-mutation-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := copyTree(root, dir); err != nil {
		return nil, err
	}
	apply := exec.Command("git", "apply", "--whitespace=nowarn", "-")
	apply.Dir, apply.Stdin = dir, bytes.NewReader(m.Patch)
	// The copy is no repository, and is not to be taken for a part of one that the folder for temporary files may be in.
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := apply.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the patch does not apply: %w\n%s", err, out)
	}
	said, err := test(root, dir, m.Run)
	if err != nil {
		return nil, err
	}
	for _, c := range m.CaughtBy {
		if err := said.hasCaught(c); err != nil {
			return nil, err
		}
		caught = append(caught, c.String())
	}
	return caught, nil
}

// copyTree copies what git has or would add, as it is now.
func copyTree(root, dir string) error {
	files, err := output(root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(files, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil // deleted, and git has not been told
	}
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

// results are what each test said, and which failed.
type results struct {
	said   map[string]*strings.Builder
	failed map[string]bool
}

// hasCaught says why the test, or one below it, has not failed as it should.
func (r results) hasCaught(c mutations.Catch) error {
	name := strings.ReplaceAll(c.Test, " ", "_")
	var said strings.Builder
	for test := range r.failed {
		if text := r.said[test]; text != nil && (test == name || strings.HasPrefix(test, name+"/")) {
			said.WriteString(text.String())
		}
	}
	switch {
	case r.said[name] == nil:
		return fmt.Errorf("%s did not run", c.Test)
	case !r.failed[name]:
		return fmt.Errorf("%s passed", c.Test)
	case !c.Says.MatchString(said.String()):
		return fmt.Errorf("%s failed, but does not say %q:\n%s", c.Test, c.Says, said.String())
	default:
		return nil
	}
}

// test runs cases of the abuse harness in the copy, with the programs of the tree itself.
func test(root, dir, pattern string) (results, error) {
	r := results{said: map[string]*strings.Builder{}, failed: map[string]bool{}}
	command := exec.Command("go", "test", "-json", "-count=1", "-timeout=15m", "-run="+strings.ReplaceAll(pattern, " ", "_"), "./test/abuse")
	command.Dir = dir
	command.Env = append(os.Environ(), "UPDRAFT_BIN="+filepath.Join(root, ".bin"))
	out, err := command.StdoutPipe()
	if err != nil {
		return r, err
	}
	var stderr strings.Builder
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		return r, err
	}
	notBuilt, err := r.read(out)
	if err != nil {
		return r, errors.Join(err, command.Wait())
	}
	var exit *exec.ExitError
	if err := command.Wait(); err != nil && !errors.As(err, &exit) {
		return r, err
	}
	if notBuilt != "" || len(r.said) == 0 {
		return r, fmt.Errorf("it does not even build:\n%s%s", notBuilt, stderr.String())
	}
	return r, nil
}

// read takes the events of go test -json, and what the compiler said.
func (r results) read(from io.Reader) (notBuilt string, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return "", fmt.Errorf("cannot read what go test said: %w: %s", err, lines.Text())
		}
		switch {
		case e.Action == "build-output":
			notBuilt += e.Output
		case e.Test == "":
		case e.Action == "fail":
			r.failed[e.Test] = true
		default:
			if r.said[e.Test] == nil {
				r.said[e.Test] = &strings.Builder{}
			}
			r.said[e.Test].WriteString(e.Output)
		}
	}
	return notBuilt, lines.Err()
}

func output(dir, name string, arguments ...string) (string, error) {
	command := exec.Command(name, arguments...)
	command.Dir = dir
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("cannot run %s %s: %w", name, strings.Join(arguments, " "), err)
	}
	return string(out), nil
}
