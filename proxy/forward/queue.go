package forward

import (
	"context"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// pick is the next peer of a pass, waited for in the upstream's queue when all are full and there is one.
func (x *Exchange) pick(ctx context.Context) (*balance.Peer, balance.Reason) {
	peer, why := x.pass.PickAt(x.moment())
	if why != balance.Full || !x.group.Queues() {
		return peer, why
	}
	return x.queue(ctx)
}

// queue waits for a peer.
func (x *Exchange) queue(ctx context.Context) (*balance.Peer, balance.Reason) {
	began := x.moment()
	peer, why := x.pass.Wait(ctx)
	x.waited()
	took := time.Duration(x.moment() - began)
	x.queued += took
	switch {
	case peer != nil || why != balance.Full:
		x.crowd = ""
	case 2*took < x.group.QueueTimeout(): // at once, that is
		x.crowd = FailedQueue
	default:
		x.crowd = FailedWait
	}
	return peer, why
}

// crowded is the cause of having nobody, which may be a queue's.
func (x *Exchange) crowded(otherwise string) string {
	if x.crowd != "" && x.out.Reason == balance.Full {
		return x.crowd
	}
	return otherwise
}

// gone ends a request whose client left while it waited.
func (x *Exchange) gone() {
	if x.Walk != nil {
		x.Walk.Leave(x.moment())
	}
	x.out.Answered, x.out.Cause = true, "client_gone"
	x.Client.Abort()
}
