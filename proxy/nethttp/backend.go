package nethttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// Open is forward.Opener's. The peer's Link is its *Pool.
func (ps *Pools) Open(ctx context.Context, peer *balance.Peer, fresh bool) forward.Backend {
	a := &attempt{peer: peer, pool: peer.Link.(*Pool), fresh: fresh, read: ps.settings.Read}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	return a
}

// attempt is one exchange with a peer. net/http may try twice below it, both times with this peer: when a kept
// connection turns out dead and the request is one that it can repeat.
type attempt struct {
	peer   *balance.Peer
	pool   *Pool
	fresh  bool
	read   time.Duration
	ctx    context.Context
	cancel context.CancelCauseFunc

	gate      *gate
	response  *http.Response
	next      int // of informs
	timer     *time.Timer
	wire      *conn
	asked     bool // for a connection
	connected bool
	left      bool // the peer left while the connection was made
	failed    bool
	answering atomic.Bool // the first byte of an answer came

	mu      sync.Mutex
	informs []inform
}

type inform struct {
	status int
	fields []forward.Field
}

var errSlow = errors.New("the peer sent nothing in time")

func (a *attempt) Send(r *forward.Request) error {
	if a.peer.Gone() || a.pool.gone.Load() {
		return &forward.Error{Class: forward.PeerGone, Err: errGone}
	}
	if a.fresh {
		a.pool.closeIdle()
	}
	var err error
	a.response, err = a.pool.roundTripper().RoundTrip(a.build(r))
	if err != nil {
		a.failed = true
		return a.classify(err)
	}
	if s := a.response.StatusCode; s < 100 || s > 999 {
		return &forward.Error{Class: forward.OnInvalidHeader, Err: fmt.Errorf("status %d", s)}
	}
	return nil
}

func (a *attempt) build(r *forward.Request) *http.Request {
	req := &http.Request{
		Method: string(r.Method), URL: targetURL(a.peer, string(r.Target)), Host: string(r.Authority),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header, len(r.Fields)+1),
	}
	addFields(req.Header, r.Fields)
	hideIdempotency(req.Header)
	if names := req.Header.Values("Trailer"); len(names) > 0 {
		req.Trailer = http.Header{}
		for _, name := range strings.Split(strings.Join(names, ","), ",") {
			req.Trailer[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))] = nil
		}
		req.Header.Del("Trailer")
	}
	if _, has := req.Header["User-Agent"]; !has {
		req.Header.Set("User-Agent", "") // keeps net/http from naming itself
	}
	req.Header.Del("Content-Length") // net/http writes it from the field below
	if r.Body != nil {
		a.gate = newGate(r.Body, req.Trailer)
		req.Body, req.ContentLength = a.gate, r.Length
	}
	return req.WithContext(httptrace.WithClientTrace(a.ctx, a.trace(r)))
}

// targetURL makes net/http write the target as it came.
func targetURL(p *balance.Peer, target string) *url.URL {
	u := &url.URL{Scheme: p.Scheme(), Host: p.Addr(), Opaque: target}
	if strings.HasPrefix(target, "//") {
		// As Opaque this would be taken for an authority.
		path, query, has := strings.Cut(target, "?")
		u.Opaque, u.RawPath, u.RawQuery, u.ForceQuery = "", path, query, has && query == ""
		var err error
		if u.Path, err = url.PathUnescape(path); err != nil {
			u.Path, u.RawPath = path, ""
		}
	}
	return u
}

func (a *attempt) trace(r *forward.Request) *httptrace.ClientTrace {
	repeats := r.Body == nil && (string(r.Method) == http.MethodGet || string(r.Method) == http.MethodHead)
	return &httptrace.ClientTrace{
		GetConn: func(string) { a.asked = true },
		GotConn: func(info httptrace.GotConnInfo) {
			if a.peer.Gone() || a.pool.gone.Load() { // since dial looked there was a TLS handshake
				a.left = true
				_ = info.Conn.Close()
				return
			}
			a.connected = true
			a.wire = nil
			if repeats {
				return
			}
			wire := ours(info)
			if wire == nil {
				return
			}
			wire.carries(a.gate)
			if info.Reused {
				a.wire = wire
				wire.remember()
			}
		},
		GotFirstResponseByte: func() { a.answering.Store(true) },
		Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			if status != http.StatusContinue { // ours and net/http's to make and to wait for
				a.mu.Lock()
				a.informs = append(a.informs, inform{status, fieldsOf(http.Header(h))})
				a.mu.Unlock()
			}
			return nil
		},
	}
}

// classify says in nginx's words what went wrong.
func (a *attempt) classify(err error) error {
	class := forward.OnError
	var timeout net.Error
	switch {
	case a.left, errors.Is(err, errGone):
		class = forward.PeerGone
	case a.gate != nil && a.gate.failed() != nil:
		class = forward.ClientBody
	case !a.asked && a.ctx.Err() == nil:
		// net/http found something wrong with the request itself.
		class = forward.BadRequest
	case errors.As(err, &timeout) && timeout.Timeout():
		class = forward.OnTimeout
	case a.answering.Load() && !cutOff(err):
		class = forward.OnInvalidHeader
	}
	return &forward.Error{Class: class, Err: err}
}

func cutOff(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (a *attempt) Head() (int, []forward.Field, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next < len(a.informs) {
		i := a.informs[a.next]
		a.next++
		return i.status, i.fields, nil
	}
	return a.response.StatusCode, append(fieldsOf(a.response.Header), announced(a.response.Trailer)...), nil
}

func (a *attempt) Body() forward.Source { return answerBody{a} }

func (a *attempt) Sent() forward.Progress {
	return forward.Progress{Sent: a.connected, Unread: a.failed && a.wire != nil && a.wire.unread()}
}

func (a *attempt) Tunnel() (io.ReadWriteCloser, error) {
	rw, ok := a.response.Body.(io.ReadWriteCloser)
	if !ok {
		return nil, &forward.Error{Class: forward.OnError, Err: errors.New("no connection to take over")}
	}
	return rw, nil
}

func (a *attempt) Close() {
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.response != nil {
		_ = a.response.Body.Close()
	}
	a.cancel(context.Canceled)
	if a.gate != nil {
		_ = a.gate.Close()
	}
}

// answerBody reads the answer's body and gives up on a peer that sends nothing for too long.
type answerBody struct{ a *attempt }

func (b answerBody) Read(p []byte) (int, error) {
	a := b.a
	if a.timer == nil {
		a.timer = time.AfterFunc(a.read, func() { a.cancel(errSlow) })
	} else {
		a.timer.Reset(a.read)
	}
	n, err := a.response.Body.Read(p)
	a.timer.Stop()
	return n, err
}

func (b answerBody) Trailer() []forward.Field { return fieldsOf(b.a.response.Trailer) }
func (b answerBody) Rewind() error            { return errNotHeld }
func (b answerBody) Rewindable() bool         { return false }
