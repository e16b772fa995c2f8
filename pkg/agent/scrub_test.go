package agent

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestScrub(t *testing.T) {
	cases := map[string]struct {
		secrets []string
		text    string
		want    string
	}{
		"Without secrets a text stays":          {text: "error: no", want: "error: no"},
		"A secret is taken out wherever it is":  {secrets: []string{"hunter2hunter2"}, text: "ahunter2hunter2b hunter2hunter2", want: "a[secret]b [secret]"},
		"A short secret is taken out as a word": {secrets: []string{"on"}, text: "on configuration (on) on on=on", want: "[secret] configuration ([secret]) [secret] [secret]=[secret]"},
		"An empty secret is none":               {secrets: []string{""}, text: "error", want: "error"},
		"A long secret goes before its part":    {secrets: []string{"password1", "password1234"}, text: "password1234", want: "[secret]"},
		"A quoted secret is found":              {secrets: []string{"line one\nline two"}, text: `got "line one\nline two"`, want: `got "[secret]"`},
		"A secret of lines is found by the line": {
			secrets: []string{"-----BEGIN KEY-----\nMIIEvQIBADANBg\n"}, text: "  MIIEvQIBADANBg|\n", want: "  [secret]|\n"},
		"A secret with letters that JSON escapes is found": {secrets: []string{"a<b>&c<d>"}, text: `"a\u003cb\u003e\u0026c\u003cd\u003e"`, want: `"[secret]"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScrubber(nil)
			for _, secret := range c.secrets {
				s.add(secret)
			}
			if got := s.scrub(c.text); got != c.want {
				t.Errorf("scrub() = %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheEnvironmentsSecretsAreKnown(t *testing.T) {
	s := newScrubber(environment{"PULUMI_ACCESS_TOKEN=pul-0123456789", "PULUMI_CONFIG_PASSPHRASE=correct horse",
		"AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/token", "PATH=/usr/bin"})
	text := "pul-0123456789 correct horse /var/run/token /usr/bin"
	if got, want := s.scrub(text), "[secret] [secret] /var/run/token /usr/bin"; got != want {
		t.Errorf("scrub() = %q, want %q", got, want)
	}
}

func TestAStructuredSecretIsKnownByItsParts(t *testing.T) {
	var value any
	if err := json.Unmarshal([]byte(`{"user":"administrator","pins":[12345678,"letmein-please"],"on":true}`), &value); err != nil {
		t.Fatal(err)
	}
	s := newScrubber(nil)
	s.addJSON(value)
	if got, want := s.scrub("administrator 12345678 letmein-please true"), "[secret] [secret] [secret] true"; got != want {
		t.Errorf("scrub() = %q, want %q", got, want)
	}
}

func TestAScrubberPrintsNothing(t *testing.T) {
	s := newScrubber(environment{"TOKEN=hunter2hunter2"})
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(form, s); got != scrubbed {
			t.Errorf("%s prints %q", form, got)
		}
	}
}
