package forward

import (
	"errors"
	"net/http"

	"github.com/upstrand/upstrand/proxy/balance"
)

// inform is an informational head.
type inform struct {
	status int
	fields []Field
}

// informational tells whether another head follows one with this status.
func informational(status int) bool {
	return status < 200 && status != http.StatusSwitchingProtocols && status != Headless
}

// maxInforms bounds the informational heads of one attempt.
const maxInforms = 16

var errTooManyInforms = errors.New("too many informational answers")

// inform passes an informational head on, and those that follow it, and gives the final one. They go to the client at once
// when no other attempt can follow; else they wait, since nothing of an attempt that is left may reach the client.
func (x *Exchange) inform(status int, fields []Field) (int, []Field, error) {
	last := x.pass.Tries() <= 1 && !x.more()
	for range maxInforms {
		fields = endToEnd(nil, fields)
		if !last {
			x.informs = append(x.informs, inform{status, fields})
		} else if err := x.Client.Inform(status, fields); err != nil {
			return 0, nil, &Error{Class: ClientBody, Err: err}
		}
		var err error
		if status, fields, err = x.backend.Head(); err != nil || !informational(status) {
			return status, fields, err
		}
	}
	return 0, nil, &Error{Class: OnInvalidHeader, Err: errTooManyInforms}
}

// deliver passes the answer on and ends the attempt at the last byte read.
func (x *Exchange) deliver(status int, head []Field) {
	fields, ok := x.head(status, head)
	if !ok {
		x.intercept(status)
		return
	}
	x.out.Answered = true
	if x.informs != nil && !x.informed() {
		return
	}
	if status == http.StatusSwitchingProtocols {
		x.tunnel(head, fields)
		return
	}
	x.out.Status = status
	length := lengthOf(head)
	if x.bodiless(status) {
		x.succeed()
		if x.Client.Head(status, fields, length) != nil || x.Client.End(nil) != nil {
			x.out.Cause = "client_gone"
		}
		return
	}
	if length < 0 {
		x.cork()
	}
	if x.Client.Head(status, fields, length) != nil {
		x.lost()
		return
	}
	x.copyBody(head, length)
}

// informed passes on the informational heads that have waited. It is false when the client is gone.
func (x *Exchange) informed() bool {
	for _, i := range x.informs {
		if x.Client.Inform(i.status, i.fields) != nil {
			x.lost()
			return false
		}
		x.waited()
	}
	return true
}

func (x *Exchange) bodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified || x.headOnly
}

// lost ends an attempt whose client went away: that proves nothing of the peer.
func (x *Exchange) lost() {
	x.out.Cause = "client_gone"
	x.waited()
	x.endTry(0)
	x.endPass(balance.Undone)
	x.Client.Abort()
}

func (x *Exchange) trailer(fields, head []Field) []Field {
	switch {
	case x.Hooks != nil:
		return x.Hooks.Trailer(fields)
	case len(fields) == 0:
		return nil
	}
	return trailers(fields, optionsOf(head).pass)
}

var errUnasked = errors.New("the backend changed protocols without being asked")

// tunnel passes bytes both ways after 101 until either side ends. The attempt is open as long as the tunnel.
func (x *Exchange) tunnel(head, fields []Field) {
	proto := upgradeOf(head)
	if proto == nil || !hasToken(upgradeOf(x.Request.Fields), proto) {
		x.noTunnel(balance.Broken, &Error{Class: OnInvalidHeader, Err: errUnasked})
		return
	}
	back, err := x.backend.Tunnel()
	if err != nil {
		result := balance.Broken
		if classOf(err) == ClientBody {
			result = balance.Undone
		}
		x.noTunnel(result, err)
		return
	}
	defer back.Close()
	fields = append(fields[:len(fields):len(fields)], Field{nameConnection, nameUpgrade}, Field{nameUpgrade, proto})
	if x.Client.Head(http.StatusSwitchingProtocols, fields, 0) != nil {
		x.lost()
		return
	}
	front, err := x.Client.Tunnel()
	if errors.Is(err, ErrNoTunnel) {
		x.noTunnel(balance.Undone, &Error{Class: ClientBody, Err: err})
		return
	}
	if err != nil {
		x.lost()
		return
	}
	x.out.Status = http.StatusSwitchingProtocols
	if isWebSocket(proto) {
		x.out.Bytes = webSocket(front, back)
	} else {
		x.out.Bytes = bothWays(front, back)
	}
	x.waited()
	if try := x.try; try != nil {
		try.Length = x.out.Bytes
	}
	x.succeed()
}

// noTunnel answers in place of a change of protocols that can't be.
func (x *Exchange) noTunnel(result balance.Result, err error) {
	x.out.Answered, x.out.Err, x.cause = false, err, classOf(err)
	x.waited()
	x.endTry(http.StatusBadGateway)
	x.tellFailed(x.cause)
	x.endPass(result)
	x.fail(http.StatusBadGateway)
}
