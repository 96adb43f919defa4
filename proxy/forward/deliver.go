package forward

import (
	"errors"
	"net/http"

	"github.com/upstrand/upstrand/proxy/balance"
)

// answer is the head of a backend's answer.
type answer struct {
	status int
	fields []Field
	held   []info // informational heads that wait until it is sure that this attempt stays
}

type info struct {
	status int
	fields []Field
}

// maxInforms bounds the informational heads of one attempt.
const maxInforms = 16

var errTooManyInforms = errors.New("too many informational answers")

// readHead reads up to the final head. Informational ones go to the client at once when no other attempt can follow;
// else they wait, since nothing of an attempt that is left may reach the client.
func (x *Exchange) readHead(b Backend, last bool, a *answer) error {
	for range maxInforms {
		status, fields, err := b.Head()
		if err != nil {
			return err
		}
		if status >= 200 || status == http.StatusSwitchingProtocols || status == Headless {
			a.status, a.fields = status, fields
			return nil
		}
		fields = endToEnd(nil, fields)
		if !last {
			a.held = append(a.held, info{status, fields})
			continue
		}
		if err := x.Client.Inform(status, fields); err != nil {
			return &Error{Class: ClientBody, Err: err}
		}
	}
	return &Error{Class: OnInvalidHeader, Err: errTooManyInforms}
}

// deliver passes the answer on and ends the attempt at the last byte read.
func (x *Exchange) deliver(b Backend, pass *balance.Pass, a *answer) {
	fields, ok := x.head(pass, a)
	if !ok {
		x.intercept(b, pass, a)
		return
	}
	x.out.Answered = true
	for _, i := range a.held {
		if x.Client.Inform(i.status, i.fields) != nil {
			x.lost(b, pass)
			return
		}
		x.waited()
	}
	if a.status == http.StatusSwitchingProtocols {
		x.tunnel(b, pass, a, fields)
		return
	}
	x.out.Status = a.status
	length := lengthOf(a.fields)
	if x.bodiless(a.status) {
		x.succeed(b, pass)
		if x.Client.Head(a.status, fields, length) != nil || x.Client.End(nil) != nil {
			x.out.Cause = "client_gone"
		}
		return
	}
	if length < 0 {
		x.cork(b)
	}
	if x.Client.Head(a.status, fields, length) != nil {
		x.lost(b, pass)
		return
	}
	x.copyBody(b, pass, a.fields, length)
}

func (x *Exchange) bodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified || string(x.Request.Method) == http.MethodHead
}

// lost ends an attempt whose client went away: that proves nothing of the peer.
func (x *Exchange) lost(b Backend, pass *balance.Pass) {
	x.out.Cause = "client_gone"
	x.waited()
	x.endTry(b, 0)
	x.endPass(pass, balance.Undone)
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
func (x *Exchange) tunnel(b Backend, pass *balance.Pass, a *answer, fields []Field) {
	proto := upgradeOf(a.fields)
	if proto == nil || !hasToken(upgradeOf(x.Request.Fields), proto) {
		x.noTunnel(b, pass, balance.Broken, &Error{Class: OnInvalidHeader, Err: errUnasked})
		return
	}
	back, err := b.Tunnel()
	if err != nil {
		result := balance.Broken
		if classOf(err) == ClientBody {
			result = balance.Undone
		}
		x.noTunnel(b, pass, result, err)
		return
	}
	defer back.Close()
	fields = append(fields[:len(fields):len(fields)], Field{nameConnection, nameUpgrade}, Field{nameUpgrade, proto})
	if x.Client.Head(a.status, fields, 0) != nil {
		x.lost(b, pass)
		return
	}
	front, err := x.Client.Tunnel()
	if errors.Is(err, ErrNoTunnel) {
		x.noTunnel(b, pass, balance.Undone, &Error{Class: ClientBody, Err: err})
		return
	}
	if err != nil {
		x.lost(b, pass)
		return
	}
	x.out.Status = a.status
	if isWebSocket(proto) {
		x.out.Bytes = webSocket(front, back)
	} else {
		x.out.Bytes = bothWays(front, back)
	}
	x.waited()
	if try := x.last(); try != nil {
		try.Length = x.out.Bytes
	}
	x.succeed(b, pass)
}

// noTunnel answers in place of a change of protocols that can't be.
func (x *Exchange) noTunnel(b Backend, pass *balance.Pass, result balance.Result, err error) {
	x.out.Answered, x.out.Err, x.cause = false, err, classOf(err)
	x.waited()
	x.endTry(b, http.StatusBadGateway)
	x.tellFailed(x.cause)
	x.endPass(pass, result)
	x.fail(http.StatusBadGateway)
}
