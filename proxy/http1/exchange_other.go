//go:build !linux

package http1

// waitFirst needs to know how the runtime waits; elsewhere requests are written and answers read one after the other.
const waitFirst = false

type step struct{ run func(uintptr) bool }

func (s *step) callback(uintptr) bool { return true }

func (c *conn) exchange(_, _ []byte, _ bool) (wrote, n int, err error) {
	panic("http1: no exchange here")
}
