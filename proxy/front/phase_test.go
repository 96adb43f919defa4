package front

import (
	"net"
	"sync"
	"testing"
)

// TestTheDeadStayDead: who was woken must not see a connection live that somebody else makes wait for something.
func TestTheDeadStayDead(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	srv := NewServer(Settings{}, Options{})
	c := newConn(srv, ours)
	c.stamp.Store(dead)
	var both sync.WaitGroup
	both.Go(func() {
		for range 300000 {
			c.enter(tunnelling)
		}
	})
	both.Go(func() {
		for range 300000 {
			if c.alive() {
				t.Error("it lives again")
				return
			}
		}
	})
	both.Wait()
}
