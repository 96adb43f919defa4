package proxy

import (
	"sync"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/upstrand"
)

// routed is a request that a published route takes: with its walk, when the route leads to an upstrand. It is used again for
// other requests: nothing may hold it, or what it has of the client's request, when Handle has returned.
type routed struct {
	proxy    *Proxy
	in       *forward.Request
	table    *table // the last one that was looked into
	trail    forward.Trail
	renew    func() (*balance.Group, forward.Walk, bool)
	walks    bool // walk or again is used
	exchange forward.Exchange
	tries    [1]forward.Try // memory for the trail of most requests
	draft    forward.Draft
	walk     upstrand.Walk
	again    upstrand.Walk // in a newer table
}

var routeds = sync.Pool{New: func() any {
	w := &routed{}
	w.renew, w.trail = w.renewed, w.tries[:0]
	return w
}}

func takeRouted(p *Proxy, t *table, r *forward.Request) *routed {
	w := routedFor(r)
	w.proxy, w.table, w.in = p, t, r
	return w
}

// routedFor is what the engine keeps for us beside its own memory of a request, or any other.
func routedFor(r *forward.Request) *routed {
	if r.Scratch != nil {
		if w, ok := (*r.Scratch).(*routed); ok {
			*r.Scratch = nil
			return w
		}
	}
	return routeds.Get().(*routed)
}

// release makes it ready for another request.
func (w *routed) release() {
	keep := w.in.Scratch
	w.exchange.Clear()
	clear(w.trail) // of peers that may have left
	w.trail = w.trail[:0]
	w.draft.Clear()
	w.proxy, w.table, w.in = nil, nil, nil
	if w.walks {
		w.walk, w.again, w.walks = upstrand.Walk{}, upstrand.Walk{}, false
	}
	if keep != nil && *keep == nil {
		*keep = w
		return
	}
	routeds.Put(w)
}

// begin readies the exchange with a route's target. Now is a reading of the clock that was just made.
func (w *routed) begin(to *target, c forward.Client, now int64) *forward.Exchange {
	p, x := w.proxy, &w.exchange
	x.Name, x.Client, x.Request = to.name, c, w.draft.Make(w.in, p.identity(w.in.Remote))
	x.Policy, x.Budget, x.Opener, x.Clock, x.RetryAfter = &p.config.Policy, to.service.budget, p.pools, p.clock, p.config.RetryAfter
	x.Renew, x.At, x.Trail, x.Failures = w.renew, now, &w.trail, w
	x.Group, x.Walk = w.lead(to, &w.walk, now)
	p.keepBody(w.in, x.Walk)
	return x
}

// lead is where the request goes first on its way to a target.
func (w *routed) lead(to *target, walk *upstrand.Walk, now int64) (*balance.Group, forward.Walk) {
	w.walks = w.walks || to.strand != nil
	return to.begin(walk, w.in.Method, now)
}

// renewed is Exchange.Renew: what the route leads to in the table of now, when that is another one.
func (w *routed) renewed() (*balance.Group, forward.Walk, bool) {
	t := w.proxy.table.Load()
	if t == w.table {
		return nil, nil, false
	}
	w.table = t
	to, _ := w.proxy.find(t, w.in)
	if to == nil {
		return nil, nil, false
	}
	group, walk := w.lead(to, &w.again, w.proxy.clock())
	return group, walk, true
}
