package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// DoorError is why a door can't be opened.
type DoorError struct {
	Addr netip.AddrPort
	Err  error
}

// Error says where and why, without the network's own words for where.
func (e *DoorError) Error() string {
	why := e.Err
	if op := (*net.OpError)(nil); errors.As(why, &op) {
		why = op.Err
	}
	return fmt.Sprintf("listen on %s: %v", e.Addr, why)
}

func (e *DoorError) Unwrap() error { return e.Err }

// opening is an open door.
type opening struct {
	door    Door
	ln      net.Listener
	closing chan struct{} // closed, under Doors.mu, when the door is
	shared  bool          // another process, or another opening, has the socket too
}

func newOpening(d Door, ln net.Listener, shared bool) *opening {
	return &opening{door: d, ln: ln, shared: shared, closing: make(chan struct{})}
}

func (o *opening) isClosing() bool {
	select {
	case <-o.closing:
		return true
	default:
		return false
	}
}

// A door stays open until nobody has waited there for lastCalm, and no longer than lastMost. The kernel hears of no new
// connection in that time: who may still come has begun a handshake before.
const (
	lastCalm = 20 * time.Millisecond
	lastMost = 500 * time.Millisecond
	lastLook = time.Millisecond
)

// drain waits until what waits in the kernel has been taken, which resets it when the socket closes. Clients that come
// meanwhile get no answer; a second later they ask again, and are refused.
func (o *opening) drain() {
	c, ok := o.ln.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	hearNoMore(raw)
	began := time.Now()
	for calm := began; time.Since(calm) < lastCalm && time.Since(began) < lastMost; time.Sleep(lastLook) {
		n, known := waiting(raw)
		if !known {
			return
		}
		if n > 0 {
			calm = time.Now()
		}
	}
}

// lent is a door's listener in the hands of an engine, which closes what it serves when it ends. The door may have been
// faster, and that is no error: an engine that sees one does not wait for open tunnels.
type lent struct{ net.Listener }

func (l lent) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
