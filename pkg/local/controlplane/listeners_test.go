package controlplane_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkListeners fails for a socket of the process that listens anywhere but on 127.0.0.1, and returns how many do listen.
func checkListeners(t *testing.T, pid int) (count int) {
	t.Helper()
	descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	owned := map[string]bool{}
	for _, descriptor := range descriptors {
		if target, err := os.Readlink(descriptor); err == nil { // it may have been closed meanwhile
			owned[target] = true
		}
	}
	const loopback = "0100007F" // 127.0.0.1, as /proc writes it on a little-endian machine
	for inode, address := range listening(t) {
		if !owned["socket:["+inode+"]"] {
			continue
		}
		count++
		if !strings.HasPrefix(address, loopback+":") {
			t.Errorf("process %d listens on %s, want loopback only", pid, address)
		}
	}
	return count
}

// listening maps the inode of each listening socket of the machine to its address.
func listening(t *testing.T) map[string]string {
	t.Helper()
	const listen = "0A"
	found := map[string]string{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if fields := strings.Fields(line); len(fields) > 9 && fields[3] == listen {
				found[fields[9]] = fields[1]
			}
		}
	}
	return found
}
