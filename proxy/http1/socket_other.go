//go:build !linux

package http1

import "syscall"

// bytesAcknowledged is not known here, so nothing is ever proven unread.
func bytesAcknowledged(syscall.RawConn) (uint64, bool, bool) { return 0, false, false }

// readable is not known here: that a kept connection is dead shows when it is used.
func readable(syscall.RawConn) bool { return false }

// readNow can't be done here.
func (c *conn) readNow([]byte) (int, error) { return 0, errNothing }
