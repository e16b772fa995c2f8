//go:build !linux

package controlplane

import "syscall"

// attributes make a process the head of a group of its own, so that Ctrl-C reaches us and not it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
