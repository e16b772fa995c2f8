package controlplane

import "syscall"

// attributes make a process the head of a group of its own, so that Ctrl-C reaches us and not it, and end it with us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
