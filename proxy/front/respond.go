package front

import (
	"runtime/debug"

	"github.com/upstrand/upstrand/proxy/forward"
)

// respond has the request at hand answered. It reports whether the connection can carry another one.
func (c *conn) respond() bool {
	w := c.work
	served := c.served.Add(1)
	c.begun, c.mayBe2 = true, false
	if !c.enter(handling) {
		return false
	}
	cl := &w.client
	cl.begin(served)
	c.fill(served)
	c.call(&w.head.req)
	if cl.streams {
		w.replay.Finish()
	}
	if racing {
		w.spoil()
	}
	keep := c.settle()
	c.begun = false
	w.ready = false
	if !keep {
		return false
	}
	if !cl.sole {
		w.r = w.next
	}
	return c.enter(waiting)
}

// prepare makes ready for a head, and sets what the connection says of its request. That is done before it is read: what has to
// come from memory for it comes during the call of the system.
func (c *conn) prepare() {
	w := c.work
	w.head.reset(&c.srv.settings)
	r := &w.head.req
	r.Secure, r.TLS, r.Proxy = c.info.TLS != nil, c.info.TLS, c.info.Proxy
	r.Remote, r.RemotePort, r.Local = c.info.Remote.Addr(), c.info.Remote.Port(), c.info.Local
	r.Connection, r.Scratch = c.info.Number, &w.scratch
}

// fill makes the request for the handler, of what the head gave.
func (c *conn) fill(served int64) {
	w := c.work
	h := &w.head
	r := &h.req
	// Each by itself: a literal would be made elsewhere first, and copied.
	r.Fields, r.Length, r.Body, r.Proto, r.Invalid, r.Refuse = h.fields, max(h.length, 0), nil, "HTTP/1.1", "", 0
	r.Plain, r.Served, r.HeadSize = !h.odd && h.fault == nil, served, int64(h.pos-h.start)
	if h.minor == 0 && (h.lined || h.fault == nil) {
		r.Proto = "HTTP/1.0"
	}
	switch {
	case h.fault != nil:
		r.Invalid, r.Refuse, r.Length = h.fault.why, h.fault.status, 0
		return
	case h.chunked:
		r.Length = -1
	}
	switch {
	case w.replay != nil:
		r.Body = w.replay
	case r.Length != 0:
		r.Body = &w.held
	}
}

// call runs the handler. One that panics must not end the process.
func (c *conn) call(r *forward.Request) {
	defer func() {
		if v := recover(); v != nil {
			c.work.client.aborted = true
			c.srv.options.Log.Error().Any("panic", v).Bytes("stack", debug.Stack()).Msg("a request's handler panicked")
		}
	}()
	c.srv.options.Handler.Handle(&c.life, r, &c.work.client)
}

// settle is done with the request, however its handler ended. It reports whether the connection can carry another one.
func (c *conn) settle() bool {
	w := c.work
	cl := &w.client
	if c.spliced.Load() {
		c.unsplice()
	}
	switch {
	case cl.taken != nil:
		_ = cl.taken.Close()
		c.polite = true
		return false
	case cl.aborted || !cl.ended || c.broken != nil:
		c.reset = cl.headed && cl.framing == untilClose
		return false
	}
	whole := !cl.streams || w.replay.Whole()
	if whole && cl.streams {
		w.refill()
	}
	if cl.last || !whole { // it is the last, too, when the head is no good
		c.linger = !whole || w.head.fault != nil || w.next < w.w || c.news()
		return false
	}
	return true
}

// refill puts what came behind a body in chunks where the next request is looked for.
func (w *work) refill() {
	extra := w.stream.extra
	if len(extra) == 0 {
		w.r, w.w, w.next = 0, 0, 0
		return
	}
	if len(extra) >= len(w.buf) {
		w.buf = make([]byte, 2*len(extra))
	}
	w.r, w.next = 0, 0
	w.w = copy(w.buf, extra)
}

// spoil overwrites what a handler must not use any more.
func (w *work) spoil() {
	for i := range w.head.fields {
		w.head.fields[i] = forward.Field{Name: spoiled, Value: spoiled}
	}
	r := &w.head.req
	r.Method, r.Target, r.Authority, r.Line = spoiled, spoiled, spoiled, spoiled
	for i := w.r; i < w.next; i++ {
		w.buf[i] = '#'
	}
}

var spoiled = []byte("(used after Handle)")
