// Package mutations holds deliberate faults of Updraft, a patch each, and what of the abuse harness must find them. A harness that finds
// nothing may be one that cannot.
//
// A patch begins with its header, a field a line:
//
//	Breaks: <what is wrong with it, in a sentence>
//	Run: <the pattern of the cases to run, as go test -run has it>
//	Caught by: <a test>: <what it, or one below it, says, as a regular expression>
//
// There may be several of the last, which must all hold. The unified diff follows. make mutations runs them all.
package mutations

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed *.patch
var patches embed.FS

// Mutation is one deliberate fault.
type Mutation struct {
	// Name is that of its patch, without the ending.
	Name string
	// Breaks says what is wrong with it.
	Breaks string
	// Run is the pattern of the cases to run.
	Run string
	// CaughtBy are the tests that must fail, and what they must say.
	CaughtBy []Catch
	// Patch is the whole file: what git reads of it begins with the diff.
	Patch []byte
}

// Catch is a test that must fail, and what it or one below it must say.
type Catch struct {
	Test string
	Says *regexp.Regexp
}

func (c Catch) String() string { return c.Test + ": " + c.Says.String() }

// All reads all mutations, by name.
func All() ([]Mutation, error) {
	files, err := fs.Glob(patches, "*.patch")
	if err != nil {
		return nil, err
	}
	var all []Mutation
	for _, file := range files {
		text, err := patches.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(file, ".patch"), text)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		all = append(all, m)
	}
	return all, nil
}

func parse(name string, text []byte) (Mutation, error) {
	m := Mutation{Name: name, Patch: text}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "diff ") {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "Breaks":
			m.Breaks = value
		case "Run":
			m.Run = value
		case "Caught by":
			test, says, _ := strings.Cut(value, ": ")
			pattern, err := regexp.Compile(says)
			if err != nil {
				return m, err
			}
			m.CaughtBy = append(m.CaughtBy, Catch{Test: test, Says: pattern})
		case "":
		default:
			return m, fmt.Errorf("%q is no field of the header", field)
		}
	}
	if m.Breaks == "" || m.Run == "" || len(m.CaughtBy) == 0 {
		return m, errors.New("the header needs Breaks, Run and Caught by")
	}
	if _, err := regexp.Compile(m.Run); err != nil {
		return m, err
	}
	return m, lines.Err()
}
