package nethttp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// client is the waiting side of one request.
type client struct {
	server *Server
	w      http.ResponseWriter
	rc     *http.ResponseController
	body   *replay // the request's; nil: none
	last   bool    // no other request is taken from this connection
	old    bool    // it speaks HTTP/1.0

	left    int64 // of the declared length; negative: unknown
	headed  bool  // an answer was begun
	aborted bool
	taken   bool // the connection became a tunnel
	change  []forward.Field
	bare    *tunnel // an answer without a head is written to it
}

// Inform tells clients of HTTP/1.0 nothing: they would take it for the answer.
func (c *client) Inform(status int, fields []forward.Field) error {
	if c.old {
		return nil
	}
	h := c.w.Header()
	addFields(h, fields)
	c.stamp()
	c.w.WriteHeader(status)
	clear(h)
	return nil
}

func (c *client) Head(status int, fields []forward.Field, length int64) error {
	c.stamp()
	switch status {
	case http.StatusSwitchingProtocols:
		c.change = fields
		return nil
	case forward.Headless:
		return c.strip()
	}
	h := c.w.Header()
	addFields(h, fields)
	if _, has := h["Content-Type"]; !has {
		h["Content-Type"] = nil // keeps net/http from guessing one
	}
	if c.last || c.body != nil && !c.body.whole() {
		// What is still to come of the body, or could not be understood, must not be taken for a request. net/http leaves
		// that to us, since EnableFullDuplex.
		h.Set("Connection", "close")
	}
	c.headed = true
	c.left = length
	c.w.WriteHeader(status)
	if length < 0 && status != http.StatusNoContent && status != http.StatusNotModified {
		return c.rc.Flush()
	}
	return nil
}

func (c *client) Write(b []byte) error {
	if c.bare != nil {
		_, err := c.bare.Write(b)
		return err
	}
	c.stamp()
	n, err := c.w.Write(b)
	if err != nil {
		return err
	}
	if c.left >= 0 {
		if c.left -= int64(n); c.left == 0 {
			return nil // the end flushes
		}
	}
	return c.rc.Flush()
}

func (c *client) End(trailer []forward.Field) error {
	if c.bare != nil {
		return c.bare.Close()
	}
	c.stamp()
	h := c.w.Header()
	clear(h) // net/http would send the head's values of announced names once more
	for _, f := range trailer {
		h.Add(http.TrailerPrefix+string(f.Name), string(f.Value))
	}
	return nil
}

func (c *client) Abort() {
	c.aborted = true
	if c.bare != nil {
		_ = c.bare.Close()
	}
}

// rest is how long what remains of a body is read after the answer, so that the client gets to see that before its
// connection is reset.
const rest = time.Second

// settle is done with the client's connection however the handler ended, and before net/http is: that reads what
// remains of the body first, for as long as the client likes.
func (c *client) settle() {
	if c.bare != nil {
		_ = c.bare.Close()
	}
	if c.body == nil || c.taken {
		return
	}
	c.body.finish()
	if c.body.whole() {
		return
	}
	wait := min(c.server.settings.ClientBody, rest)
	if c.aborted || !c.headed {
		wait = 0
	}
	_ = c.rc.SetReadDeadline(time.Now().Add(wait))
}

// stamp gives the client another while to take what is written next.
func (c *client) stamp() { _ = c.rc.SetWriteDeadline(time.Now().Add(c.server.settings.ClientSend)) }

func (c *client) Tunnel() (io.ReadWriteCloser, error) {
	if c.body != nil {
		if !c.body.whole() {
			return nil, errBodyFirst
		}
		c.body.finish() // nobody sends it again
	}
	t, w, err := c.take()
	if err != nil {
		return nil, err
	}
	_ = t.SetDeadline(time.Now().Add(c.server.settings.ClientSend))
	if err := writeChange(w, c.change); err != nil {
		_ = t.Close()
		return nil, err
	}
	_ = t.SetWriteDeadline(time.Time{})
	return t, nil
}

// take gets the client's connection out of net/http's hands.
func (c *client) take() (*tunnel, *bufio.Writer, error) {
	raw, buffered, err := c.rc.Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over the client's connection: %w", err)
	}
	c.taken = true
	t := &tunnel{Conn: raw, in: buffered.Reader, idle: c.server.settings.TunnelIdle, server: c.server}
	if err := c.server.enter(t); err != nil {
		c.server.tally.active.Add(-1)
		_ = raw.Close()
		return nil, nil, err
	}
	return t, buffered.Writer, nil
}

// strip begins an answer that has no head and ends with the connection.
func (c *client) strip() error {
	if c.body != nil {
		c.body.finish()
	}
	t, _, err := c.take()
	c.headed, c.bare = true, t
	return err
}

func writeChange(w *bufio.Writer, fields []forward.Field) error {
	_, _ = w.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	h := http.Header{}
	addFields(h, fields)
	_ = h.Write(w) // as net/http writes other heads: without bad names, and with spaces for line breaks
	_, _ = w.WriteString("\r\n")
	return w.Flush()
}

// tunnel is a client's connection after 101. Bytes either way keep it from being idle.
type tunnel struct {
	net.Conn
	in     *bufio.Reader // may hold what the client sent early
	idle   time.Duration
	server *Server
}

func (t *tunnel) Read(p []byte) (int, error) {
	t.touch()
	return t.in.Read(p)
}

func (t *tunnel) Write(p []byte) (int, error) {
	t.touch()
	_ = t.SetWriteDeadline(time.Now().Add(t.server.settings.ClientSend))
	return t.Conn.Write(p)
}

func (t *tunnel) touch() { _ = t.SetReadDeadline(time.Now().Add(t.idle)) }

func (t *tunnel) Close() error {
	t.server.leave(t)
	return t.Conn.Close()
}

var (
	errShutDown  = errors.New("the proxy shuts down")
	errBodyFirst = fmt.Errorf("%w: its body has not come whole", forward.ErrNoTunnel)
)
