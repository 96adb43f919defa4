package forward

import (
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// Action is what is to be done after an attempt.
type Action uint8

// The actions.
const (
	Deliver  Action = iota // pass the answer on
	Drop                   // the client is gone: end quietly
	SamePeer               // once more over a fresh connection: the peer never read the request
	NextPeer               // another attempt in the same upstream
	NextStop               // another stop of the walk: Walk's decision, not Decide's
	Fail                   // answer with Status
)

var actionNames = [...]string{"deliver", "drop", "same_peer", "next_peer", "next_stop", "fail"}

// String is a code for logs and tests.
func (a Action) String() string { return actionNames[a] }

// Attempt is all that decides what an attempt's end means.
type Attempt struct {
	Class      Class // what went wrong; 0: nothing
	Method     []byte
	Sent       Progress
	ClientGone bool
	Replayable bool          // the request can be sent again: it has no body, or all of it that was read is held
	Redone     bool          // this attempt is already the second over a fresh connection
	Uncounted  int           // attempts before that cost no try: a kept connection ended, or the peer was gone
	Tries      int           // left in this upstream, this attempt included
	Elapsed    time.Duration // since the first attempt began
	NoBudget   bool          // the retry budget is spent
}

// Decision is what follows from an Attempt.
type Decision struct {
	Action Action
	Result balance.Result // how the attempt counts for the peer
	Status int            // for Fail
}

// failures are the classes of attempts that gave no answer.
const failures = OnError | OnTimeout | OnInvalidHeader

// Decide says what a failure means, as long as nothing of an answer went to the client; one that was begun is never begun
// again, and copyBody cuts it. The order counts: the client's going is nobody's fault; what was provably not read can go again
// whatever the method; then nginx's rules of what is safe to repeat, within tries, time and budget; else the client is told.
func Decide(a Attempt, p *Policy) Decision {
	failure := a.Class&failures != 0
	switch {
	case a.ClientGone:
		return Decision{Action: Drop, Result: balance.Undone}
	case a.Class == 0:
		return Decision{Action: Deliver, Result: balance.Succeeded}
	case a.Class == PeerGone && a.Replayable && a.Uncounted < maxUncounted:
		return Decision{Action: NextPeer, Result: balance.Undone}
	case a.Class == PeerGone:
		return Decision{Action: Fail, Result: balance.Undone, Status: 502}
	case a.Class == ClientBody, a.Class == BadRequest:
		return Decision{Action: Fail, Result: balance.Undone, Status: 400}
	case a.Class == NoSocket:
		return Decision{Action: Fail, Result: balance.Undone, Status: 503}
	case failure && a.Sent.Unread && a.Replayable && !a.Redone:
		return Decision{Action: SamePeer, Result: balance.Undone}
	case a.Class == OnError && a.Sent.Kept && a.Sent.In == 0 && a.Uncounted < maxUncounted:
		return decideStale(a, p)
	case failure:
		return decideFailure(a, p)
	}
	return decideStatus(a, p)
}

// decideFailure is for errors, timeouts and invalid answers: failed attempts, listed or not.
func decideFailure(a Attempt, p *Policy) Decision {
	d := Decision{Action: Fail, Result: balance.Broken, Status: statusOf(a.Class)}
	switch {
	case !repeatable(a, p):
	case a.Tries > 1:
		d.Action, d.Status = NextPeer, 0
	}
	return d
}

// maxUncounted bounds the attempts of one request that cost no try.
const maxUncounted = 64

// decideStale is for a kept connection that ended without a byte of an answer, where it is not sure whether the request
// was read: most likely the peer had closed it as idle. That is no failure of the peer's and costs no try, but what must
// not happen twice is not repeated.
func decideStale(a Attempt, p *Policy) Decision {
	if repeatable(a, p) {
		return Decision{Action: NextPeer, Result: balance.Undone}
	}
	return Decision{Action: Fail, Result: balance.Undone, Status: 502}
}

// decideStatus is for answers with a listed status. The last try passes the answer on, as a success.
func decideStatus(a Attempt, p *Policy) Decision {
	if a.Tries <= 1 || !repeatable(a, p) {
		return Decision{Action: Deliver, Result: balance.Succeeded}
	}
	d := Decision{Action: NextPeer, Result: balance.Broken}
	if a.Class == OnHTTP403 || a.Class == OnHTTP404 {
		d.Result = balance.Succeeded
	}
	return d
}

func repeatable(a Attempt, p *Policy) bool {
	switch {
	case p.Next&a.Class == 0, !a.Replayable, a.NoBudget:
		return false
	case p.Within > 0 && a.Elapsed >= p.Within:
		return false
	case a.Sent.Sent && !p.NonIdempotent && nonIdempotent(a.Method):
		return false
	}
	return true
}

// nonIdempotent is nginx's list of methods that are not repeated once sent.
func nonIdempotent(method []byte) bool {
	switch string(method) {
	case "POST", "LOCK", "PATCH":
		return true
	}
	return false
}
