package front

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/upstrand/upstrand/proxy/forward"
)

// framing is how the end of an answer's body is found.
type framing uint8

const (
	noBody framing = iota
	byLength
	byChunks
	untilClose
)

// client is the waiting side of one request. It is used again for the next.
type client struct {
	c    *conn
	old  bool // it speaks HTTP/1.0
	bare bool // it asked for a head only
	last bool // no other request is taken from its connection

	headed  bool // an answer was begun
	ended   bool // … and is complete
	aborted bool
	corked  bool
	framing framing
	left    int64   // of the declared length
	taken   *tunnel // what the connection became

	talk   sync.Mutex // of informational answers, which the body's reader gives too
	awaits bool       // a 100 before it sends its body
}

var (
	errTooLong   = errors.New("more than the answer's length")
	errTooShort  = errors.New("less than the answer's length")
	errNoHead    = errors.New("the answer has no head yet")
	errBodyFirst = fmt.Errorf("%w: its body has not come whole", forward.ErrNoTunnel)
	errNoUpgrade = fmt.Errorf("%w: it did not ask for one", forward.ErrNoTunnel)
)

func (cl *client) begin(c *conn, served int64) {
	h := &c.work.head
	s := &c.srv.settings
	cl.c = c
	cl.old, cl.bare = h.minor == 0 && h.lined, string(h.method) == http.MethodHead
	cl.last = !h.keep() || h.fault != nil || s.ClientIdle < 0 ||
		s.ClientRequests > 0 && served >= int64(s.ClientRequests) ||
		s.ClientAge > 0 && c.srv.now.Load()-c.born > s.ClientAge.Milliseconds()
	cl.headed, cl.ended, cl.aborted, cl.corked, cl.taken = false, false, false, false, nil
	cl.awaits = h.expect && c.work.replay != nil
}

// Inform is forward.Client's. It tells clients of HTTP/1.0 nothing: they would take it for the answer.
func (cl *client) Inform(status int, fields []forward.Field) error {
	if cl.old || cl.headed {
		return nil
	}
	cl.talk.Lock()
	defer cl.talk.Unlock()
	if status == http.StatusContinue {
		if !cl.awaits { // it sends its body already
			return nil
		}
		cl.awaits = false
	}
	b := appendStatus(cl.c.work.gather, status)
	for i := range fields {
		b = appendField(b, &fields[i])
	}
	return cl.c.put(append(b, "\r\n"...), nil, nil)
}

// proceed asks the client for the body that it holds back, unless it has its answer.
func (cl *client) proceed() {
	cl.talk.Lock()
	defer cl.talk.Unlock()
	if cl.awaits {
		cl.awaits = false
		_ = cl.c.put([]byte("HTTP/1.1 100 Continue\r\n\r\n"), nil, nil)
	}
}

// Cork is forward.Corker's.
func (cl *client) Cork() { cl.corked = true }

// Head is forward.Client's.
func (cl *client) Head(status int, fields []forward.Field, length int64) error {
	w := cl.c.work
	if status == http.StatusSwitchingProtocols {
		w.change = fields
		return nil
	}
	if cl.headed {
		return errHeads
	}
	if w.replay != nil {
		cl.talk.Lock()
		cl.awaits = false
		cl.talk.Unlock()
		// What is still to come of the body, or could not be understood, must not be taken for a request.
		cl.last = cl.last || !w.replay.Whole()
	}
	cl.last = cl.last || cl.c.srv.leaving.Load()
	cl.headed = true
	if status == forward.Headless {
		cl.last, cl.framing = true, untilClose
		return nil
	}
	cl.frame(status, length)
	w.gather = cl.appendHead(w.gather[:0], status, fields)
	if cl.framing >= byChunks && !cl.corked {
		return cl.flush()
	}
	return nil
}

var errHeads = errors.New("the answer has its head already")

func (cl *client) frame(status int, length int64) {
	switch {
	case cl.bare, status == http.StatusNoContent, status == http.StatusNotModified:
		cl.framing = noBody
	case length >= 0:
		cl.framing, cl.left = byLength, length
	case cl.old:
		cl.framing, cl.last = untilClose, true
	default:
		cl.framing = byChunks
	}
}

// flush writes what was gathered.
func (cl *client) flush() error {
	w := cl.c.work
	if len(w.gather) == 0 {
		return cl.c.out.err
	}
	b := w.gather
	w.gather = b[:0]
	return cl.c.put(b, nil, nil)
}

// Write is forward.Client's.
func (cl *client) Write(b []byte) error {
	if len(b) == 0 {
		return cl.c.out.err
	}
	return cl.write(b, nil)
}

// write writes bytes of the body, and what goes behind them: the end of chunks.
func (cl *client) write(b, end []byte) error {
	w := cl.c.work
	switch {
	case !cl.headed:
		return errNoHead
	case cl.framing == noBody:
		return cl.c.out.err
	case cl.framing == byLength:
		if int64(len(b)) > cl.left {
			cl.aborted = true
			return errTooLong
		}
		cl.left -= int64(len(b))
	case cl.framing == byChunks && len(b) > 0:
		w.gather = append(strconv.AppendInt(w.gather, int64(len(b)), 16), "\r\n"...)
		if end == nil {
			end = crlf
		}
	}
	gathered := w.gather
	w.gather = gathered[:0]
	if len(gathered) > 0 && len(gathered)+len(b)+len(end) <= cap(gathered) {
		return cl.c.put(append(append(gathered, b...), end...), nil, nil)
	}
	return cl.c.put(gathered, b, end)
}

var (
	crlf      = []byte("\r\n")
	lastChunk = []byte("0\r\n\r\n")
	chunkLast = []byte("\r\n0\r\n\r\n")
)

// Finish is forward.Finisher's.
func (cl *client) Finish(last []byte, trailer []forward.Field) error {
	var end []byte
	if cl.framing == byChunks && cl.headed {
		end = lastChunk
		if len(last) > 0 {
			end = chunkLast
		}
		if len(trailer) > 0 {
			end = appendTrailer(append([]byte(nil), end[:len(end)-2]...), trailer)
		}
	}
	err := cl.write(last, end)
	switch {
	case err != nil:
		return err
	case cl.framing == byLength && cl.left > 0:
		cl.aborted = true
		return errTooShort
	case cl.framing == noBody:
		err = cl.flush()
	}
	cl.ended = err == nil
	return err
}

// End is forward.Client's.
func (cl *client) End(trailer []forward.Field) error { return cl.Finish(nil, trailer) }

// Abort is forward.Client's.
func (cl *client) Abort() { cl.aborted = true }

// Socket is forward.Splicer's.
func (cl *client) Socket() (*net.TCPConn, bool) {
	c := cl.c
	if !c.direct || !cl.headed || cl.framing != byLength && cl.framing != untilClose || cl.flush() != nil {
		return nil, false
	}
	c.spliced.Store(true)
	c.pace()
	return c.socket, true
}

// Sent is forward.Splicer's.
func (cl *client) Sent(n int64, err error) error {
	c := cl.c
	if cl.framing == byLength {
		if cl.left -= n; cl.left < 0 {
			cl.aborted = true
			return errTooLong
		}
	}
	if err != nil {
		c.out.err = err
	}
	c.pace()
	return c.out.err
}

// Tunnel is forward.Client's.
func (cl *client) Tunnel() (io.ReadWriteCloser, error) {
	c := cl.c
	w := c.work
	switch {
	case w.replay != nil && !w.replay.Whole():
		return nil, errBodyFirst
	case c.fd != noFD:
		return nil, errNoUpgrade
	case w.replay != nil:
		w.replay.Finish() // nobody sends it again
	}
	b := append(w.gather[:0], "HTTP/1.1 101 Switching Protocols\r\n"...)
	for i := range w.change {
		b = appendField(b, &w.change[i])
	}
	cl.headed = true
	if !c.enter(tunnelling) {
		return nil, errLate
	}
	if err := c.put(append(b, "\r\n"...), nil, nil); err != nil {
		return nil, err
	}
	cl.taken = &tunnel{c: c, early: w.early()}
	return cl.taken, nil
}

// early is what the client sent behind its request.
func (w *work) early() []byte {
	if w.replay != nil && len(w.stream.extra) > 0 {
		return w.stream.extra
	}
	return w.buf[w.next:w.w]
}
