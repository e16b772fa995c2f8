package agent

import (
	"errors"
	"strings"
	"testing"

	"github.com/blang/semver"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

func TestGate(t *testing.T) {
	cases := map[string]struct {
		version    string
		structured bool
		says       []string
	}{
		"A new CLI can do everything":                    {version: "3.276.0", structured: true},
		"The oldest CLI can do strings":                  {version: "3.91.0"},
		"A CLI before it is too old":                     {version: "3.90.1", says: []string{"3.90.1", "3.91.0", "newer CLI"}},
		"A CLI of another age is too old":                {version: "2.25.0", says: []string{"2.25.0", "3.91.0"}},
		"A CLI without a version is refused":             {version: "0.0.0", says: []string{"does not tell its version", "3.91.0"}},
		"The oldest CLI for structures can do them":      {version: "3.202.0", structured: true},
		"A CLI before it cannot":                         {version: "3.201.0", structured: true, says: []string{"3.201.0", "3.202.0", "or strings"}},
		"A CLI before it can do without":                 {version: "3.201.0"},
		"A build from between two versions is the later": {version: "3.277.0-alpha.1", structured: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := gate(semver.MustParse(c.version), c.structured)
			if len(c.says) == 0 {
				if err != nil {
					t.Errorf("gate() = %v, want none", err)
				}
				return
			}
			var f *fault
			if !errors.As(err, &f) || f.reason != autov1alpha1.ReasonPulumiVersionTooLow {
				t.Fatalf("gate() = %v, want PulumiVersionTooLow", err)
			}
			for _, part := range c.says {
				if !strings.Contains(f.message, part) {
					t.Errorf("%q does not say %q", f.message, part)
				}
			}
		})
	}
}
