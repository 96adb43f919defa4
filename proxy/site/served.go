package site

import "github.com/upstrand/upstrand/proxy/forward"

// Served is what became of a request, for those who count.
type Served struct {
	Status   int             // of the answer; 499: the client was gone before
	Exchange forward.Outcome // with the last upstream; without one Upstream is empty
	// Again: nothing was answered or sent anywhere, since all upstreams that the request knew are gone; the site of now is to
	// Continue it.
	Again bool

	began int64 // of a request that goes on
	moves int
}

func (r *request) served() Served {
	s := Served{Status: r.status, Exchange: r.up.outcome}
	s.Exchange.Status = r.status
	return s
}
