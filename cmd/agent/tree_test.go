package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// endTree kills a process and all that descend from it, the eldest first, so
// that none sees another die and acts on it.
func endTree(pid int) {
	tree := []int{pid}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, childrenOf(tree[i])...)
	}
	for _, member := range tree {
		// It may have ended by itself.
		_ = syscall.Kill(member, syscall.SIGKILL)
	}
}

// childrenOf finds the processes whose parent is pid.
func childrenOf(pid int) []int {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var children []int
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// The name, in parentheses, may hold anything.
		fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// isAlive says whether a process is there and is no zombie.
func isAlive(pid int) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z"
}
