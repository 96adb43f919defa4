package http1

import (
	"errors"
	"io"

	"github.com/upstrand/upstrand/proxy/forward"
)

// encode makes the head, and puts behind it as much of a body that is at hand as fits.
func (a *attempt) encode() (err error) {
	r := a.request
	if a.outBuf == nil {
		a.outBuf = smalls.Get().(*[smallSize]byte)
	}
	if a.out, err = encode(a.outBuf[:0], r, &a.opener.wire, a.peer.Addr()); err != nil {
		return a.fail(forward.BadRequest, err)
	}
	a.first, a.body, a.rest = a.out.head, r.Body, r.Length
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
	look := a.progress.Kept
	for a.body != nil {
		if more, err := a.push(look); !more {
			return err
		}
		look = false
	}
	return a.exchange(look)
}

// push writes what goes next as far as the peer's host takes it now, and makes more of the body ready. More is false when
// that is not for the caller to go on with: a sender has the rest, or the peer takes no more.
func (a *attempt) push(look bool) (more bool, err error) {
	if look && a.conn.spoke() {
		return false, errSpoke
	}
	if cross := a.pool.owner.crossing; cross != nil {
		cross()
	}
	n, err := a.conn.writeNow(a.first)
	a.progress.Out += int64(n)
	switch {
	case err != nil && n == 0 && look:
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
func (a *attempt) exchange(look bool) error {
	a.arm(a.opener.wire.Read)
	wrote, n, err := a.conn.exchange(a, look)
	if wrote == 0 && a.patient(err) { // the deadline was over before anything could be written
		wrote, n, err = a.conn.exchange(a, look)
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
