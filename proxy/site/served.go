package site

import "github.com/upstrand/upstrand/proxy/forward"

// Served is what became of a request, for those who count.
type Served struct {
	Status int   // of the answer; 499: the client was gone before
	Bytes  int64 // of the answer's body, that came from a server
	// Again: nothing was answered or sent anywhere, since all upstreams that the request knew are gone; the site of now is to
	// Continue it.
	Again bool

	// At is a reading of Env's clock: when the request had ended; for Continue one that was just made, 0 without.
	At int64

	// Span is for Continue: it follows the request; nil: nobody does.
	Span forward.Span
	// Done is for Continue: it is shown the request when that has its answer; nil: nobody is.
	Done func(*Finished)

	began   int64 // of a request that goes on
	moves   int
	limited string // what limits of requests came to: it is counted once
}

func (r *request) served() Served {
	return Served{Status: r.status, Bytes: r.up.outcome.Bytes, At: r.ended}
}
