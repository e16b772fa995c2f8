package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/updraft-dev/updraft/pkg/event"
)

func TestATerminationMessageFits(t *testing.T) {
	cases := map[string]event.Termination{
		"A short message is whole":             {State: "failed", Reason: "UpdateFailed", Message: "error: no"},
		"A success says nothing":               {State: "succeeded"},
		"A long message is cut":                {State: "failed", Reason: "UpdateFailed", Message: strings.Repeat("x", 2*messageLimit)},
		"A message that JSON escapes is cut":   {State: "failed", Message: strings.Repeat("\x00", messageLimit)},
		"A message of long letters is cut":     {State: "failed", Message: strings.Repeat("語", messageLimit)},
		"A message that is much too long, too": {State: "failed", Message: strings.Repeat("語", 1<<20)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			text := terminationText(c)
			if len(text) > terminationLimit {
				t.Errorf("it has %d bytes, and %d are kept", len(text), terminationLimit)
			}
			var got event.Termination
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if len(c.Message) < 100 {
				if diff := cmp.Diff(c, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				return
			}
			if kept := strings.TrimSuffix(got.Message, cutNote); kept == got.Message || !strings.HasPrefix(c.Message, kept) || kept == "" {
				t.Errorf("the message was cut to %.60q...", got.Message)
			}
		})
	}
}
