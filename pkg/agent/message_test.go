package agent

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	cases := map[string]struct {
		stdout, stderr, want string
	}{
		"Nothing said is nothing": {},
		"An error is taken whole, without the verdict behind it": {
			stderr: "error: Error reading file at path ./missing: open ./missing: no such file or directory\n\n" +
				"  on Pulumi.yaml line 12:\n  12:     fn::secret: {\"fn::readFile\": \"./missing\"}\n\n\n" +
				"error: unknown stack \"organization/nope/dev\"\nerror: update failed\n",
			want: "error: Error reading file at path ./missing: open ./missing: no such file or directory\n" +
				"  on Pulumi.yaml line 12:\n  12:     fn::secret: {\"fn::readFile\": \"./missing\"}\n" +
				"error: unknown stack \"organization/nope/dev\"",
		},
		"The Diagnostics of the output are taken up to the next section": {
			stdout: "Updating (dev):\n\n    pulumi:pulumi:Stack q-dev running error: x\nDiagnostics:\n" +
				"  pulumi:pulumi:Stack (q-dev):\n    error: Error reading file at path ./missing\n    \n      on Pulumi.yaml line 12:\n    error: update failed\n\n" +
				"  pulumi:pulumi:StackReference (x):\n    error: unknown stack\n\nOutputs:\n    a  : 2\n\nResources:\n    1 unchanged\n\nDuration: 1s\n",
			want: "pulumi:pulumi:Stack (q-dev):\n  error: Error reading file at path ./missing\n    on Pulumi.yaml line 12:\n" +
				"pulumi:pulumi:StackReference (x):\n  error: unknown stack",
		},
		"A verdict alone is better than nothing": {stderr: "error: update failed\n", want: "error: update failed"},
		"A cancelled update says so":             {stderr: "error: update canceled\n", want: "error: update canceled"},
		"The same error is said once":            {stderr: "error: no\nerror: no\n", want: "error: no"},
		"Warnings are left out": {
			stderr: "warning: A new version of Pulumi is available\n  run brew\nerror: no stack named 'dev' found\nwarning: x\nmore\n",
			want:   "error: no stack named 'dev' found"},
		"Colours are taken out, those that the CLI forgot to make too": {
			stderr: "\x1b[31merror: \x1b[0mno \x1b]8;;https://x\x07link\x1b]8;;\x07\r\n", stdout: "<{%fg 1%}>1 errored<{%reset%}>\n",
			want: "error: no link"},
		"Without an error the end of what was said is taken": {
			stderr: "I1130 log\n" + strings.Repeat("panic\n", 30), want: strings.TrimSuffix(strings.Repeat("panic\n", 20), "\n")},
		"Without anything on stderr the end of the output is taken": {stdout: "flag provided but not defined\n", want: "flag provided but not defined"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, explain(c.stdout, c.stderr)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestShorten(t *testing.T) {
	long := strings.Repeat("ä", 100)
	cases := map[string]struct {
		text  string
		limit int
		want  string
	}{
		"A text within the limit stays":              {text: "short", limit: 5, want: "short"},
		"A text beyond the limit is cut with a note": {text: strings.Repeat("x", 100), limit: 50, want: strings.Repeat("x", 50-len(cutNote)) + cutNote},
		"A letter is not cut in two":                 {text: long, limit: len(cutNote) + 5, want: "ää" + cutNote},
		"Where the note has no room it is left out":  {text: "abcdef", limit: 3, want: "abc"},
		"Nothing is left of nothing":                 {text: "abc", limit: 0, want: ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := shorten(c.text, c.limit)
			if got != c.want || !utf8.ValidString(got) || len(got) > max(c.limit, len(c.text)) {
				t.Errorf("shorten() = %q, want %q", got, c.want)
			}
		})
	}
}

func TestHintsTellWhatToDo(t *testing.T) {
	got := hinted("error: could not create secrets manager for new stack: passphrase must be set with PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE environment variables")
	if !strings.Contains(got, "envRefs") {
		t.Errorf("no hint in %q", got)
	}
	if got := hinted("error: something else"); got != "error: something else" {
		t.Errorf("a hint where none is due: %q", got)
	}
}
