package sidecar

import "syscall"

// ownGroup gives a process a group of its own, and has the kernel kill it when the sidecar dies without a word (kill -9): a
// service that nobody beats for, or leaves for, must not live on behind the registry's back.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
