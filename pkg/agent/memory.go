package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// oomKills counts the processes of this container that the kernel has killed
// because the container was out of memory; 0 if the kernel does not tell. It
// kills the largest, which is the CLI or its program and not the agent: the
// container goes on, and only this count says why they ended.
func (c Config) oomKills() int {
	for _, file := range []string{"memory.events", "memory/memory.oom_control"} { // cgroup v2, v1
		content, err := os.ReadFile(filepath.Join(c.Cgroup, file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			if text, ok := strings.CutPrefix(line, "oom_kill "); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(text)) // 0 if it is no number
				return n
			}
		}
	}
	return 0
}
