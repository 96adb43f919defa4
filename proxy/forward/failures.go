package forward

import "github.com/upstrand/upstrand/proxy/balance"

// Failures is told of attempts that gave no answer, or half of one, as they end. It is called from the request's goroutine
// and has to be quick; what it is given must not be kept.
type Failures interface {
	// Failed tells of one. Peer is nil when the upstream had nobody to give.
	Failed(upstream string, peer *balance.Peer, class string, err error)
}

// The words for failures that are no Class.
const (
	FailedCut    = "cut"     // the answer ended too early
	FailedNoPeer = "no_peer" // nobody could be given, and no attempt was made
	FailedNoLive = "no_live" // nobody was left after failed attempts
	FailedQueue  = "queue_full"
	FailedWait   = "queue_timeout"
)

// tellFailed tells of the attempt that just ended. What the client did, and a status that lets another attempt follow, are
// no failures of a backend.
func (x *Exchange) tellFailed(class Class) {
	if x.Failures != nil && x.out.Err != nil && class != ClientBody {
		x.Failures.Failed(x.out.Upstream, x.out.Peer, class.String(), x.out.Err)
	}
}

// cutShort ends an answer that had begun, and whose rest won't come.
func (x *Exchange) cutShort(err error) {
	x.out.Cause, x.out.Err = FailedCut, err
	if x.Failures != nil {
		x.Failures.Failed(x.out.Upstream, x.out.Peer, FailedCut, err)
	}
	x.Client.Abort()
}

// tellNobody tells that nobody could be given.
func (x *Exchange) tellNobody() {
	if x.Failures != nil {
		x.Failures.Failed(x.out.Upstream, nil, x.out.Cause, reasonError(x.out.Reason))
	}
}

// reasonError is why nobody could be given, as an error.
type reasonError balance.Reason

// Error is error's.
func (r reasonError) Error() string { return whyNone(balance.Reason(r)) }
