//go:build !linux

package proxy

import "syscall"

func reusePort(_, _ string, _ syscall.RawConn) error { return nil }

func hearNoMore(syscall.RawConn) {}

func waiting(syscall.RawConn) (int, bool) { return 0, false }
