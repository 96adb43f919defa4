package front

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"

	"github.com/upstrand/upstrand/proxy/proxyproto"
)

// begin reads what comes before HTTP on the connection. It reports whether HTTP/1 follows.
func (c *conn) begin() bool {
	s := &c.srv.settings
	if s.ProxyProtocol && !c.readProxied() {
		return false
	}
	return !s.TLS || c.encrypt()
}

// readProxied reads a header of the PROXY protocol.
func (c *conn) readProxied() bool {
	if !c.enter(shaking) {
		return false
	}
	w := c.take()
	for w.w < len(w.buf) {
		n, err := c.read(w.buf[w.w:], nil)
		w.w += n
		info, length, bad := proxyproto.Parse(w.buf[:w.w])
		switch {
		case bad == nil:
			c.info.Proxy, w.r = info, length
			if w.r == w.w {
				c.give()
			} else {
				c.prepare()
			}
			return c.enter(waiting)
		case !errors.Is(bad, proxyproto.ErrMore):
			c.refuse(RefusedProxyProtocol, bad)
			return false
		case err != nil:
			if w.w > 0 || errors.Is(err, errLate) { // else it left without a word
				c.refuse(RefusedProxyProtocol, err)
			}
			return false
		}
	}
	c.refuse(RefusedProxyProtocol, proxyproto.ErrMore)
	return false
}

// The first byte of a TLS record with a handshake; a first byte of SSL 2 has its highest bit set.
const (
	tlsHandshake = 0x16
	oldHandshake = 0x80
)

// encrypt shakes hands. A client that begins with something else than that is served in the clear, to be told so.
func (c *conn) encrypt() bool {
	var early []byte
	if w := c.work; w != nil {
		early = bytes.Clone(w.buf[w.r:w.w])
	} else {
		if n, _ := c.read(c.first[:], nil); n == 0 {
			return false
		}
		early = c.first[:]
	}
	if early[0] != tlsHandshake && early[0] < oldHandshake {
		if c.work == nil {
			w := c.take()
			w.w = copy(w.buf, early)
		}
		return true
	}
	c.give()
	if !c.enter(shaking) || !c.calm() {
		return false
	}
	var config *tls.Config
	if c.srv.options.TLS != nil {
		config = c.srv.options.TLS(c.info.Local)
	}
	if config == nil {
		c.refuse(RefusedTLS, errNoTLS)
		return false
	}
	c.sealed = &sealed{Conn: c.base, c: c, early: early}
	secure := tls.Server(c.sealed, config)
	c.nc, c.direct = secure, false
	if err := secure.Handshake(); err != nil {
		c.refuse(RefusedTLS, err)
		return false
	}
	state := secure.ConnectionState()
	c.info.TLS = &state
	if state.NegotiatedProtocol == "h2" && c.srv.options.HTTP2 != nil {
		c.verdict = preface
		c.handOver()
		return false
	}
	return c.enter(waiting)
}

var errNoTLS = errors.New("nothing is known of TLS here")

// refuse counts a connection that ends before any request, and tells why.
func (c *conn) refuse(why Refusal, err error) {
	c.srv.refused[why].Add(1)
	if told := c.srv.options.Refused; told != nil {
		told(why, &c.info, err)
		return
	}
	c.srv.options.Log.Debug().Err(err).Stringer("client", c.info.Remote).Msg("a client's connection could not begin")
}

// handOver gives the connection to whom HTTP/2 is spoken by.
func (c *conn) handOver() {
	if !c.enter(handed) || !c.calm() {
		c.verdict = over
		return
	}
	nc := c.nc
	if w := c.work; w != nil {
		nc = &resumed{Conn: nc, early: bytes.Clone(w.buf[w.r:w.w])}
		c.give()
	}
	c.srv.options.HTTP2.ServeConn(nc, c.info)
}

// resumed is a connection that gives once more what was read of it.
type resumed struct {
	net.Conn
	early []byte
}

// Read is net.Conn's.
func (b *resumed) Read(p []byte) (int, error) {
	if len(b.early) > 0 {
		n := copy(p, b.early)
		b.early = b.early[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}

// CloseWrite ends the direction to the client.
func (b *resumed) CloseWrite() error { return closeWrite(b.Conn) }
