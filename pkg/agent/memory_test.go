package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

func TestAFailureWhoseProcessesWereOutOfMemorySaysSo(t *testing.T) {
	cgroup := t.TempDir()
	kills := func(file, text string) {
		path := filepath.Join(cgroup, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"memory/memory.oom_control", "memory.events"} {
		kills(file, "low 0\noom 2\noom_kill 1\noom_group_kill 0\n")
		r := &runner{Config: Config{Cgroup: cgroup}, scrubber: newScrubber(nil)}
		r.oomKilled = r.oomKills()
		r.judge(faultf(autov1alpha1.ReasonWorkspaceFailed, "signal: killed"))
		if r.finished.Reason != string(autov1alpha1.ReasonWorkspaceFailed) {
			t.Errorf("%s: what was killed before the run is taken for the run's: %+v", file, r.finished)
		}
		kills(file, "oom_kill 2\n")
		r.judge(faultf(autov1alpha1.ReasonWorkspaceFailed, "signal: killed"))
		if r.finished.Reason != string(autov1alpha1.ReasonOutOfMemory) || !strings.Contains(r.finished.Message, "raise resources.limits.memory") ||
			!strings.HasSuffix(r.finished.Message, "signal: killed") {
			t.Errorf("%s: %+v", file, r.finished)
		}
		r.judge(nil)
		if r.finished.State != string(autov1alpha1.ResultSucceeded) {
			t.Errorf("%s: a success is %+v", file, r.finished)
		}
	}
	if got := (Config{Cgroup: t.TempDir()}).oomKills(); got != 0 {
		t.Errorf("where the kernel does not tell, %d were killed", got)
	}
}
