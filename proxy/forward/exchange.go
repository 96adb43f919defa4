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
//
// What is used when an answer is there stands together in the middle: between a request and its answer other requests have the
// processor, and the less of one that must be fetched again the better.
type Exchange struct {
	Name   string         // what the route leads to, for answers of our own
	Group  *balance.Group // the upstream; not looked at when there is a Walk
	Budget *Budget        // nil: no limit
	Opener Opener
	// Renew gives the upstream or the walk of the same route in the routing table of now; false when that is still the one
	// it was asked for last, or the request began with, or when the route is gone. It is asked when nobody was left. Nil: there is no other table.
	Renew func() (*balance.Group, Walk, bool)
	// RetryAfter is told to clients when there is no peer at all.
	RetryAfter time.Duration
	// EachStop: Policy.Within counts from the first attempt of each stop, as in nginx; else from that of the request.
	EachStop bool

	renewed   int
	uncounted int            // attempts that cost no try, in this stop
	first     int64          // when the first attempt began, 0 before
	queued    time.Duration  // how long the attempt that follows has waited for a peer
	crowd     string         // why the queue of an upstream gave nobody; empty: it was not that
	none      balance.Reason // the most telling of why a stop gave nobody
	cause     Class          // of the last failed attempt
	sent      bool           // something of the request left us in the last attempt of this stop

	Request *Request // as it goes to backends
	Trail   *Trail   // gets the tries appended; nil: nobody asks
	// Failures is told of what went wrong with them; nil: nobody is.
	Failures Failures

	informs  []inform // informational heads that wait until it is sure that the attempt at hand stays
	held     bool     // a slot of Budget
	settled  bool     // Walk was told what this stop came to
	headOnly bool     // the request is one of HEAD
	// At is a reading of Clock that was made since anything was last waited for; 0: there is none. After Run it is the last one,
	// if nothing was waited for since.
	At      int64
	try     *Try // of Trail, that is going on; nil: none is recorded
	Policy  *Policy
	Client  Client
	Hooks   Hooks // nil: the exchange makes its own answers
	Walk    Walk  // through an upstrand; nil: there is none
	Span    Span  // is told of each try, where there is a Trail; nil: nobody follows
	Clock   balance.Clock
	group   *balance.Group // of the stop that is going on
	backend Backend        // of the attempt that is open; nil: none is
	out     Outcome
	final   Releaser     // the last attempt, whose memory is still in use
	pass    balance.Pass // through group
	fields  []Field      // memory for the head of an answer
}

// Clear makes the exchange ready for another request; its memory is used again. What a panic left open is ended. One that is
// clear already costs nothing.
func (x *Exchange) Clear() {
	if x.Request == nil {
		return
	}
	x.giveBack()
	x.pass.End(balance.Undone) // does nothing when none is open
	if x.backend != nil {
		x.finish()
	}
	x.Release()
	fields := emptied(x.fields)
	*x = Exchange{}
	x.fields = fields
}

// Outcome is what Run gave. It is valid until Clear.
func (x *Exchange) Outcome() *Outcome { return &x.out }

// Outcome is what became of a request, for metrics and the access log.
type Outcome struct {
	Answered bool // the client has its answer, or is gone
	// Intercepted: a backend answered with Status, and Hooks kept it back.
	Intercepted bool
	NoPeer      bool           // the walk met nobody to send to
	Reason      balance.Reason // the most telling of why nobody could be given, when the last pick found none
	Status      int            // answer's status; 0: none was given
	Bytes       int64          // of the answer's body
	Err         error          // of the last attempt, nil when it answered
	Cause       string         // empty when a backend's answer went through whole; else a bounded code
	Attempts    int
	Upstream    string        // last one tried
	Peer        *balance.Peer // last one tried, nil: none
}

// Retries is the number of attempts beyond the first.
func (o *Outcome) Retries() int { return max(o.Attempts-1, 0) }

// Run serves the request, gives its answer, and what became of it, which is valid until Clear. Ctx ends when the client is
// gone. Clear must be called even when Run panics.
func (x *Exchange) Run(ctx context.Context) *Outcome {
	if x.Budget != nil {
		x.Budget.Request(x.moment())
	}
	for !x.through(ctx, x.enterStop()) {
	}
	x.giveBack()
	if x.out.Answered {
		x.waited() // for the client
	}
	return &x.out
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
	x.enter(group)
	var peer *balance.Peer
	for redone := false; ; {
		if !redone {
			var why balance.Reason
			if peer, why = x.pick(ctx); peer == nil {
				return x.noPeer(ctx, why)
			}
			x.begin(peer)
		}
		d := x.attempt(ctx, peer, redone)
		switch redone = d.Action == SamePeer; d.Action {
		case SamePeer, NextPeer:
		case NextStop:
			return false
		case Fail:
			return x.failed(ctx, d.Status)
		default:
			return true
		}
	}
}

// noPeer ends a stop whose upstream gave nobody. It reports whether the client has its answer.
func (x *Exchange) noPeer(ctx context.Context, why balance.Reason) bool {
	if x.queued > 0 && ctx.Err() != nil {
		x.gone()
		return true
	}
	x.none = max(x.none, why)
	x.out.Reason = x.none
	x.beginTry(nil)
	return x.empty(ctx)
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

// begin notes that a peer is tried.
func (x *Exchange) begin(peer *balance.Peer) {
	x.out.Reason = balance.Eligible
	if x.first == 0 {
		x.first = x.moment()
	}
	x.out.Peer = peer
	x.out.Attempts++
	x.beginTry(peer)
}

// attempt sends the request to one peer and does what follows from its end; redone: the one before was provably never read.
// When it returns, the attempt has ended for the peer, and unless another one follows the client has its answer. It has no more
// in it than an answer that goes to the client at once needs: its frame lies on the stack while the peer is waited for.
func (x *Exchange) attempt(ctx context.Context, peer *balance.Peer, redone bool) Decision {
	x.backend = x.Opener.Open(ctx, peer, redone)
	x.headOnly = string(x.Request.Method) == http.MethodHead
	status, fields, err := 0, []Field(nil), x.backend.Send(x.Request)
	if err == nil {
		if status, fields, err = x.backend.Head(); err == nil && informational(status) {
			status, fields, err = x.inform(status, fields)
		}
	}
	x.waited()
	x.out.Err = err
	if err == nil {
		x.headTry(status)
	}
	d := Decision{Action: Deliver, Result: balance.Succeeded}
	if x.class(status) != 0 || ctx.Err() != nil {
		d = x.judge(ctx, status, redone)
	}
	if d.Action == Deliver && x.Walk != nil {
		d = x.answered(ctx, status, d)
	}
	if d.Action == Deliver {
		x.giveBack() // the answer is there; how long its body takes is no matter of retries
		x.deliver(status, fields)
	} else {
		d = x.leave(status, fields, d)
	}
	x.finish()
	return d
}

// judge says what follows an attempt that failed, whose status may let another one follow, or whose client is gone.
func (x *Exchange) judge(ctx context.Context, status int, redone bool) Decision {
	sent := x.backend.Sent()
	x.sent = x.sent || sent.Sent && !sent.Unread
	d := x.decide(ctx, Attempt{
		Class: x.class(status), Method: x.Request.Method, Sent: sent, ClientGone: ctx.Err() != nil,
		Replayable: x.Request.Body == nil || x.Request.Body.Rewindable(),
		Redone:     redone, Uncounted: x.uncounted, Tries: x.pass.Tries(), Elapsed: time.Duration(x.moment() - x.first),
	})
	return x.rewind(d)
}

// class is what went wrong with the attempt that has just been made; 0: nothing. Status is its answer's, if it has one.
func (x *Exchange) class(status int) Class {
	if x.out.Err != nil {
		return classOf(x.out.Err)
	}
	return OfStatus(status) & x.Policy.Next
}

// finish closes an attempt. With Hooks the last one keeps its memory: somebody may still ask for fields of the answer.
func (x *Exchange) finish() {
	b := x.backend
	x.backend = nil
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

// leave ends an attempt whose answer, if there is one, does not go to the client. It gives the decision as it is then.
func (x *Exchange) leave(status int, fields []Field, d Decision) Decision {
	x.informs = nil
	switch d.Action {
	case NextStop:
		x.passOver(status, fields)
	case SamePeer:
	case Drop:
		if x.Walk != nil {
			x.Walk.Leave(x.moment())
		}
		x.out.Answered, x.out.Cause = true, "client_gone"
		x.endTry(0)
		x.endPass(d.Result)
		x.Client.Abort()
	default:
		d.Status = x.fault(x.class(status), d)
	}
	return d
}

// fault ends an attempt that failed, or whose answer is left for another one in the same upstream. It gives the status that
// the client is told if there is none.
func (x *Exchange) fault(class Class, d Decision) int {
	x.cause = class
	switch {
	case class == PeerGone:
		x.out.Attempts--
		x.dropTry()
	case class&failures != 0:
		x.endTry(statusOf(class))
	default:
		x.endTry(0)
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
	x.endPass(d.Result)
	return d.Status
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
func (x *Exchange) decide(ctx context.Context, a Attempt) Decision {
	d := Decide(a, x.Policy)
	if a.Class == PeerGone || d.Action != NextPeer {
		return d
	}
	if a.Class&failures != 0 {
		x.endTry(statusOf(a.Class))
		x.endPass(d.Result)
		x.backend.Close()
	}
	if x.takeBudget(ctx) {
		return d
	}
	a.NoBudget = true
	a.ClientGone = ctx.Err() != nil
	return Decide(a, x.Policy)
}

// rewind makes the request's body ready for the attempt that follows.
func (x *Exchange) rewind(d Decision) Decision {
	if x.Request.Body == nil || d.Action != SamePeer && d.Action != NextPeer {
		return d
	}
	x.backend.Close()
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
