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

// client is the waiting side of one request. It is used again for the next on its connection.
type client struct {
	c *conn

	old     bool // it speaks HTTP/1.0
	bare    bool // it asked for a head only
	last    bool // no other request is taken from its connection
	headed  bool // an answer was begun
	ended   bool // … and is complete
	aborted bool
	corked  bool
	framing framing
	left    int64   // of the declared length
	gather  *gather // of the answer: what goes out with the next bytes; nil: nothing
	taken   *tunnel // what the connection became

	talk    sync.Mutex // of informational answers, which the body's reader gives too
	awaits  bool       // a 100 before it sends its body
	streams bool       // its body is still coming: there is a replay
	sole    bool       // nothing was read behind its request
}

var (
	errTooLong   = errors.New("more than the answer's length")
	errTooShort  = errors.New("less than the answer's length")
	errNoHead    = errors.New("the answer has no head yet")
	errBodyFirst = fmt.Errorf("%w: its body has not come whole", forward.ErrNoTunnel)
	errNoUpgrade = fmt.Errorf("%w: it did not ask for one", forward.ErrNoTunnel)
)

func (cl *client) begin(served int64) {
	c := cl.c
	h := &c.work.head
	s := &c.srv.settings
	cl.old, cl.bare = h.minor == 0 && h.lined, string(h.req.Method) == http.MethodHead
	cl.last = !h.keep() || h.fault != nil || s.ClientIdle < 0 ||
		s.ClientRequests > 0 && served >= int64(s.ClientRequests) ||
		s.ClientAge > 0 && c.srv.now.Load()-c.born > s.ClientAge.Milliseconds()
	cl.sole, cl.streams = c.work.next == c.work.w && c.work.replay == nil, c.work.replay != nil
	cl.headed, cl.ended, cl.aborted, cl.corked, cl.gather, cl.taken = false, false, false, false, nil, nil
	cl.awaits = h.expect && cl.streams
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
	g := gathers.Get().(*gather)
	defer gathers.Put(g)
	b := appendStatus(g.room[:0], status)
	for i := range fields {
		b = appendField(b, &fields[i])
	}
	return cl.c.put(append(b, "\r\n"...))
}

// proceed asks the client for the body that it holds back, unless it has its answer.
func (cl *client) proceed() {
	cl.talk.Lock()
	defer cl.talk.Unlock()
	if cl.awaits {
		cl.awaits = false
		_ = cl.c.put([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
}

// Cork is forward.Corker's.
func (cl *client) Cork() { cl.corked = true }

// Head is forward.Client's.
func (cl *client) Head(status int, fields []forward.Field, length int64) error {
	if status == http.StatusSwitchingProtocols {
		cl.c.change = fields
		return nil
	}
	if cl.headed {
		return errHeads
	}
	if cl.streams {
		cl.answered()
	}
	cl.last = cl.last || cl.c.srv.leaving.Load()
	cl.headed = true
	if status == forward.Headless {
		cl.last, cl.framing = true, untilClose
		return nil
	}
	cl.frame(status, length)
	g := cl.gathered()
	g.b = cl.appendHead(g.b, status, fields)
	if cl.framing >= byChunks && !cl.corked {
		return cl.flush()
	}
	return nil
}

// answered is for the head of an answer to a request whose body is still coming.
func (cl *client) answered() {
	cl.talk.Lock()
	cl.awaits = false
	cl.talk.Unlock()
	// What is still to come of the body, or could not be understood, must not be taken for a request.
	cl.last = cl.last || !cl.c.work.replay.Whole()
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
	if cl.gather == nil {
		return cl.c.broken
	}
	return cl.send(nil, nil)
}

// Write is forward.Client's.
func (cl *client) Write(b []byte) error {
	if len(b) == 0 {
		return cl.c.broken
	}
	return cl.write(b, nil)
}

// write writes bytes of the body, and what goes behind them: the end of chunks.
func (cl *client) write(b, end []byte) error {
	switch {
	case !cl.headed:
		return errNoHead
	case cl.framing == noBody:
		return cl.c.broken
	case cl.framing == byLength:
		if int64(len(b)) > cl.left {
			cl.aborted = true
			return errTooLong
		}
		cl.left -= int64(len(b))
	case cl.framing == byChunks && len(b) > 0:
		cl.startChunk(len(b))
		if end == nil {
			end = crlf
		}
	}
	return cl.send(b, end)
}

func (cl *client) startChunk(size int) {
	g := cl.gathered()
	g.b = append(strconv.AppendInt(g.b, int64(size), 16), "\r\n"...)
}

// send writes what was gathered, and what goes behind it: in one piece if there is room for that.
func (cl *client) send(b, end []byte) error {
	g := cl.gather
	if g == nil || len(b)+len(end) > cap(g.b)-len(g.b) {
		return cl.sendApart(b, end)
	}
	n := len(g.b)
	all := g.b[:n+len(b)+len(end)]
	copy(all[n:], b)
	copy(all[n+len(b):], end)
	err := cl.c.put(all)
	cl.sent()
	return err
}

// sendApart is send in several pieces.
func (cl *client) sendApart(b, end []byte) error {
	if cl.gather == nil {
		return cl.c.putAll(b, end, nil)
	}
	err := cl.c.putAll(cl.gather.b, b, end)
	cl.sent()
	return err
}

// sent gives back where the answer was gathered.
func (cl *client) sent() {
	g := cl.gather
	cl.gather, g.b = nil, nil
	gathers.Put(g)
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
		end = endOfChunks(len(last) > 0, trailer)
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

// endOfChunks is what stands behind the last chunk's data, or without one.
func endOfChunks(within bool, trailer []forward.Field) []byte {
	end := lastChunk
	if within {
		end = chunkLast
	}
	if len(trailer) > 0 {
		end = appendTrailer(append([]byte(nil), end[:len(end)-2]...), trailer)
	}
	return end
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
		c.broken = err
	}
	c.pace()
	return c.broken
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
	b := []byte("HTTP/1.1 101 Switching Protocols\r\n")
	for i := range c.change {
		b = appendField(b, &c.change[i])
	}
	c.change = nil
	cl.headed = true
	if !c.enter(tunnelling) {
		return nil, errLate
	}
	if err := c.put(append(b, "\r\n"...)); err != nil {
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
