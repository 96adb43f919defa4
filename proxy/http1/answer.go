package http1

import (
	"errors"
	"io"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

const (
	// maxInforms bounds the heads before the final one.
	maxInforms = 32
	// expectWait is how long a peer is given to say that it wants the body.
	expectWait = time.Second
)

var (
	errHeadSize = errors.New("the head is too large")
	errInforms  = errors.New("too many informational answers")
)

// Head is forward.Backend's. 100 is not told: it was asked of us and is between the peer and us.
func (a *attempt) Head() (int, []forward.Field, error) {
	if a.failed != nil {
		return 0, nil, a.failed
	}
	for ; a.informs < maxInforms; a.informs++ {
		from := len(a.head.fields)
		a.head = newHead(a.head.fields)
		err := a.readHead()
		if err != nil {
			return 0, nil, err
		}
		fields := a.head.fields[from:len(a.head.fields):len(a.head.fields)]
		switch status := a.head.status; {
		case status == 100:
			if a.out.expects && a.sender == nil {
				a.send(nil, a.body)
			}
		case status > 100 && status < 200 && status != 101:
			a.informs++
			return status, fields, nil
		default:
			a.settle(status)
			return status, fields, nil
		}
	}
	return 0, nil, a.fail(forward.OnInvalidHeader, errInforms)
}

// readHead reads one head.
func (a *attempt) readHead() error {
	for size := 0; ; {
		n, done, err := a.head.feed(a.buf[a.r:a.w])
		a.r += n
		size += n
		limit := a.opener.wire.HeadMax
		if done && err == nil && size <= limit {
			return nil
		}
		switch {
		case errors.Is(err, errNoHTTP) && a.headless():
			a.head.status = forward.Headless
			return nil
		case err == nil && (size > limit || !done && size+a.w-a.r >= limit):
			err = errHeadSize
		}
		if err != nil {
			return a.fail(forward.OnInvalidHeader, err)
		}
		if err := a.more(); err != nil {
			return err
		}
	}
}

// headless tells whether what does not begin as HTTP may be an answer of HTTP/0.9. On a kept connection it is none: who speaks
// that keeps no connections, so that it can only be what somebody else's answer left behind.
func (a *attempt) headless() bool {
	return a.opener.wire.Headless && a.informs == 0 && len(a.head.fields) == 0 && !a.progress.Kept
}

// more reads more of the head. A peer that was asked whether it wants the body, and does not say, gets it.
func (a *attempt) more() error {
	a.room()
	limit, asked := a.opener.wire.Read, a.out.expects && a.sender == nil
	if asked {
		limit = min(limit, expectWait)
	}
	n, err := a.read(a.buf[a.w:], limit)
	switch {
	case n > 0:
		a.w += n
		return nil
	case asked && limit == expectWait && timedOut(err):
		a.send(nil, a.body)
		return nil
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return a.lost(err)
}

// settle is done once the final head is there.
func (a *attempt) settle(status int) {
	if a.sender == nil {
		a.final = true
	} else {
		a.mu.Lock()
		a.final, a.wait.sending = true, false
		a.mu.Unlock()
	}
	switch status {
	case 101:
		a.tunnel = true
		return
	case forward.Headless:
		a.framing = untilClose
		return
	}
	a.framing, a.keep = a.head.framing(a.out.isHead)
	a.keep = a.keep && !a.out.last && !a.cut && (!a.out.expects || a.sender != nil)
	switch a.framing {
	case noBody:
		a.dry = a.dry && a.head.length == 0 // a peer that sends a body all the same has it on its way
		a.finish()
	case byLength:
		a.left = a.head.length
	case byChunks:
		a.chunks = syntax.NewChunks(a.opener.wire.HeadMax)
	}
}

// room makes sure that there is some to read into. Fields point into what was read, so that is never written again.
func (a *attempt) room() {
	if a.inBuf == nil {
		a.inBuf = intakes.Get().(*intake)
		a.buf, a.head.fields = a.inBuf.bytes[:], a.inBuf.fields[:0]
	}
	if a.w < len(a.buf) {
		return
	}
	rest := a.buf[a.r:a.w]
	a.buf = make([]byte, max(answerSize, 2*len(rest)))
	a.r, a.w = 0, copy(a.buf, rest)
}

// read waits for bytes. It gives no error beside them.
func (a *attempt) read(p []byte, limit time.Duration) (int, error) {
	if a.atHand {
		n, err := a.conn.readNow(p)
		a.progress.In += int64(n)
		a.dry = n < len(p)
		return n, err
	}
	a.arm(limit)
	for {
		n, err := a.conn.Read(p)
		a.progress.In += int64(n)
		a.dry = n < len(p)
		if n > 0 {
			return n, nil
		}
		if err == nil || a.patient(err) {
			continue
		}
		return 0, err
	}
}

// finish is called when the answer is whole. The connection is kept when the request is whole too and nothing else came.
func (a *attempt) finish() {
	a.ended = true
	c := a.conn
	if a.keep && a.r == a.w && (a.sender == nil || a.sender.finished()) && (c.direct || c.quiet()) && a.wait.unwatch() {
		a.conn, c.dry = nil, a.dry
		if !c.pool.shelf.put(c, moment()) {
			_ = c.Close()
		}
		return
	}
	a.drop()
}
