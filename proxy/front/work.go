package front

import (
	"sync"

	"github.com/upstrand/upstrand/proxy/body"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

const (
	bufferSize = 8 << 10 // a request's head with a small body
	// keptFields is for how many fields a head that is used again keeps room.
	keptFields = 256
)

// work is the memory of a connection while there is something to do on it. Unused ones have none. Client and ready stand in one
// line of memory; in the usual case nothing else of it is looked at after the request was handled. It is no larger than 10 KB: in
// such blocks the runtime puts the beginnings at many distances from a power of two; those of larger ones would push each other
// out of the processor's caches.
type work struct {
	client client
	ready  bool // the head is there, and what of the body came with it was looked at

	buf    []byte       // what was read; room's unless a head is larger
	r, w   int          // what is still to be taken of it
	next   int          // where in buf the next request begins, as far as that is known
	replay *body.Replay // of stream; nil: the body is held, or there is none
	head   head

	scratch any // a handler's, from one request to another
	held    held
	stream  stream // a body that is still coming
	chunks  syntax.Chunks

	fields [20]forward.Field
	room   [bufferSize]byte
}

// gatherSize is for an answer's head with a small body.
const gatherSize = 4 << 10

// gather is where an answer is put together. It is held from the head to the write only, so that it is nearly always the one
// that another answer was written from just before, which is still in the processor's caches.
type gather struct {
	b    []byte
	room [gatherSize]byte
}

var gathers = sync.Pool{New: func() any { return new(gather) }}

// gathered is what was gathered, or an empty one.
func (cl *client) gathered() *gather {
	if cl.gather == nil {
		g := gathers.Get().(*gather)
		g.b = g.room[:0]
		cl.gather = g
	}
	return cl.gather
}

var works = sync.Pool{New: func() any { return new(work) }}

func (c *conn) take() *work {
	w := works.Get().(*work)
	w.client.c = c
	w.buf, w.replay = w.room[:], nil
	w.r, w.w, w.next, w.ready = 0, 0, 0, false
	if n := cap(w.head.fields); n == 0 || n > keptFields {
		w.head.fields = w.fields[:0]
	}
	c.work = w
	c.prepare()
	return w
}

// give lets the memory go. Whoever takes it clears it.
func (c *conn) give() {
	w := c.work
	if w == nil {
		return
	}
	c.work = nil
	w.client.c, w.client.gather, w.client.taken = nil, nil, nil
	works.Put(w)
}

// makeRoom lets more of a head be read.
func (w *work) makeRoom(limits *Settings) {
	to := w.buf
	if w.r == 0 {
		to = make([]byte, 2*len(w.buf))
	}
	w.w = copy(to, w.buf[w.r:w.w])
	w.r, w.buf = 0, to
	w.head.reset(limits)
}
