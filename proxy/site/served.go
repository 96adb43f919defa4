package site

import "github.com/upstrand/upstrand/proxy/forward"

// Served is what became of a request, for those who count, and what one site leaves to another one.
type Served struct {
	Status int   // of the answer; 499: the client was gone before
	Bytes  int64 // of the answer's body, that came from a server
	// Again: nothing was answered or sent anywhere, since all upstreams that the request knew are gone; the site of now is to
	// Continue it.
	Again bool

	// At is a reading of Env's clock: when the request had ended; before Continue one that was just made, 0 without.
	At int64

	// Span is for Continue: it follows the request; nil: nobody does.
	Span forward.Span
	// Done is for Continue: it is shown the request when that has its answer; nil: nobody is.
	Done func(Finished)

	left *left // of a request that goes on
}

// left is what the next site has to know of a request.
type left struct {
	began   int64
	moves   int    // from one site to another
	limited string // what limits of requests came to: it is counted once
}
