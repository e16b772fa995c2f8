package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reason is one constant of a type whose name ends in Reason.
type reason struct {
	constant string
	// kind of object, and condition, that it is a reason of.
	kind, condition string
	name            string
	// comment of the constant, without its name.
	comment string
}

// page is the file of a reason.
func (r reason) page() string { return strings.ToLower(r.kind) + "-" + r.name + ".md" }

// title is the heading of its page.
func (r reason) title() string { return r.kind + ": " + r.condition + "/" + r.name }

// first sentence of the comment.
func (r reason) first() string {
	sentence := r.comment
	if cut := strings.Index(sentence, ". "); cut > 0 {
		sentence = sentence[:cut+1]
	}
	letter, size := utf8.DecodeRuneInString(sentence)
	return string(unicode.ToUpper(letter)) + sentence[size:]
}

// read finds all reasons in the files reasons.go below a folder, in their order.
func read(dir string) ([]reason, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "reasons.go"))
	if err != nil {
		return nil, err
	}
	var all []reason
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		found, err := reasonsOf(parsed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, found...)
	}
	// The Stack first: it is what a user looks at first.
	var stacks, others []reason
	for _, r := range all {
		if r.kind == "Stack" {
			stacks = append(stacks, r)
		} else {
			others = append(others, r)
		}
	}
	return append(stacks, others...), nil
}

// condition finds what a group of constants, or their type, says it is for.
var condition = regexp.MustCompile(`of an? (\w+)'s condition (\w+)`)

func reasonsOf(file *ast.File) ([]reason, error) {
	types := map[string]string{}
	var found []reason
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok {
				types[s.Name.Name] = oneLine(group.Doc.Text())
				continue
			}
			s, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			of, ok := s.Type.(*ast.Ident)
			if !ok || !strings.HasSuffix(of.Name, "Reason") {
				continue
			}
			r, err := reasonOf(s, oneLine(group.Doc.Text())+" "+types[of.Name])
			if err != nil {
				return nil, err
			}
			found = append(found, r)
		}
	}
	return found, nil
}

func reasonOf(s *ast.ValueSpec, says string) (reason, error) {
	name := s.Names[0].Name
	of := condition.FindStringSubmatch(says)
	if of == nil {
		return reason{}, fmt.Errorf("neither the group nor the type of %s says of which kind's condition it is a reason", name)
	}
	literal, ok := s.Values[0].(*ast.BasicLit)
	if !ok {
		return reason{}, fmt.Errorf("%s is no literal", name)
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return reason{}, err
	}
	comment, ok := strings.CutPrefix(oneLine(s.Doc.Text()), name+": ")
	if !ok {
		return reason{}, fmt.Errorf("the comment of %s does not begin with its name and a colon", name)
	}
	return reason{constant: name, kind: of[1], condition: of[2], name: value, comment: comment}, nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// table is the text of README.md.
func table(reasons []reason) string {
	var b strings.Builder
	b.WriteString(`# Runbook

What each reason of a condition means and what to do about it. The list is closed. This table is generated from
pkg/apis (make generate); the pages are written by hand.

Begin with the Stack. Its condition's message says in one line what is wrong; the rest is on its last Update:

` + "```" + `
kubectl get stacks                                                     # the reasons are in the columns
kubectl describe stack NAME
kubectl get stack NAME -o jsonpath='{.status.lastUpdate.message}{"\n"}' # the whole error
updraft logs NAME                                                      # what the CLI said
` + "```" + `
`)
	kind := ""
	for _, r := range reasons {
		if r.kind != kind {
			kind = r.kind
			fmt.Fprintf(&b, "\n## %s\n\n| condition | reason | means |\n|---|---|---|\n", article(kind))
		}
		fmt.Fprintf(&b, "| %s | [%s](%s) | %s |\n", r.condition, r.name, r.page(), strings.ReplaceAll(r.first(), "|", `\|`))
	}
	return b.String()
}

func article(kind string) string {
	if strings.ContainsRune("AEIOU", rune(kind[0])) {
		return "Of an " + kind
	}
	return "Of a " + kind
}
