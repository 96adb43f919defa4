//go:build !linux

package http1

// waitFirst needs to know how the runtime waits; elsewhere requests are written and answers read one after the other.
const waitFirst = false

type step struct {
	waiting bool
	wrote   int
}

func (a *attempt) callback(uintptr) bool { return true }

func (a *attempt) turn(kept, look bool) error { panic("http1: no exchange here") }

type pushing struct{ run func(uintptr) bool }

func (p *pushing) callback(uintptr) bool { return true }

func (c *conn) writeNow([]byte) (int, error) { panic("http1: no writing without waiting here") }
