package forward

import (
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// Unknown is a time of a Try that nobody knows: it never came to it.
const Unknown = time.Duration(-1)

// Try is one attempt as logs tell it.
type Try struct {
	Upstream string
	Peer     *balance.Peer // nil: the upstream had nobody to give
	Queue    time.Duration // before it, in the upstream's queue; 0: it met none
	began    int64

	// What follows is known when the answer is there.

	Status   int           // of the answer; 502 or 504 when there was none; 0 when the client left before
	Connect  time.Duration // until there was a connection; Unknown: there never was
	Header   time.Duration // until the head of the answer; Unknown: none came
	Response time.Duration // until the last byte of the answer, or the failure
	Length   int64         // bytes of the answer's body
	Out, In  int64         // bytes sent and received on the wire
}

// Trail is the tries of a request, in order. A Try without an upstream separates those of one internal redirect from
// those of the next. It belongs to the goroutine of the request.
type Trail []Try

// Divide puts a separator behind the tries so far, if there are any.
func (t *Trail) Divide() {
	if len(*t) > 0 {
		*t = append(*t, Try{})
	}
}

// add appends a try of which nothing is known, in memory that may have been another one's.
func (t *Trail) add() *Try {
	n := len(*t)
	if n < cap(*t) {
		*t = (*t)[:n+1]
		(*t)[n] = Try{}
	} else {
		*t = append(*t, Try{})
	}
	return &(*t)[n]
}

// last is the try that was recorded last, nil when none is.
func (x *Exchange) last() *Try {
	if x.Trail == nil || len(*x.Trail) == 0 {
		return nil
	}
	return &(*x.Trail)[len(*x.Trail)-1]
}

func (x *Exchange) beginTry(peer *balance.Peer) {
	if x.Trail == nil {
		return
	}
	t := x.Trail.add()
	x.try = t
	t.Upstream, t.Peer, t.Queue, t.began = x.out.Upstream, peer, x.queued, x.moment()
	t.Connect, t.Header, t.Response = Unknown, Unknown, Unknown
	x.queued = 0
	if peer == nil {
		t.Status, t.Response = 502, 0
	} else if x.Span != nil {
		x.Span.Attempt(x.Request, t)
	}
}

// dropTry forgets the try that is going on: it is as if it had not been.
func (x *Exchange) dropTry() {
	t := x.last()
	if t == nil {
		return
	}
	if x.Span != nil {
		x.Span.Attempted(t, x.out.Err)
	}
	*x.Trail = (*x.Trail)[:len(*x.Trail)-1]
	x.try = nil
}

// headTry notes that the head came.
func (x *Exchange) headTry(status int) {
	t := x.try
	if t == nil {
		return
	}
	t.Header = time.Duration(x.moment() - t.began)
	t.Status = status
	if status == Headless {
		t.Status = 200
	}
	if p := x.backend.Sent(); p.Connected {
		t.Connect = p.Connect
	}
}

// endTry notes that the attempt is over; a status of 0 leaves what is known.
func (x *Exchange) endTry(status int) {
	t := x.try
	if t == nil {
		return
	}
	if t.Response == Unknown {
		t.Response = time.Duration(x.moment() - t.began)
	}
	p := x.backend.Sent()
	if p.Connected {
		t.Connect = p.Connect
	}
	t.Out, t.In = p.Out, p.In
	if status != 0 {
		t.Status = status
	}
	if x.Span != nil {
		x.Span.Attempted(t, x.out.Err)
	}
}
