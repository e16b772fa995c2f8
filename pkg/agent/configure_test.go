package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/blang/semver"
	"github.com/google/go-cmp/cmp"
)

func TestPlan(t *testing.T) {
	const newest, before, old = "3.276.0", "3.205.0", "3.100.0"
	number := json.RawMessage("3")
	cases := map[string]struct {
		version  string
		settings []setting
		want     []call
	}{
		"Nothing to set takes no call": {version: newest},
		"A new CLI takes all in one document, out of sight": {
			version: newest,
			settings: []setting{{key: "p:s", text: "x <y>", secret: true}, {key: "p:t", text: "t"},
				{key: "p:n", structured: number}},
			want: []call{{
				args: []string{"config", "set-all", "--stack", "dev"},
				env: []string{`PULUMI_OPTION_JSON={"p:s":{"value":"x <y>","secret":true},"p:t":{"value":"t","secret":false},` +
					`"p:n":{"value":"3","objectValue":3,"secret":false}}`},
			}},
		},
		"A secret structure is a secret string of JSON": {
			version:  newest,
			settings: []setting{{key: "p:o", structured: json.RawMessage(`{"a":1}`), secret: true}},
			want: []call{{args: []string{"config", "set-all", "--stack", "dev"},
				env: []string{`PULUMI_OPTION_JSON={"p:o":{"value":"{\"a\":1}","secret":true}}`}}},
		},
		"The key of a structure is no path": {
			version:  newest,
			settings: []setting{{key: "p:a.b", structured: number}, {key: "p:c.d", text: "t"}, {key: `p:["e.f"]`, structured: number}},
			want: []call{{args: []string{"config", "set-all", "--stack", "dev"},
				env: []string{`PULUMI_OPTION_JSON={"p:[\"a.b\"]":{"value":"3","objectValue":3,"secret":false},` +
					`"p:c.d":{"value":"t","secret":false},"p:[\"e.f\"]":{"value":"3","objectValue":3,"secret":false}}`}}},
		},
		"Paths keep their order, secret ones on standard input": {
			version: newest,
			settings: []setting{{key: "p:l[0]", path: true, text: "a"}, {key: "p:l[1]", path: true, text: "b"},
				{key: "p:l[2]", path: true, text: "c\n", secret: true}, {key: "p:l[3]", path: true, text: "d"}},
			want: []call{
				{args: []string{"config", "set-all", "--stack", "dev", "--path", "--plaintext", "p:l[0]=a", "--plaintext", "p:l[1]=b"}},
				{args: []string{"config", "set", "--stack", "dev", "--path", "--secret", "--", "p:l[2]"}, stdin: "c\n\n"},
				{args: []string{"config", "set-all", "--stack", "dev", "--path", "--plaintext", "p:l[3]=d"}},
			},
		},
		"A CLI that takes documents only as arguments gets no secret in one": {
			version: before,
			settings: []setting{{key: "p:n", structured: number}, {key: "p:o", structured: json.RawMessage(`[1]`), secret: true},
				{key: "p:t", text: "t"}, {key: "p:s", text: "x", secret: true}},
			want: []call{
				{args: []string{"config", "set-all", "--stack", "dev", "--json", `{"p:n":{"value":"3","objectValue":3,"secret":false}}`}},
				{args: []string{"config", "set", "--stack", "dev", "--secret", "--", "p:o"}, stdin: "[1]\n"},
				{args: []string{"config", "set-all", "--stack", "dev", "--plaintext", "p:t=t"}},
				{args: []string{"config", "set", "--stack", "dev", "--secret", "--", "p:s"}, stdin: "x\n"},
			},
		},
		"An old CLI gets strings": {
			version:  old,
			settings: []setting{{key: "p:t", text: "t"}, {key: "p:u", text: "a=b"}, {key: "p:v", path: true, text: "w"}},
			want: []call{
				{args: []string{"config", "set-all", "--stack", "dev", "--plaintext", "p:t=t", "--plaintext", "p:u=a=b"}},
				{args: []string{"config", "set-all", "--stack", "dev", "--path", "--plaintext", "p:v=w"}},
			},
		},
		"What cannot be an argument goes to standard input": {
			version:  old,
			settings: []setting{{key: "p:a=b", text: "t"}, {key: "p:z", text: "\x00"}},
			want: []call{
				{args: []string{"config", "set", "--stack", "dev", "--plaintext", "--", "p:a=b"}, stdin: "t\n"},
				{args: []string{"config", "set", "--stack", "dev", "--plaintext", "--", "p:z"}, stdin: "\x00\n"},
			},
		},
		"Bytes that are no text go to standard input": {
			version:  newest,
			settings: []setting{{key: "p:b", text: "\xff\xfe", secret: true}},
			want:     []call{{args: []string{"config", "set", "--stack", "dev", "--secret", "--", "p:b"}, stdin: "\xff\xfe\n"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := plan(c.settings, "dev", semver.MustParse(c.version))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(call{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNoPartOfAPlanIsLargerThanLinuxTakes(t *testing.T) {
	const linux = 128 << 10
	var settings []setting
	for _, size := range []int{10, 40 << 10, 70 << 10, 60 << 10, 1 << 20, 50 << 10} {
		settings = append(settings,
			setting{key: "p:plain", text: strings.Repeat("\"", size)},
			setting{key: "p:secret", text: strings.Repeat("s", size), secret: true},
			setting{key: "p:path.x", path: true, text: strings.Repeat("x", size)})
	}
	for _, version := range []string{"3.276.0", "3.100.0"} {
		calls, err := plan(settings, "dev", semver.MustParse(version))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			for _, text := range append(c.args, c.env...) {
				if len(text) >= linux {
					t.Errorf("pulumi %s: %.40q... has %d bytes", version, text, len(text))
				}
			}
			if args := strings.Join(c.args, " "); strings.Contains(args, "ssssssssss") {
				t.Errorf("pulumi %s: a secret is in the arguments %.60q...", version, args)
			}
		}
	}
	// No size in between loses a value.
	for size := sizeLimit - 200; size < sizeLimit; size++ {
		calls, err := plan([]setting{{key: "p:t", text: strings.Repeat("y", size)}}, "dev", semver.MustParse("3.276.0"))
		if err != nil || len(calls) != 1 || strings.Count(strings.Join(calls[0].env, "")+strings.Join(calls[0].args, "")+calls[0].stdin, "y") != size {
			t.Fatalf("a text of %d bytes is not set as it is (%v)", size, err)
		}
	}
	if _, err := plan([]setting{{key: "p:o", structured: json.RawMessage(`"` + strings.Repeat("x", linux) + `"`)}}, "dev",
		semver.MustParse("3.276.0")); err == nil || !strings.Contains(err.Error(), "p:o cannot be set") {
		t.Errorf("a structure that does not fit gives the error %v", err)
	}
}
