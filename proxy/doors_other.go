//go:build !linux

package proxy

import "syscall"

func reusePort(_, _ string, _ syscall.RawConn) error { return nil }
