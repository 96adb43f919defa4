package forward

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// Exchange is one request on its way through the upstreams of its route. It belongs to one goroutine.
type Exchange struct {
	Name    string   // what the route leads to, for answers of our own
	Request *Request // as it goes to backends
	Client  Client
	Group   *balance.Group // the upstream; not looked at when there is a Walk
	Walk    Walk           // through an upstrand; nil: there is none
	Policy  *Policy
	Budget  *Budget // nil: no limit
	Opener  Opener
	Clock   balance.Clock
	// EachStop: Policy.Within counts from the first attempt of each stop, as in nginx; else from that of the request.
	EachStop bool
	// Renew gives the upstream or the walk of the same route in the routing table of now; false when that is still the one
	// it was asked for last, or the request began with, or when the route is gone. It is asked when nobody was left. Nil: there is no other table.
	Renew func() (*balance.Group, Walk, bool)
	// RetryAfter is told to clients when there is no peer at all.
	RetryAfter time.Duration
	Hooks      Hooks    // nil: the exchange makes its own answers
	Trail      *Trail   // gets the tries appended; nil: nobody asks
	Span       Span     // is told of each of them, where there is a Trail; nil: nobody follows
	Failures   Failures // is told of what went wrong with them; nil: nobody is
	// At is a reading of Clock that was made since anything was last waited for; 0: there is none. After Run it is the last one,
	// if nothing was waited for since.
	At int64

	group     *balance.Group // of the stop that is going on
	first     int64          // when the first attempt began, 0 before
	held      bool           // a slot of Budget
	queued    time.Duration  // how long the attempt that follows has waited for a peer
	renewed   int
	uncounted int            // attempts that cost no try, in this stop
	sent      bool           // something of the request left us in the last attempt of this stop
	settled   bool           // Walk was told what this stop came to
	cause     Class          // of the last failed attempt
	crowd     string         // why the queue of an upstream gave nobody; empty: it was not that
	final     Releaser       // the last attempt, whose memory is still in use
	none      balance.Reason // the most telling of why a stop gave nobody
	fields    []Field        // memory for the head of an answer
	out       Outcome
}

// Clear makes the exchange ready for another request; its memory is used again.
func (x *Exchange) Clear() {
	*x = Exchange{fields: emptied(x.fields)}
}

// Outcome is what Run gave. It is valid until Clear.
func (x *Exchange) Outcome() *Outcome { return &x.out }

// Outcome is what became of a request, for metrics and the access log.
type Outcome struct {
	Answered bool          // the client has its answer, or is gone
	Status   int           // answer's status; 0: none was given
	Bytes    int64         // of the answer's body
	Upstream string        // last one tried
	Peer     *balance.Peer // last one tried, nil: none
	Attempts int
	Cause    string         // empty when a backend's answer went through whole; else a bounded code
	NoPeer   bool           // the walk met nobody to send to
	Reason   balance.Reason // the most telling of why nobody could be given, when the last pick found none
	Err      error          // of the last attempt, nil when it answered
	// Intercepted: a backend answered with Status, and Hooks kept it back.
	Intercepted bool
}

// Retries is the number of attempts beyond the first.
func (o *Outcome) Retries() int { return max(o.Attempts-1, 0) }

// Run serves the request and gives its answer. Ctx ends when the client is gone.
func (x *Exchange) Run(ctx context.Context) Outcome {
	if x.Budget != nil {
		x.Budget.Request(x.moment())
	}
	defer x.giveBack()
	for !x.through(ctx, x.enterStop()) {
	}
	if x.out.Answered {
		x.waited() // for the client
	}
	return x.out
}

// maxRenewed bounds how often one request goes on in a newer table.
const maxRenewed = 8

// renew lets a request go on in the table of now when its own had nobody left to give: all that it knew may have been
// replaced since it began.
func (x *Exchange) renew() bool {
	if x.renewed == maxRenewed || x.Renew == nil {
		return false
	}
	group, walk, ok := x.Renew()
	if !ok {
		return false
	}
	if try := x.last(); try != nil && try.Peer == nil {
		x.dropTry() // somebody is left after all
	}
	x.renewed++
	x.Group, x.Walk, x.none = group, walk, balance.Eligible
	return true
}

// through makes one complete pass through an upstream. It reports whether the client has its answer; if not, another
// stop follows.
func (x *Exchange) through(ctx context.Context, group *balance.Group) bool {
	x.group = group
	if group == nil {
		return x.empty(ctx)
	}
	x.out.Upstream = group.Name()
	pass := x.enter(group)
	for {
		peer, why := x.pick(ctx, &pass)
		if peer == nil {
			if x.queued > 0 && ctx.Err() != nil {
				x.gone()
				return true
			}
			x.none = max(x.none, why)
			x.out.Reason = x.none
			x.beginTry(nil)
			return x.empty(ctx)
		}
		x.out.Reason = balance.Eligible
		switch d := x.attempt(ctx, &pass, peer); d.Action {
		case NextPeer:
		case NextStop:
			return false
		case Fail:
			return x.failed(ctx, d.Status)
		default:
			return true
		}
	}
}

// empty ends a stop that has nobody left to give. It reports whether the client has its answer.
func (x *Exchange) empty(ctx context.Context) bool {
	if x.unanswered(ctx, http.StatusBadGateway, true) || x.renew() {
		return false
	}
	x.nobody()
	return true
}

// failed ends a stop whose last attempt must not be followed by another one there.
func (x *Exchange) failed(ctx context.Context, status int) bool {
	switch {
	case x.Walk == nil:
	case x.cause == ClientBody, x.cause == BadRequest, x.cause == NoSocket: // no upstream's doing
		x.Walk.Leave(x.moment())
	case x.unanswered(ctx, status, false):
		return false
	}
	x.fail(status)
	return true
}

// attempt sends the request to one peer, twice at most: the second time when the first was provably never read. When it
// returns, the attempt has ended for the peer, and unless another one follows the client has its answer.
func (x *Exchange) attempt(ctx context.Context, pass *balance.Pass, peer *balance.Peer) Decision {
	if x.first == 0 {
		x.first = x.moment()
	}
	x.out.Peer = peer
	x.out.Attempts++
	x.beginTry(peer)
	for redone := false; ; redone = true {
		d := x.once(ctx, pass, peer, redone)
		if d.Action != SamePeer {
			return d
		}
	}
}

func (x *Exchange) once(ctx context.Context, pass *balance.Pass, peer *balance.Peer, redone bool) Decision {
	b := x.Opener.Open(ctx, peer, redone)
	defer x.finish(b)
	var (
		a     answer
		class Class
	)
	err := b.Send(x.Request)
	if err == nil {
		err = x.readHead(b, pass.Tries() <= 1 && !x.more(), &a)
	}
	x.waited()
	sent := b.Sent()
	if err == nil {
		x.headTry(&sent, a.status)
		class = OfStatus(a.status) & x.Policy.Next
	} else {
		class = classOf(err)
	}
	x.out.Err = err
	x.sent = x.sent || sent.Sent && !sent.Unread
	gone := ctx.Err() != nil
	d := Decision{Action: Deliver, Result: balance.Succeeded}
	if class != 0 || gone {
		d = x.decide(ctx, b, pass, Attempt{
			Class: class, Method: x.Request.Method, Sent: sent, ClientGone: gone,
			Replayable: x.Request.Body == nil || x.Request.Body.Rewindable(),
			Redone:     redone, Uncounted: x.uncounted, Tries: pass.Tries(), Elapsed: time.Duration(x.moment() - x.first),
		})
	}
	d = x.rewind(b, d)
	if d.Action == Deliver {
		d = x.answered(ctx, b, &a, d)
	}
	switch d.Action {
	case Deliver:
		x.giveBack() // the answer is there; how long its body takes is no matter of retries
		x.deliver(b, pass, &a)
	case NextStop:
		x.passOver(b, pass, &a)
	case SamePeer:
	case Drop:
		if x.Walk != nil {
			x.Walk.Leave(x.moment())
		}
		x.out.Answered, x.out.Cause = true, "client_gone"
		x.endTry(b, 0)
		x.endPass(pass, d.Result)
		x.Client.Abort()
	default:
		x.leave(b, pass, class, &d)
	}
	return d
}

// finish closes an attempt. With Hooks the last one keeps its memory: somebody may still ask for fields of the answer.
func (x *Exchange) finish(b Backend) {
	b.Close()
	x.Release()
	x.final, _ = b.(Releaser)
	if x.Hooks == nil {
		x.Release()
	}
}

// Release gives back the memory of the last attempt. It is called when nothing that Hooks were shown is needed any more;
// without Hooks there is no need to.
func (x *Exchange) Release() {
	if x.final != nil {
		x.final.Release()
		x.final = nil
	}
}

// Take hands the last attempt's memory over to be released by whoever took it; nil: there is none.
func (x *Exchange) Take() Releaser {
	r := x.final
	x.final = nil
	return r
}

// leave ends an attempt whose answer, if there is one, does not go to the client.
func (x *Exchange) leave(b Backend, pass *balance.Pass, class Class, d *Decision) {
	x.cause = class
	switch {
	case class == PeerGone:
		x.out.Attempts--
		x.dropTry()
	case class&failures != 0:
		x.endTry(b, statusOf(class))
	default:
		x.endTry(b, 0)
	}
	if d.Result == balance.Undone {
		x.uncounted++
	}
	var silent net.Error
	switch {
	case errors.Is(x.out.Err, ErrTooLarge):
		d.Status = http.StatusRequestEntityTooLarge
	case class == ClientBody && errors.As(x.out.Err, &silent) && silent.Timeout():
		d.Status = http.StatusRequestTimeout
	}
	if d.Result != balance.Undone || d.Action == Fail {
		x.tellFailed(class)
	}
	x.endPass(pass, d.Result)
}

// statusOf is what a failed attempt counts as where statuses are listed.
func statusOf(class Class) int {
	if class == OnTimeout {
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// decide asks Decide, and the budget when that wants another try. A failed attempt ends before, since the budget may
// have to be waited for.
func (x *Exchange) decide(ctx context.Context, b Backend, pass *balance.Pass, a Attempt) Decision {
	d := Decide(a, x.Policy)
	if a.Class == PeerGone || d.Action != NextPeer {
		return d
	}
	if a.Class&failures != 0 {
		x.endTry(b, statusOf(a.Class))
		x.endPass(pass, d.Result)
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
	if x.Request.Body == nil || d.Action != SamePeer && d.Action != NextPeer {
		return d
	}
	b.Close()
	if x.Request.Body.Rewind() != nil {
		return Decision{Action: Fail, Result: d.Result, Status: http.StatusBadGateway}
	}
	return d
}

func (x *Exchange) takeBudget(ctx context.Context) bool {
	x.waited() // for the end of the attempt before, too
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

func classOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return OnError
}
