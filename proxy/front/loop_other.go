//go:build !linux

package front

import "syscall"

const waitFirst = false

// Elsewhere every connection is served by ordinary reads and writes.
func (c *conn) plain() {}

func (c *conn) loopDirect() (rests bool) {
	c.loop()
	return false
}

func (c *conn) putNow(b []byte) []byte { return b }

func (c *conn) onWritable(uintptr) bool { return false }

func (s *sealed) readNow(p []byte) (int, error) { return s.Conn.Read(p) }

func (s *sealed) writeNow([]byte) int { return 0 }

// news is not known here.
func (c *conn) news() bool { return false }

// gone is not known here: a client that left is noticed when it is written to.
func (c *conn) gone() (half, all bool) { return false, false }

func (c *conn) unsent() int { return 0 }

// shutDown is left to the deadline that is set before.
func shutDown(syscall.RawConn) {}
