package site

import (
	"net/netip"
	"slices"

	"github.com/upstrand/upstrand/proxy/forward"
)

// maxMoves bounds how often one request is routed anew.
const maxMoves = 8

// movesOn tells whether the request is for the site of now to answer: all that it knew of an upstream or a walk is gone,
// nothing of it was sent to anybody, and there is another table.
func (r *request) movesOn(out *forward.Outcome) bool {
	u := &r.up
	if !out.NoPeer || out.Answered || u.moves >= maxMoves {
		return false
	}
	for i := range u.trail {
		if u.trail[i].Peer != nil {
			return false
		}
	}
	env, ok := r.env.(Renewer)
	if !ok || r.in.Body != nil && !r.in.Body.Rewindable() || !env.Newer(r.in.Local) {
		return false
	}
	if r.trace != nil {
		r.step("reload", "routed anew", nil)
	}
	return true
}

// left is what the next site has to know.
func (r *request) left() Served {
	return Served{Again: true, began: r.began, moves: r.up.moves + 1, limited: r.limits.requests}
}

// continues takes over what the site before knew. The body begins anew.
func (r *request) continues(before *Served) {
	if !before.Again {
		return
	}
	r.began, r.up.moves, r.limits.requests = before.began, before.moves, before.limited
	body := r.in.Body
	if body == nil {
		return
	}
	_ = body.Rewind() // the site before has asked whether it can
	if l, ok := body.(forward.Limiter); ok {
		l.Limit(0)
	}
}

// Here is for a request that has nowhere else to go after all.
func (s Served) Here() Served {
	s.moves = maxMoves
	return s
}

// Takes tells whether there are servers for where a request came in. One that doesn't say it is taken.
func (s *Site) Takes(local netip.AddrPort) bool {
	return !local.IsValid() || slices.ContainsFunc(s.listens, func(l Listen) bool { return l.Takes(local) })
}

// Takes tells whether a connection of that local address comes in by it.
func (l Listen) Takes(local netip.AddrPort) bool {
	ip := local.Addr().Unmap().WithZone("")
	if l.Addr.Port() != 0 && l.Addr.Port() != local.Port() {
		return false
	}
	return l.Addr.Addr() == ip || l.Addr.Addr().IsUnspecified() && (l.Addr.Addr().Is6() || ip.Is4())
}
