package http1

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// connect takes a kept connection or opens one.
func (a *attempt) connect() error {
	if a.ctx.Err() != nil {
		return a.fail(forward.OnError, context.Cause(a.ctx))
	}
	if a.peer.Gone() || a.pool.gone.Load() {
		return a.fail(forward.PeerGone, errGone)
	}
	v := a.opener.wire.via(a.peer.Scheme(), a.opener.tls)
	if !a.fresh {
		if c := a.pool.shelf.take(a.pool, v); c != nil {
			return a.have(c, true, 0)
		}
	}
	return a.dial(v)
}

// dial opens a connection.
func (a *attempt) dial(v via) error {
	began := time.Now()
	c, err := a.pool.dial(a.ctx, v, a.opener.wire.Connect)
	switch {
	case err == nil:
		return a.have(c, false, time.Since(began))
	case errors.Is(err, errGone):
		return a.fail(forward.PeerGone, err)
	case isOurs(err):
		return a.fail(forward.NoSocket, err)
	}
	return a.lost(err)
}

// isOurs tells whether it is this host that has no room for another connection.
func isOurs(err error) bool {
	for _, no := range [...]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// have looks once more whether the peer is still there: to have the connection may have taken a while.
func (a *attempt) have(c *conn, kept bool, took time.Duration) error {
	if a.peer.Gone() || a.pool.gone.Load() {
		_ = c.Close()
		return a.fail(forward.PeerGone, errGone)
	}
	a.conn = c
	a.progress.Connected, a.progress.Kept, a.progress.Connect = true, kept, took
	return nil
}
