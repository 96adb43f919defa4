package front

import (
	"bytes"

	"github.com/upstrand/upstrand/proxy/body"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// verdict is what a connection needs after it has looked at what was read.
type verdict uint8

const (
	more    verdict = iota // the rest of a head
	idle                   // a new request: all is answered
	outside                // the request at hand is to be served where the socket can be read
	over                   // to be closed
	preface                // to be handed over, since it speaks HTTP/2
	ready                  // the head is there
)

// advance serves the requests that were read, one after another. Inside a callback of the socket's read it leaves those
// that may have to read from it.
func (c *conn) advance(inside bool) verdict {
	for {
		if v := c.readHead(); v != ready {
			return v
		}
		if w := c.work; inside && (w.replay != nil || w.head.upgrade) {
			return outside
		}
		if !c.respond() {
			return over
		}
		w := c.work
		if w.client.sole || w.r == w.w {
			c.give()
			return idle
		}
		c.prepare()
	}
}

// readHead takes what there is of a head. The calls that wait for the handler are not made from here: their stacks stay small.
func (c *conn) readHead() verdict {
	w := c.work
	if w.ready {
		return ready
	}
	if c.mayBe2 {
		if v, yes := c.isPreface(); yes {
			return v
		}
	}
	if !w.head.feed(w.buf[w.r:w.w]) {
		if w.w == len(w.buf) {
			w.makeRoom(&c.srv.settings)
		}
		if !c.startHead() {
			return over
		}
		return more
	}
	w.ready = true
	w.arrange(c)
	return ready
}

const clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// isPreface looks for the beginning of HTTP/2 at that of a connection.
func (c *conn) isPreface() (verdict, bool) {
	w := c.work
	b := w.buf[w.r:w.w]
	if n := min(len(b), len(clientPreface)); n == 0 || !bytes.Equal(b[:n], []byte(clientPreface)[:n]) {
		return 0, false
	}
	if len(b) < len(clientPreface) {
		if !c.startHead() {
			return over, true
		}
		return more, true
	}
	return preface, true
}

// arrange finds the body of the request whose head is there: at hand, or still coming.
func (w *work) arrange(c *conn) {
	h := &w.head
	from := w.r + h.pos
	w.next = from
	w.replay = nil
	if h.fault != nil {
		w.next = w.w // nothing more is read here
		return
	}
	switch {
	case h.chunked:
		w.arrangeChunks(c, from)
	case h.length > int64(w.w-from):
		w.follow(c, w.buf[from:w.w])
		w.stream.left = h.length - int64(w.w-from)
		w.next = w.w
	case h.length > 0:
		w.next = from + int(h.length)
		w.held = held{data: w.buf[from:w.next:w.next]}
	}
}

func (w *work) arrangeChunks(c *conn, from int) {
	w.chunks = syntax.NewChunks(c.srv.settings.ClientMax)
	n, took, err := w.chunks.Decode(w.buf[from:w.w], w.buf[from:w.w])
	switch data := w.buf[from : from+n : from+n]; {
	case err != nil:
		w.head.fault, w.next = faultChunk, w.w
	case w.chunks.Done():
		w.held = held{data: data, trailer: forward.FieldsOf(w.chunks.Trailer())}
		w.next = from + took
	default:
		w.follow(c, data)
		w.stream.chunks = &w.chunks
		w.next = w.w
	}
}

// follow is for a body that is still coming.
func (w *work) follow(c *conn, early []byte) {
	s := &c.srv.settings
	length := w.head.length
	w.stream = stream{c: c, early: early}
	w.replay = body.New(&w.stream, body.Options{Length: length, Memory: s.Replay, Folder: s.Folder})
}
