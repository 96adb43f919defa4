package forward

import (
	"context"
	"net/http"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/upstrand"
)

// Walk leads a request through the upstreams of an upstrand. *upstrand.Walk is one. Its methods are called from Run's
// goroutine, each After behind an Enter.
type Walk interface {
	// Enter begins the stop at hand and gives its upstream; nil: it has nobody to give. From the second stop on the request
	// may be made ready for it.
	Enter(now int64) *balance.Group
	// After says whether another stop follows the one that was entered, given what it came to.
	After(r upstrand.Result, now int64) bool
	// More tells whether another stop may follow, before the result of this one is known.
	More() bool
	// Stay makes the result final to which After said that another stop follows.
	Stay(why upstrand.Final, now int64)
	// Leave ends the walk without a result: the client is gone.
	Leave(now int64)
}

// enterStop is the upstream of the next stop.
func (x *Exchange) enterStop() *balance.Group {
	if x.Walk == nil {
		return x.Group
	}
	if x.EachStop {
		x.first = 0
	}
	x.uncounted, x.sent, x.settled = 0, false, false
	return x.Walk.Enter(x.moment())
}

// more reports whether the walk has another upstream.
func (x *Exchange) more() bool { return x.Walk != nil && x.Walk.More() }

// follows asks whether another stop follows one with this result, and makes the request's body ready for it. It gives
// NextStop; Deliver when the result is final; Fail when it was to be left and the body could not be begun again. An attempt
// that failed has ended before, since the budget may have to be waited for; one that is open has its answer at hand.
// Free: it is no retry, nobody was asked.
func (x *Exchange) follows(ctx context.Context, r upstrand.Result, free bool) Action {
	if x.Walk == nil || x.settled {
		return Deliver
	}
	x.settled = true
	body := x.Request.Body
	r.Held = body == nil || body.Rewindable()
	if !x.Walk.After(r, x.moment()) {
		return Deliver
	}
	if !free && !x.takeBudget(ctx) {
		x.Walk.Stay(upstrand.NoBudget, x.moment())
		return Deliver
	}
	if body == nil {
		return NextStop
	}
	if x.backend != nil {
		x.backend.Close()
	}
	if body.Rewind() != nil {
		x.Walk.Stay(upstrand.BodyLost, x.moment())
		return Fail
	}
	return NextStop
}

// unanswered ends a stop that no backend answered. It reports whether another one follows.
func (x *Exchange) unanswered(ctx context.Context, status int, free bool) bool {
	return x.follows(ctx, upstrand.Result{Status: status, Own: true, Sent: x.sent}, free) == NextStop
}

// answered asks what follows an answer that the pass through its upstream ended with.
func (x *Exchange) answered(ctx context.Context, status int, d Decision) Decision {
	if status == Headless {
		status = http.StatusOK
	}
	switch x.follows(ctx, upstrand.Result{Status: status, Sent: true}, false) {
	case NextStop:
		d.Action = NextStop
	case Fail:
		d.Action, d.Status = Fail, http.StatusBadGateway
	default:
	}
	return d
}

// passOver leaves an answer that another stop follows. For the peer it is a success.
func (x *Exchange) passOver(status int, fields []Field) {
	if x.try != nil && !x.bodiless(status) {
		x.try.Length = max(lengthOf(fields), 0) // nginx reads it to its end
	}
	x.headPass(nil)
	x.backend.Close()
	x.succeed()
}
