package http1

import (
	"context"
	"errors"
	"sync"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// attempt is one exchange with a peer. It belongs to one goroutine, with a sender beside it while a body is sent.
//
// What Head, Trailer and AtHand give lives in the attempt's buffers and is valid until Release, also after Close.
type attempt struct {
	course
	chunks syntax.Chunks // means something with that framing only
	mu     sync.Mutex    // guards what a sender changes
}

// course is how far an attempt came. It begins anew with each Open.
//
// Between the request and its answer all other attempts pass through the processor's caches, so that every line of 64 bytes
// that is touched afterwards is fetched from afar: what is needed then stands together, behind what only the request needs.
type course struct {
	peer    *balance.Peer
	pool    *Pool
	ctx     context.Context
	request *forward.Request
	body    forward.Source // goes after first; nil: nothing does
	run     func(fd uintptr) bool

	first   []byte // goes next: the head, with what of the body is at hand
	rest    int64  // bytes of body by its length
	outBuf  *[smallSize]byte
	bigBuf  *[largeSize]byte
	informs int // heads before the final one
	out     outgoing
	fresh   bool
	ready   bool // reads of body don't wait
	cut     bool // the request could not be written to its end

	conn   *conn // nil: not yet, or not any more
	sender *sender
	inBuf  *intake
	buf    []byte // what was read; inBuf's unless a head is larger
	r, w   int    // what is still to be taken of it

	head    head
	left    int64 // of a body by length
	framing framing
	final   bool // the final head was given
	ended   bool // the answer is whole
	keep    bool // the connection may be kept as far as the answer goes
	dry     bool // the last read took all that was there
	atHand  bool // only what is there is read
	tunnel  bool
	broken  bool // by the sender: no use in waiting for the answer. Guarded by mu

	progress forward.Progress
	failed   *forward.Error // what ended it
	opener   *opener

	wait waiting
	step step
}

var errReleased = &forward.Error{Class: forward.OnError, Err: errors.New("the attempt was given back")}

// newAttempt makes the memory of attempts.
func newAttempt() any {
	a := &attempt{}
	a.run = a.callback
	return a
}

// Open is forward.Opener's.
func (o *opener) Open(ctx context.Context, peer *balance.Peer, fresh bool) forward.Backend {
	a := attempts.Get().(*attempt)
	run := a.run
	a.course = course{}
	a.run, a.opener, a.ctx, a.peer, a.pool, a.fresh = run, o, ctx, peer, peer.Link.(Linked).HTTP1(), fresh
	return a
}

// Send is forward.Backend's. Without a body, or with one that is at hand and small, it returns when the answer begins.
func (a *attempt) Send(r *forward.Request) error {
	a.request = r
	if err := a.encode(); err != nil {
		return err
	}
	for {
		if err := a.connect(); err != nil {
			return err
		}
		if err := a.start(); err != errSpoke {
			return err
		}
		a.drop()
		a.progress = forward.Progress{} // of a connection that was never used; the next may not even come to be
	}
}

// Sent is forward.Backend's.
func (a *attempt) Sent() forward.Progress {
	p := a.progress
	if a.sender != nil {
		p.Out += a.sender.out.Load()
	}
	if a.failed != nil && a.progress.Kept && a.conn != nil {
		a.stopSending()
		p.Unread = a.conn.unread()
		a.progress.Unread = p.Unread
	}
	return p
}

// stopSending closes the connection unless all was sent, and waits for the sender.
func (a *attempt) stopSending() {
	if a.sender == nil {
		return
	}
	if a.conn != nil {
		_ = a.conn.Close()
	}
	a.sender.end()
}

// drop closes the connection.
func (a *attempt) drop() {
	if a.conn == nil {
		return
	}
	_ = a.conn.Close()
	a.stopSending()
	_ = a.wait.unwatch()
	a.conn = nil
}

// Close is forward.Backend's.
func (a *attempt) Close() {
	if a.conn == nil {
		return
	}
	if a.failed == nil && a.final && !a.tunnel && a.drain() {
		return
	}
	a.drop()
}

// Release gives the attempt back for another one. It is called once, at the end of its use; nothing that it gave may be
// touched afterwards. Without it the garbage collector has the work.
//
// What Open sets anew anyway is left as it is, but for what would keep other memory that can be used again.
func (a *attempt) Release() {
	a.Close()
	a.written()
	if a.framing == byChunks {
		a.chunks = syntax.Chunks{}
	}
	if a.inBuf != nil {
		if &a.buf[0] != &a.inBuf.bytes[0] { // a large head's, that nothing holds from here on
			clear(a.inBuf.fields[:])
		}
		intakes.Put(a.inBuf)
	}
	a.inBuf, a.buf, a.head.fields, a.r, a.w = nil, nil, nil, 0, 0
	a.sender, a.failed = nil, errReleased
	attempts.Put(a)
}
