package agent

import (
	"encoding/json"
	"fmt"
	"os"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/event"
)

// terminationLimit is what a kubelet keeps of a termination message, in bytes.
const terminationLimit = 4096

// terminationText encodes a termination message within the limit; the message
// is cut as far as that takes.
func terminationText(t event.Termination) []byte {
	for limit := len(t.Message); ; limit = limit * 3 / 4 {
		cut := t
		cut.Message = shorten(t.Message, limit)
		text, err := json.Marshal(cut)
		if err == nil && len(text) <= terminationLimit {
			return text
		}
		if limit == 0 {
			return []byte(`{"state":"` + t.State + `"}`)
		}
	}
}

// writeTermination leaves the termination message. A failure to is only logged:
// it is the backstop of the report, and may not stop it.
func (c Config) writeTermination(t event.Termination) {
	if err := os.WriteFile(c.TerminationLog, terminationText(t), 0o644); err != nil {
		c.Log.Warn("cannot write the termination message", "error", err)
	}
}

// terminate leaves the termination message of a run that failed on f before it
// could report anything.
func (c Config) terminate(f *fault) {
	state := autov1alpha1.ResultFailed
	if f.reason == autov1alpha1.ReasonCanceled {
		state = autov1alpha1.ResultCanceled
	}
	c.Log.Error(f.message, "reason", f.reason)
	c.writeTermination(event.Termination{State: string(state), Reason: string(f.reason), Message: f.message})
}

// readJSON reads a file of JSON.
func readJSON(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s does not hold what it should: %w", path, err)
	}
	return nil
}
