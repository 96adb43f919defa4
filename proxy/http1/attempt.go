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
// What Head and Trailer give lives in the attempt's buffers and is valid until Release, also after Close.
type attempt struct {
	opener *opener
	ctx    context.Context
	peer   *balance.Peer
	pool   *Pool
	fresh  bool

	conn    *conn // nil: not yet, or not any more
	sender  *sender
	request *forward.Request
	out     outgoing
	first   []byte         // goes next: the head, with what of the body is at hand
	body    forward.Source // follows; nil: nothing does
	rest    int64          // bytes of it by its length
	ready   bool           // reads of it don't wait
	cut     bool           // the request could not be written to its end
	outBuf  *[smallSize]byte
	bigBuf  *[largeSize]byte

	inBuf   *[answerSize]byte
	buf     []byte // what was read; inBuf's unless a head is larger
	r, w    int    // what is still to be taken of it
	head    head
	informs int // heads before the final one

	framing framing
	left    int64 // of a body by length
	chunks  syntax.Chunks
	final   bool // the final head was given
	ended   bool // the answer is whole
	keep    bool // the connection may be kept as far as the answer goes
	extra   bool // something came after the last chunk
	atHand  bool // only what is there is read
	tunnel  bool
	failed  error // what ended it

	progress forward.Progress
	wait     waiting

	mu     sync.Mutex // guards what a sender changes
	broken bool       // by the sender: no use in waiting for the answer
}

var errReleased = errors.New("the attempt was given back")

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
		err := a.start()
		if !errors.Is(err, errSpoke) {
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
func (a *attempt) Release() {
	a.Close()
	a.written()
	if a.inBuf != nil {
		answers.Put(a.inBuf)
	}
	fields := a.head.fields
	if cap(fields) > keptFields {
		fields = nil
	}
	clear(fields)
	*a = attempt{head: head{fields: fields[:0]}, failed: errReleased}
	attempts.Put(a)
}
