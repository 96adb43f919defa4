package http1

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
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
	first   []byte         // goes first: the head, with the body when that is small and at hand
	body    forward.Source // follows; nil: nothing does
	cut     bool           // the request could not be written to its end
	outBuf  *[smallSize]byte
	bigBuf  *[largeSize]byte

	inBuf   *[smallSize]byte
	buf     []byte // what was read; inBuf's unless a head is larger
	r, w    int    // what is still to be taken of it
	head    head
	informs int // heads before the final one

	framing framing
	left    int64 // of a body by length
	chunks  dechunker
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

// encode makes the head, and puts a body that is at hand and small behind it.
func (a *attempt) encode() (err error) {
	r := a.request
	if a.outBuf == nil {
		a.outBuf = smalls.Get().(*[smallSize]byte)
	}
	if a.out, err = encode(a.outBuf[:0], r, &a.opener.wire, a.peer.Addr()); err != nil {
		return a.fail(forward.BadRequest, err)
	}
	a.first, a.body = a.out.head, r.Body
	if r.Body == nil || a.out.expects || r.Length < 0 || r.Length > int64(largeSize-len(a.first)) {
		return nil
	}
	if src, ok := r.Body.(whole); !ok || !src.Whole() {
		return nil
	}
	a.bigBuf = larges.Get().(*[largeSize]byte)
	n := copy(a.bigBuf[:], a.first)
	a.first, a.body = a.bigBuf[:n+int(r.Length)], nil
	if _, err := io.ReadFull(r.Body, a.first[n:]); err != nil {
		return a.fail(forward.ClientBody, errors.Join(errShort, err))
	}
	return nil
}

// start sends as much as needs no waiting for anything but the peer, and starts a sender for the rest.
func (a *attempt) start() error {
	a.conn.begin()
	if a.body != nil {
		return a.sendHead()
	}
	a.arm(a.opener.wire.Read)
	if !a.conn.direct {
		return a.write()
	}
	a.room()
	wrote, n, err := a.conn.exchange(a.first, a.buf[a.w:], a.progress.Kept)
	if wrote == 0 && a.patient(err) { // the deadline was over before anything could be written
		wrote, n, err = a.conn.exchange(a.first, a.buf[a.w:], a.progress.Kept)
	}
	if wrote > 0 {
		a.progress.Sent = true
		a.progress.Out += int64(wrote)
	}
	a.came(n)
	switch {
	case err == errSpoke:
		return err
	case wrote < len(a.first):
		var failed *writeError
		if errors.As(err, &failed) {
			a.progress.Sent, a.cut = true, true // what the peer said before is read by Head
			return nil
		}
		if err != nil {
			return a.lost(err)
		}
		a.send(a.first[wrote:], nil)
		return nil
	case err != nil && !a.patient(err):
		return a.lost(err)
	}
	return nil
}

// sendHead sends the head alone; the body follows at once, or when the peer asks for it.
func (a *attempt) sendHead() error {
	if err := a.write(); err != nil || a.cut || a.out.expects {
		return err
	}
	a.send(nil, a.body)
	return nil
}

// write writes what goes first. What a peer said that takes nothing is read by Head.
func (a *attempt) write() error {
	if a.progress.Kept && a.conn.spoke() {
		return errSpoke
	}
	if cross := a.pool.owner.crossing; cross != nil {
		cross()
	}
	n, err := a.conn.Write(a.first, a.opener.wire.Send)
	if n == 0 && err != nil && a.progress.Kept && !timedOut(err) {
		return errSpoke
	}
	a.progress.Sent = true
	a.progress.Out += int64(n)
	a.cut = err != nil
	if timedOut(err) {
		return a.lost(err)
	}
	return nil
}

// send starts a sender.
func (a *attempt) send(rest []byte, body forward.Source) {
	s := &sender{
		conn: a.conn, send: a.opener.wire.Send, rest: rest, body: body, left: a.request.Length, chunked: a.out.chunked,
		head: a.request.Fields, stop: make(chan struct{}), done: make(chan struct{}), ended: a.sent,
	}
	a.sender = s
	a.wait.sending = true
	go s.run()
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
	if a.outBuf != nil {
		smalls.Put(a.outBuf)
	}
	if a.bigBuf != nil {
		larges.Put(a.bigBuf)
	}
	if a.inBuf != nil {
		smalls.Put(a.inBuf)
	}
	fields := a.head.fields
	if cap(fields) > keptFields {
		fields = nil
	}
	clear(fields)
	*a = attempt{head: head{fields: fields[:0]}, failed: errReleased}
	attempts.Put(a)
}
