package http1

import (
	"errors"
	"io"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// encode makes the head, and puts behind it as much of a body that is at hand as fits.
func (a *attempt) encode() (err error) {
	r := a.request
	if a.outBuf == nil {
		a.outBuf = smalls.Get().(*[smallSize]byte)
	}
	if a.first, a.out, err = encode(a.outBuf[:0], r, &a.opener.wire, a.peer.Addr()); err != nil {
		return a.fail(forward.BadRequest, err)
	}
	a.body, a.rest = r.Body, r.Length
	if r.Body == nil || a.out.expects || r.Length < 0 || len(a.first) > largeSize/2 {
		return nil
	}
	src, ok := r.Body.(whole)
	if a.ready = ok && src.Whole(); !a.ready {
		return nil
	}
	a.bigBuf = larges.Get().(*[largeSize]byte)
	return a.fill(copy(a.bigBuf[:], a.first))
}

// fill puts more of a body that is at hand behind the first n bytes of what goes next.
func (a *attempt) fill(n int) error {
	size := min(a.rest, int64(largeSize-n))
	a.first = a.bigBuf[:n+int(size)]
	if _, err := io.ReadFull(a.body, a.first[n:]); err != nil {
		return a.fail(forward.ClientBody, errors.Join(errShort, err))
	}
	if a.rest -= size; a.rest == 0 {
		a.body = nil
	}
	return nil
}

// written gives back what the request was written from.
func (a *attempt) written() {
	if a.outBuf != nil {
		smalls.Put(a.outBuf)
		a.outBuf = nil
	}
	if a.bigBuf != nil {
		larges.Put(a.bigBuf)
		a.bigBuf = nil
	}
}

// start sends as much as needs no waiting for anything but the peer, and starts a sender for the rest.
func (a *attempt) start() error {
	a.conn.begin()
	switch {
	case a.body != nil && !a.ready:
		return a.sendHead()
	case !a.conn.direct:
		if err := a.write(); err != nil || a.cut || a.body == nil {
			return err
		}
		a.send(nil, a.body)
		return nil
	}
	kept := a.progress.Kept
	for a.body != nil {
		if more, err := a.push(kept); !more {
			return err
		}
		kept = false
	}
	return a.exchange(kept)
}

// push writes what goes next as far as the peer's host takes it now, and makes more of the body ready. More is false when
// that is not for the caller to go on with: a sender has the rest, or the peer takes no more.
func (a *attempt) push(kept bool) (more bool, err error) {
	if kept && a.conn.spoke() {
		return false, errSpoke
	}
	if cross := a.pool.owner.crossing; cross != nil {
		cross()
	}
	n, err := a.conn.writeNow(a.first)
	a.progress.Out += int64(n)
	switch {
	case err != nil && n == 0 && kept:
		return false, errSpoke
	case err != nil:
		a.progress.Sent, a.cut = true, true // what the peer said before is read by Head
		return false, nil
	}
	a.progress.Sent = true
	if n < len(a.first) {
		a.send(a.first[n:], a.body)
		return false, nil
	}
	if err := a.fill(0); err != nil {
		return false, err
	}
	return true, nil
}

// exchange writes the last of the request and waits for the answer.
func (a *attempt) exchange(kept bool) error {
	a.arm(a.opener.wire.Read)
	err := a.turn(kept, kept && !a.justUsed())
	if err == nil && a.step.waiting {
		return nil
	}
	return a.unanswered(kept, err)
}

// unseen is how long a connection may have been unused to be written to without a look at what came on it meanwhile. The look
// is a system call of its own, and nginx has the same blind spot: it learns of what came when it waits for events again. What
// came with the end of the answer before is no part of it: where the last read may have left something, somebody looks.
//
// What is not seen then: of a peer that closed, the kernel says so when it is written to, or the answer's place has the end of the
// stream, with the proof that nothing was read. That of one that closed its own side only was told before the wait and may not be
// told again, so it takes a deadline to wake us soon, and time to read then. Bytes that nobody had asked for are taken for the
// answer, as they are when they come a moment later.
//
// Such a peer may read the request, act, and reset the connection before its host acknowledges anything, which nobody can tell from
// one that had closed. So somebody looks where it does harm to send a request twice.
const unseen = time.Millisecond

// justUsed tells whether a kept connection need not be looked at. The wait is armed.
func (a *attempt) justUsed() bool {
	w := &a.wait
	return a.conn.dry && a.out.safe && w.slice && (w.limit == 0 || w.limit > 3*patience) && w.from-a.conn.idleSince < int64(unseen)
}

// unanswered goes on where an exchange did not end with the beginning of the answer.
func (a *attempt) unanswered(kept bool, err error) error {
	if a.step.wrote == 0 && a.patient(err) { // the deadline was over before anything could be written
		err = a.turn(kept, kept)
	}
	switch {
	case err == errSpoke:
		return err
	case !a.step.waiting:
		var failed *writeError
		if errors.As(err, &failed) {
			a.progress.Sent, a.cut = true, true // what the peer said before is read by Head
			return nil
		}
		if err != nil {
			return a.lost(err)
		}
		a.send(a.first[a.step.wrote:], nil)
		return nil
	case err != nil && !a.patient(err):
		return a.lost(err)
	case err != nil:
		a.wait.goes = true
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
		conn: a.conn, send: a.opener.wire.Send, rest: rest, body: body, left: a.rest, chunked: a.out.chunked,
		head: a.request.Fields, stop: make(chan struct{}), done: make(chan struct{}), ended: a.sent,
	}
	a.sender = s
	a.wait.sending = true
	go s.run()
}
