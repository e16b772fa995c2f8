package pods

import (
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	variables := map[string]string{"A": "one", "B": "$(A)", "EMPTY": "", "a.b-c": "dotted"}
	cases := []struct{ reason, in, want string }{
		{"A reference is replaced", "x$(A)y", "xoney"},
		{"What is put in is not expanded again", "$(B)", "$(A)"},
		{"An empty value is a value", "[$(EMPTY)]", "[]"},
		{"Any name but one with a bracket is a name", "$(a.b-c)", "dotted"},
		{"What names no variable stays", "$(NONE)$(A)", "$(NONE)one"},
		{"Two dollars are one, and hide what follows", "$$(A)", "$(A)"},
		{"Three dollars are one and a reference", "$$$(A)", "$one"},
		{"A dollar alone stays", "a$b $", "a$b $"},
		{"An open reference stays", "$(A", "$(A"},
		{"An open reference hides none in it", "$(A$(A)", "$(A$(A)"},
		{"No name is a name that nobody has", "$()", "$()"},
		{"Other letters pass", "ü$ü$(A)", "ü$üone"},
	}
	for _, c := range cases {
		if got := expand(c.in, variables); got != c.want {
			t.Errorf("%s: expand(%q) = %q, want %q", c.reason, c.in, got, c.want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"", "$", "$(", "$()", "$(A)", "$$(A)", "a$$$(B)$("} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := expand(strings.ReplaceAll(text, "$", "$$"), map[string]string{"A": "x"}); got != text {
			t.Errorf("expand of the escaped %q = %q", text, got)
		}
	})
}
