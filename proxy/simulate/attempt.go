package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// limits are a location's settings of the wire, as far as virtual servers can meet them.
type limits struct {
	connect, read time.Duration
	keepAlive     bool // the protocol's version allows a connection to be kept
	headless      bool // an answer without a status line is one
}

// opener reaches the world's servers.
type opener struct {
	world  *world
	limits limits
}

// attempt is one attempt at a virtual server. It belongs to the goroutine of its request.
type attempt struct {
	opener *opener
	visit  *visit
	peer   *balance.Peer
	server *server
	does   behaviour
	fresh  bool
	reused bool // goes over a kept connection

	connected, sent bool
	head            bool // method HEAD
	read            bool // the answer was read to its end
	keep            bool // the server leaves the connection open
	mayKeep         bool // and so do we
	closed          bool
	try             int   // place in the visit's tries
	in              int64 // bytes of the answer
	body            answerBody
}

// Open is forward.Opener's.
func (o *opener) Open(ctx context.Context, peer *balance.Peer, fresh bool) forward.Backend {
	s := o.world.server(peer.Addr())
	v := visitOf(ctx)
	if v == nil {
		return &attempt{opener: o, peer: peer, server: s, does: s.does, fresh: fresh}
	}
	a := &v.first
	if len(v.tries) > 0 {
		a = new(attempt)
	}
	*a = attempt{opener: o, visit: v, peer: peer, server: s, does: s.does, fresh: fresh, try: len(v.tries)}
	v.tries = append(v.tries, try{addr: peer.Addr(), server: s, peer: peer, does: s.does})
	return a
}

// fail ends the attempt without an answer; result is the word for it.
func (a *attempt) fail(c forward.Class, result string, err error) error {
	a.note(result)
	return &forward.Error{Class: c, Err: fmt.Errorf("%s: %w", a.peer.Addr(), err)}
}

// note keeps the word for what came of the attempt.
func (a *attempt) note(result string) {
	if a.visit != nil {
		a.visit.tries[a.try].result = result
	}
}

// Send is forward.Backend's.
func (a *attempt) Send(r *forward.Request) error {
	if a.peer.Gone() {
		return a.fail(forward.PeerGone, "gone", errLeft)
	}
	w := a.opener.world
	a.reused = !a.fresh && w.takeIdle(a.peer)
	switch {
	case a.reused:
	case a.does.kind == refuses:
		return a.fail(forward.OnError, "refused", errRefused)
	case a.does.kind == drops:
		w.pass(a.opener.limits.connect)
		return a.fail(forward.OnTimeout, "no connection", errNoConnection)
	}
	a.connected, a.sent = true, true
	a.head = string(r.Method) == "HEAD"
	a.mayKeep = a.opener.limits.keepAlive && string(forward.Get(r.Fields, "Connection")) != "close"
	return a.receive(r)
}

// receive is the server reading the request.
func (a *attempt) receive(r *forward.Request) error {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(sourceReader{r.Body}); err != nil {
			return &forward.Error{Class: forward.ClientBody, Err: err}
		}
	}
	if a.visit == nil {
		return nil
	}
	t := &a.visit.tries[a.try]
	t.received, t.reused = true, a.reused
	if a.visit.client.keep {
		t.method, t.target, t.body = string(r.Method), string(r.Target), body
	}
	return nil
}

type sourceReader struct{ forward.Source }

var (
	errClosed  = errors.New("closed without an answer")
	errSilent  = errors.New("no answer in time")
	errBadHead = errors.New("a field with a NUL byte")

	errNoHead       = errors.New("no status line")
	errLeft         = errors.New("left the configuration")
	errRefused      = errors.New("connection refused")
	errNoConnection = errors.New("no connection in time")
)

// Head is forward.Backend's.
func (a *attempt) Head() (int, []forward.Field, error) {
	if a.does.kind == closes || a.does.kind == stales && a.reused {
		return 0, nil, a.fail(forward.OnError, "closed", errClosed)
	}
	if err := a.wait(); err != nil {
		return 0, nil, err
	}
	switch a.does.kind {
	case badHeader:
		return 0, nil, a.fail(forward.OnInvalidHeader, "bad header", errBadHead)
	case garbage:
		if !a.opener.limits.headless {
			return 0, nil, a.fail(forward.OnInvalidHeader, "no head", errNoHead)
		}
		a.note("no head")
		a.in = 1
		a.body = answerBody{attempt: a, text: "this is not http\r\n\r\n", err: io.EOF}
		return forward.Headless, nil, nil
	case partial:
		a.note("200, cut")
		a.in = 1
		a.body = answerBody{attempt: a, text: "0123456789", err: io.ErrUnexpectedEOF}
		return 200, []forward.Field{field("Content-Length", "100"), field("Connection", "close")}, nil
	}
	a.note(strconv.Itoa(a.does.status))
	fields := a.answer()
	a.in = a.server.size
	return a.does.status, fields, nil
}

// wait is the time until the head comes.
func (a *attempt) wait() error {
	w, limit := a.opener.world, a.opener.limits.read
	if a.does.kind == hangs {
		w.pass(limit)
		return a.fail(forward.OnTimeout, "timeout", errSilent)
	}
	if v := a.visit; v != nil && v.hold != "" && a.does.kind != keeps && a.does.kind != stales {
		if v.stay(w.Now()+int64(limit)) == timedOut {
			return a.fail(forward.OnTimeout, "timeout", errSilent)
		}
	}
	if a.does.header >= limit && limit > 0 {
		w.pass(limit)
		return a.fail(forward.OnTimeout, "timeout", errSilent)
	}
	w.pass(a.does.header)
	return nil
}

// answer is the head's fields, and makes the body ready.
func (a *attempt) answer() []forward.Field {
	text := a.server.name
	if a.does.status == 204 || a.does.status == 304 || a.head {
		text = ""
	}
	a.keep = a.does.kind == keeps || a.does.kind == stales
	a.read = text == ""
	a.body = answerBody{attempt: a, text: text, err: io.EOF}
	return a.server.head()
}

// bodyComes is the time between head and body.
func (a *attempt) bodyComes() error {
	w, limit := a.opener.world, a.opener.limits.read
	if a.does.body >= limit && limit > 0 {
		w.pass(limit)
		return a.fail(forward.OnTimeout, "timeout", errSilent)
	}
	w.pass(a.does.body)
	return nil
}

// Body is forward.Backend's.
func (a *attempt) Body() forward.Source { return &a.body }

// Sent is forward.Backend's. Nothing is ever known to be unread: a server that closes has read the request.
func (a *attempt) Sent() forward.Progress {
	return forward.Progress{Connected: a.connected, Sent: a.sent, Kept: a.reused, In: a.in}
}

// Tunnel is forward.Backend's.
func (a *attempt) Tunnel() (io.ReadWriteCloser, error) { return nil, errNoTunnel }

// Close is forward.Backend's.
func (a *attempt) Close() {
	if a.closed {
		return
	}
	a.closed = true
	if a.keep && a.read && a.mayKeep {
		a.opener.world.putIdle(a.peer)
	}
}
