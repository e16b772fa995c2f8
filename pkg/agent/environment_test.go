package agent

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseEnv(t *testing.T) {
	cases := map[string]struct {
		text  string
		want  environment
		fails string
	}{
		"Lines of KEY=VALUE are taken in order":      {text: "A=1\nB=2\n", want: environment{"A=1", "B=2"}},
		"Empty lines and comments are skipped":       {text: "\n# A=0\n  \nA=1", want: environment{"A=1"}},
		"A value may hold an equals sign and spaces": {text: "A=b=c d", want: environment{"A=b=c d"}},
		"Quotes around a whole value go":             {text: "A=\"x y\"\nB='z'\nC=\"q", want: environment{"A=x y", "B=z", "C=\"q"}},
		"A shell's export is tolerated":              {text: "export A=1", want: environment{"A=1"}},
		"A value may be empty":                       {text: "A=", want: environment{"A="}},
		"Windows line ends are no part of a value":   {text: "A=1\r\nB=2\r\n", want: environment{"A=1", "B=2"}},
		"A line of something else is named by number and not quoted": {
			text: "A=1\nhunter2\n", fails: "line 2 is not KEY=VALUE"},
		"A key with a space is refused": {text: "A B=1", fails: "line 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseEnv(c.text)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("parseEnv() error = %v, want one that says %q", err, c.fails)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("parseEnv() error %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestCLIEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".env")
	writeFile(t, file, "FROM_FILE=1\nBOTH=file\n")
	cases := map[string]struct {
		environ []string
		file    string
		want    map[string]string
	}{
		"What is missing has a default": {
			environ: []string{"A=1"},
			want: map[string]string{"A": "1", "USER": "pulumi", "PULUMI_HOME": "/share/.pulumi",
				"PULUMI_SKIP_UPDATE_CHECK": "true", "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "true"},
		},
		"What the user set stays": {
			environ: []string{"USER=me", "PULUMI_HOME=/home/me/.pulumi", "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER=false"},
			want:    map[string]string{"USER": "me", "PULUMI_HOME": "/home/me/.pulumi", "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "false"},
		},
		"An empty name of the user is none": {environ: []string{"USER="}, want: map[string]string{"USER": "pulumi"}},
		"The file goes over the container": {
			environ: []string{"BOTH=container"}, file: file,
			want: map[string]string{"FROM_FILE": "1", "BOTH": "file"},
		},
		"A file that is not there is none": {file: file + ".none", want: map[string]string{"USER": "pulumi"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			env, err := cliEnvironment(Config{Root: "/share", Environ: c.environ, EnvFile: c.file})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for key := range c.want {
				got[key], _ = env.lookup(key)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
