package version

import (
	"bytes"
	"runtime/debug"
	"testing"
)

func TestText(t *testing.T) {
	const on = "tested on Kubernetes 1.34, Knative 1.22, Pulumi 3.276.0\n"
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision, modified := debug.BuildSetting{Key: "vcs.revision", Value: "0123abc"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for name, c := range map[string]struct {
		number string
		info   *debug.BuildInfo
		want   string
	}{
		"Nothing is known":      {"", nil, "updraft devel\n" + on},
		"Built from the source": {"devel", built("(devel)"), "updraft devel\n" + on},
		"A release":             {"0.1.0", built("(devel)"), "updraft 0.1.0\n" + on},
		"Installed by go":       {"", built("v0.1.0", revision), "updraft v0.1.0\ncommit 0123abc\n" + on},
		"With changes":          {"devel", built("(devel)", revision, modified), "updraft devel\ncommit 0123abc, with changes\n" + on},
	} {
		if got := text(c.number, c.info); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestCommand(t *testing.T) {
	var out bytes.Buffer
	command := Command()
	command.SetArgs(nil)
	command.SetOut(&out)
	if err := command.Execute(); err != nil || out.String() != Text() {
		t.Errorf("it prints %q, %v", out.String(), err)
	}
}
