package front

import "time"

// phase is what a connection waits for.
type phase int64

const (
	waiting    phase = iota // for a request to begin
	reading                 // for the rest of a head
	shaking                 // for a PROXY protocol header, or a TLS handshake
	receiving               // for bytes of a body
	lingering               // for the client to see its answer
	tunnelling              // for bytes of a tunnel
	handling                // for the handler
	handed                  // for whom it was handed to
)

// A stamp is a moment in milliseconds of the server's coarse clock, and in the low bits the phase that began then.
const phaseBits = 3

// dead is the stamp of a connection whose time is over, or that was cut.
const dead = int64(-1)

func stamped(now int64, p phase) int64 { return now<<phaseBits | int64(p) }

func (c *conn) phase() (since int64, p phase) {
	v := c.stamp.Load()
	return v >> phaseBits, phase(v & (1<<phaseBits - 1))
}

// enter begins a phase. It is false when the connection's time is over.
func (c *conn) enter(p phase) bool {
	for now := stamped(c.srv.now.Load(), p); ; {
		// Not a Swap that is taken back: who is woken meanwhile would see a connection that lives, and wait for ever.
		if seen := c.stamp.Load(); seen == dead {
			return false
		} else if c.stamp.CompareAndSwap(seen, now) {
			return true
		}
	}
}

func (c *conn) alive() bool { return c.stamp.Load() != dead }

// limit is how long a phase may take; 0: there is no limit.
func (c *conn) limit(p phase) time.Duration {
	s := &c.srv.settings
	switch p {
	case waiting:
		if c.served.Load() == 0 {
			return s.ClientHeader
		}
		return s.ClientIdle
	case reading, shaking:
		return s.ClientHeader
	case receiving:
		return s.ClientBody
	case lingering:
		return min(s.ClientBody, rest)
	case tunnelling:
		return s.TunnelIdle
	}
	return 0
}

// rest is how long what remains of a body is read after the answer, so that the client gets to see that before its
// connection is reset.
const rest = time.Second
