//go:build !linux

package rig

import "syscall"

// attributes of every process: a group of its own keeps a Ctrl-C in the terminal away from it, since the test ends it, after it has seen
// what it needs.
func attributes(cred *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: cred}
}
