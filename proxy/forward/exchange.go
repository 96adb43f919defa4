package forward

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// Exchange is one request on its way through the upstreams of its route. It belongs to one goroutine.
type Exchange struct {
	Name    string   // what the route leads to, for answers of our own
	Request *Request // as it goes to backends
	Client  Client
	Stops   []*balance.Group // the walk: upstreams in the order in which they are tried
	Policy  *Policy
	Budget  *Budget // nil: no limit
	Opener  Opener
	Clock   balance.Clock
	// Renew gives the stops of the same route in the routing table of now; nil when that is still the one the request
	// began with, or when the route is gone. It is asked when the walk found nobody left.
	Renew func() []*balance.Group
	// RetryAfter is told to clients when there is no peer at all.
	RetryAfter time.Duration

	at      int   // index in Stops
	first   int64 // when the first attempt began, 0 before
	held    bool  // a slot of Budget
	renewed bool
	last    Class          // of the last failed attempt
	none    balance.Reason // the most telling of why a stop gave nobody
	out     Outcome
}

// Outcome is what became of a request, for metrics and the access log.
type Outcome struct {
	Status   int           // answer's status; 0: none was given
	Bytes    int64         // of the answer's body
	Upstream string        // last one tried
	Peer     *balance.Peer // last one tried, nil: none
	Attempts int
	Cause    string         // empty when a backend's answer went through whole; else a bounded code
	NoPeer   bool           // the walk met nobody to send to
	Reason   balance.Reason // the most telling of why nobody could be given, when the last pick found none
	Err      error          // of the last attempt, nil when it answered
}

// Retries is the number of attempts beyond the first.
func (o *Outcome) Retries() int { return max(o.Attempts-1, 0) }

// Run serves the request and gives its answer. Ctx ends when the client is gone.
func (x *Exchange) Run(ctx context.Context) Outcome {
	x.Budget.Request()
	defer x.giveBack()
	for {
		for x.at < len(x.Stops) {
			group := x.Stops[x.at]
			x.at++
			if x.through(ctx, group) {
				return x.out
			}
		}
		if !x.renew() {
			break
		}
	}
	x.nobody()
	return x.out
}

// renew lets a request go on in the table of now when its own had nobody left to give: all that it knew may have been
// replaced since it began.
func (x *Exchange) renew() bool {
	if x.renewed || x.Renew == nil {
		return false
	}
	stops := x.Renew()
	if stops == nil {
		return false
	}
	x.renewed = true
	x.Stops, x.at, x.none = stops, 0, balance.Eligible
	return true
}

// through makes one complete pass through an upstream. It reports whether the client has its answer; if not, the walk
// goes on.
func (x *Exchange) through(ctx context.Context, group *balance.Group) bool {
	x.out.Upstream = group.Name()
	pass := group.Begin(x.Policy.Tries)
	for {
		peer, why := pass.Pick()
		if peer == nil {
			x.none = max(x.none, why)
			x.out.Reason = x.none
			return false
		}
		x.out.Reason = balance.Eligible
		switch d := x.attempt(ctx, &pass, peer); d.Action {
		case NextPeer:
		case NextStop:
			return false
		case Fail:
			x.fail(d.Status)
			return true
		default:
			return true
		}
	}
}

// attempt sends the request to one peer, twice at most: the second time when the first was provably never read. When it
// returns, the attempt has ended for the peer, and unless another one follows the client has its answer.
func (x *Exchange) attempt(ctx context.Context, pass *balance.Pass, peer *balance.Peer) Decision {
	if x.first == 0 {
		x.first = x.Clock()
	}
	x.out.Peer = peer
	x.out.Attempts++
	for redone := false; ; redone = true {
		d := x.once(ctx, pass, peer, redone)
		if d.Action != SamePeer {
			return d
		}
	}
}

func (x *Exchange) once(ctx context.Context, pass *balance.Pass, peer *balance.Peer, redone bool) Decision {
	b := x.Opener.Open(ctx, peer, redone)
	defer b.Close()
	var (
		a     answer
		class Class
	)
	err := b.Send(x.Request)
	if err == nil {
		err = x.readHead(b, pass.Tries() <= 1 && !x.more(), &a)
	}
	if err == nil {
		class = OfStatus(a.status) & x.Policy.Next
	} else {
		class = classOf(err)
	}
	x.out.Err = err
	d := x.decide(ctx, b, pass, Attempt{
		Class: class, Method: x.Request.Method, Sent: b.Sent(), ClientGone: ctx.Err() != nil,
		Replayable: x.Request.Body == nil || x.Request.Body.Rewindable(),
		Redone:     redone, Tries: pass.Tries(), More: x.more(), Elapsed: time.Duration(x.Clock() - x.first),
	})
	d = x.rewind(b, d)
	switch d.Action {
	case Deliver:
		x.giveBack() // the answer is there; how long its body takes is no matter of retries
		x.deliver(b, pass, &a)
	case SamePeer:
	case Drop:
		x.out.Cause = "client_gone"
		pass.End(d.Result)
		x.Client.Abort()
	default:
		x.last = class
		if class == PeerGone {
			x.out.Attempts--
		}
		pass.End(d.Result)
	}
	return d
}

// decide asks Decide, and the budget when that wants another try. A failed attempt ends before, since the budget may
// have to be waited for.
func (x *Exchange) decide(ctx context.Context, b Backend, pass *balance.Pass, a Attempt) Decision {
	d := Decide(a, x.Policy)
	if a.Class == PeerGone || d.Action != NextPeer && d.Action != NextStop {
		return d
	}
	if a.Class&failures != 0 {
		pass.End(d.Result)
		b.Close()
	}
	if x.takeBudget(ctx) {
		return d
	}
	a.NoBudget = true
	a.ClientGone = ctx.Err() != nil
	return Decide(a, x.Policy)
}

// rewind makes the request's body ready for the attempt that follows.
func (x *Exchange) rewind(b Backend, d Decision) Decision {
	if x.Request.Body == nil || d.Action != SamePeer && d.Action != NextPeer && d.Action != NextStop {
		return d
	}
	b.Close()
	if x.Request.Body.Rewind() != nil {
		return Decision{Action: Fail, Result: d.Result, Status: http.StatusBadGateway}
	}
	return d
}

func (x *Exchange) takeBudget(ctx context.Context) bool {
	if x.held {
		return true
	}
	ok, held := x.Budget.Take(ctx)
	x.held = held
	return ok
}

func (x *Exchange) giveBack() {
	if x.held {
		x.held = false
		x.Budget.Release()
	}
}

// more reports whether the walk has another upstream.
func (x *Exchange) more() bool { return x.at < len(x.Stops) }

func classOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return OnError
}
