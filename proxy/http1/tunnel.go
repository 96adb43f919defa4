package http1

import (
	"errors"
	"io"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

var (
	errNoTunnel = errors.New("there is no connection to take over")
	errBodyLeft = errors.New("the peer changed protocols before it had the request's body")
)

// Tunnel is forward.Backend's. It waits until the request's body was sent: what follows that is the tunnel's. How long it may
// be silent is for the client's side to limit.
func (a *attempt) Tunnel() (io.ReadWriteCloser, error) {
	if !a.tunnel || a.conn == nil || a.failed != nil {
		return nil, &forward.Error{Class: forward.OnError, Err: errNoTunnel}
	}
	if err := a.sendRest(); err != nil {
		return nil, err
	}
	a.stopWaiting()
	return &tunnel{conn: a.conn, early: a.buf[a.r:a.w], send: a.opener.wire.Send}, nil
}

// sendRest waits until all of the request was sent. A peer that takes nothing, and a client that sends nothing, end it.
func (a *attempt) sendRest() error {
	left := &forward.Error{Class: forward.OnError, Err: errBodyLeft}
	switch s := a.sender; {
	case a.cut, s == nil && a.body != nil:
		return left
	case s == nil:
		return nil
	default:
		select {
		case <-s.done:
		case <-a.ctx.Done():
			return &forward.Error{Class: forward.ClientBody, Err: a.ctx.Err()}
		}
		if s.failure != nil {
			return s.failure
		}
		if !s.whole {
			return left
		}
		return nil
	}
}

// stopWaiting leaves the connection without a deadline. The client's end still ends it.
func (a *attempt) stopWaiting() {
	if a.wait.stop == nil && a.ctx.Done() != nil {
		a.watch()
	}
	a.conn.setReadDeadline(0)
}

// tunnel is a peer's connection after 101.
type tunnel struct {
	conn  *conn
	early []byte // came with the head
	send  time.Duration
}

func (t *tunnel) Read(p []byte) (int, error) {
	if len(t.early) > 0 {
		n := copy(p, t.early)
		t.early = t.early[n:]
		return n, nil
	}
	return t.conn.stream.Read(p)
}

func (t *tunnel) Write(p []byte) (int, error) { return t.conn.Write(p, t.send) }
func (t *tunnel) Close() error                { return t.conn.Close() }

// CloseWrite ends the direction to the peer.
func (t *tunnel) CloseWrite() error {
	c, ok := t.conn.stream.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return c.CloseWrite()
}

// OnFarewell is forward.Departer's: the end is asked for when the peer has left and its drain time is over, and by
// Pools.Farewell.
func (t *tunnel) OnFarewell(f func()) { t.conn.onFarewell(f) }
