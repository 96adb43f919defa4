//go:build unix && !linux

package sidecar

import "syscall"

// ownGroup gives a process a group of its own. Only Linux can have it killed together with the sidecar.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
