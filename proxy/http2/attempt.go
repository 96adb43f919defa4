package http2

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync/atomic"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// attempt is one exchange with a peer. It belongs to one goroutine; net/http runs others beside it, which read the request's
// body and tell of heads.
type attempt struct {
	opener *opener
	ctx    context.Context
	peer   *balance.Peer
	pool   *Pool
	fresh  bool

	conn    *conn // nil: there is none
	cancel  context.CancelCauseFunc
	own     context.Context // ends the exchange
	body    *sending        // the request's; nil: none
	unwatch func() bool     // nil without a body
	before  int64           // bytes that were written on the connection before the request
	heads   chan headed
	informs int            // heads before the final one; net/http's, as it reads the connection
	answer  *http.Response // its final head came
	ended   bool           // and its last byte
	failed  *forward.Error // what ended it

	waiting  patience // for heads, once the request was sent
	reading  patience // for bytes of the answer's body
	progress forward.Progress
	written  atomic.Bool // the request's head left us
}

// headed is a head of an answer, or how waiting for one ended.
type headed struct {
	status int
	fields http.Header
	final  *http.Response
	err    error
}

// maxInforms bounds the heads before the final one.
const maxInforms = 32

var (
	errTimeout = errors.New("the peer took too long")
	errInforms = errors.New("too many informational answers")
	errClosed  = errors.New("the attempt is over")
	errHead    = errors.New("the head is too large")
	errStatus  = errors.New("the status is not valid")
)

// Send is forward.Backend's. It returns when there is a connection; the request leaves while Head waits.
func (a *attempt) Send(r *forward.Request) error {
	req, err := newRequest(r, a.peer)
	if err != nil {
		return a.fail(forward.BadRequest, err)
	}
	if err := a.connect(); err != nil {
		return err
	}
	a.own, a.cancel = context.WithCancelCause(a.ctx)
	a.waiting.fire = func() { a.cancel(errTimeout) }
	a.reading.fire = a.waiting.fire
	if r.Body != nil {
		a.body = newSending(a, r, req.Trailer)
		req.Body = a.body
		// While net/http waits for the client's side it looks at nothing else.
		a.unwatch = context.AfterFunc(a.own, func() { _ = a.body.Close() })
	}
	a.heads = make(chan headed, maxInforms+1)
	a.conn.begin(a)
	req = req.WithContext(httptrace.WithClientTrace(a.own, &httptrace.ClientTrace{
		WroteHeaders: func() { a.written.Store(true) }, WroteRequest: a.wrote, Got1xxResponse: a.informed,
	}))
	if a.body == nil { // with one the peer may wait for it
		a.waiting.begin(a.opener.wire.Read)
	}
	a.before = a.conn.socket.wrote.Load()
	go func() {
		answer, err := a.conn.client.RoundTrip(req)
		a.heads <- headed{final: answer, err: err}
	}()
	return nil
}

// wrote is told when the request was sent.
func (a *attempt) wrote(httptrace.WroteRequestInfo) {
	if a.body != nil {
		a.body.taking.close()
		a.waiting.begin(a.opener.wire.Read)
	}
}

// connect finds or opens a connection.
func (a *attempt) connect() error {
	if a.ctx.Err() != nil {
		return a.fail(forward.OnError, context.Cause(a.ctx))
	}
	if a.peer.Gone() || a.pool.gone.Load() {
		return a.fail(forward.PeerGone, errGone)
	}
	w := &a.opener.wire
	began := time.Now()
	c, kept, err := a.pool.take(a.ctx, w.via(a.peer.Scheme(), a.opener.pools.tls), a.opener, a.fresh)
	switch {
	case errors.Is(err, errGone):
		return a.fail(forward.PeerGone, err)
	case err != nil && timedOut(err):
		return a.fail(forward.OnTimeout, err)
	case err != nil:
		return a.fail(forward.OnError, err)
	case a.peer.Gone() || a.pool.gone.Load(): // to have the connection may have taken a while
		c.client.Release()
		c.done(a)
		return a.fail(forward.PeerGone, errGone)
	}
	a.conn = c
	a.progress.Connected, a.progress.Kept = true, kept
	if !kept {
		a.progress.Connect = time.Since(began)
	}
	return nil
}

// informed is told of informational heads by the goroutine that reads the connection.
func (a *attempt) informed(status int, fields textproto.MIMEHeader) error {
	if status == http.StatusContinue || status == http.StatusSwitchingProtocols {
		return nil
	}
	if a.informs++; a.informs > maxInforms {
		return errInforms
	}
	a.heads <- headed{status: status, fields: http.Header(fields)} // there is room for all, and the final one
	return nil
}

// Head is forward.Backend's. 100 is not told: it was asked of us and is between the peer and us.
func (a *attempt) Head() (int, []forward.Field, error) {
	if a.failed != nil {
		return 0, nil, a.failed
	}
	h := <-a.heads
	switch {
	case h.err != nil:
		return 0, nil, a.lost(h.err)
	case h.final == nil:
		a.waiting.again(a.opener.wire.Read)
		return h.status, fieldsOf(nil, h.fields), nil
	}
	a.waiting.close()
	a.answer = h.final
	if s := h.final.StatusCode; s < 200 || s > 999 {
		return 0, nil, a.fail(forward.OnInvalidHeader, errStatus)
	}
	fields := fieldsOf(make([]forward.Field, 0, len(h.final.Header)+1), h.final.Header)
	if len(h.final.Trailer) > 0 {
		fields = append(fields, forward.Field{Name: bytesOf("Trailer"), Value: bytesOf(announced(h.final.Trailer))})
	}
	size := 0
	for i := range fields {
		size += len(fields[i].Name) + len(fields[i].Value) + len(": \r\n")
	}
	if size > a.opener.wire.HeadMax {
		return 0, nil, a.fail(forward.OnInvalidHeader, errHead)
	}
	return h.final.StatusCode, fields, nil
}

// Body is forward.Backend's.
func (a *attempt) Body() forward.Source { return answer{a} }

// Sent is forward.Backend's.
func (a *attempt) Sent() forward.Progress {
	p := a.progress
	p.Sent = p.Sent || a.written.Load()
	if a.body != nil {
		p.Out = a.body.out.Load()
	}
	return p
}

// Tunnel is forward.Backend's: there is none over HTTP/2.
func (a *attempt) Tunnel() (io.ReadWriteCloser, error) {
	return nil, &forward.Error{Class: forward.OnError, Err: errNoTunnel}
}

// Close is forward.Backend's. A stream that is not over is reset; the connection goes on.
func (a *attempt) Close() {
	if a.cancel == nil {
		return
	}
	if a.body != nil {
		a.unwatch()
		_ = a.body.stopped()
	}
	a.cancel(errClosed)
	a.waiting.close()
	a.reading.close()
	if a.answer == nil && a.failed == nil { // RoundTrip is still under way
		for h := range a.heads {
			if h.final != nil || h.err != nil {
				a.answer = h.final
				break
			}
		}
		a.failed = &forward.Error{Class: forward.OnError, Err: errClosed}
	}
	if a.answer != nil {
		_ = a.answer.Body.Close()
	}
	a.conn.done(a)
	a.cancel = nil
}
