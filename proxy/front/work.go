package front

import (
	"sync"

	"github.com/upstrand/upstrand/proxy/body"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

const (
	bufferSize = 8 << 10 // a request's head with a small body
	gatherSize = 4 << 10 // an answer's head with a small body
	// keptFields is for how many fields a head that is used again keeps room.
	keptFields = 256
)

// work is the memory of a connection while there is something to do on it. Unused ones have none.
type work struct {
	buf   []byte // what was read; room's unless a head is larger
	r, w  int    // what is still to be taken of it
	head  head
	ready bool // the head is there, and what of the body came with it was looked at
	next  int  // where in buf the next request begins, as far as that is known

	req    forward.Request
	held   held
	stream stream       // a body that is still coming
	replay *body.Replay // of stream; nil: the body is held, or there is none
	chunks syntax.Chunks
	client client
	change []forward.Field

	scratch any // a handler's, from one request to another

	gather []byte // of the answer: what goes out with the next bytes

	room   [bufferSize]byte
	out    [gatherSize]byte
	fields [24]forward.Field
}

var works = sync.Pool{New: func() any { return new(work) }}

func (c *conn) take() *work {
	w := works.Get().(*work)
	w.buf = w.room[:]
	w.gather = w.out[:0]
	if w.head.fields == nil {
		w.head.fields = w.fields[:0]
	}
	w.head.reset(&c.srv.settings)
	w.client.c = c
	c.work = w
	return w
}

// give lets the memory go.
func (c *conn) give() {
	w := c.work
	if w == nil {
		return
	}
	c.work = nil
	if cap(w.head.fields) > keptFields {
		w.head.fields = nil
	}
	w.buf, w.gather = nil, nil
	w.r, w.w, w.next, w.ready = 0, 0, 0, false
	w.client.c, w.client.taken = nil, nil
	w.replay, w.change = nil, nil
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
