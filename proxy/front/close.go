package front

import "net"

// maxLinger bounds what is read of a client that was answered before it had sent everything.
const maxLinger = 16 << 20

// close ends the connection, and gives the client the time to see its answer.
func (c *conn) close() {
	c.life.End()
	if c.verdict == preface {
		return // somebody else's
	}
	if c.linger && c.broken == nil && c.alive() {
		c.drain()
	}
	c.give()
	switch {
	case c.socket == nil:
		_ = c.nc.Close()
	case c.reset: // without TLS's goodbye, which would make the answer look whole too
		_ = c.socket.SetLinger(0)
		_ = c.socket.Close()
	case !c.alive() && !c.polite:
		_ = c.socket.Close() // TLS would wait to say goodbye
	default:
		_ = c.nc.Close()
	}
}

// drain reads and drops what the client still sends. Data that nobody has read when a connection is closed resets it, and
// the client might lose the answer.
func (c *conn) drain() {
	if !c.enter(lingering) {
		return
	}
	_ = closeWrite(c.nc)
	if c.socket != nil && net.Conn(c.socket) != c.nc {
		_ = c.socket.CloseWrite()
	}
	if !c.calm() {
		return
	}
	w := c.work
	if w == nil {
		w = c.take()
	}
	for total := 0; total < maxLinger; {
		n, err := c.base.Read(w.room[:])
		if err != nil {
			return
		}
		total += n
	}
}
