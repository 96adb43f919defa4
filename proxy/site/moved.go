package site

import (
	"net/netip"

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

// left notes what the next site has to know.
func (r *request) left(to *Served) {
	to.Again, to.At = true, 0 // time has passed
	to.left = &left{r.began, r.up.moves + 1, r.limits.requests}
}

// continues takes over what the site before knew. The body begins anew.
func (r *request) continues(before *Served) {
	r.began, r.up.moves = before.left.began, before.left.moves
	r.counted, r.limits.requests = true, before.left.limited
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
func (s *Served) Here() { s.left.moves = maxMoves }

// Takes tells whether there are servers for where a request came in. One that doesn't say it is taken.
func (s *Site) Takes(local netip.AddrPort) bool {
	if !local.IsValid() {
		return true
	}
	ip := local.Addr().Unmap().WithZone("")
	for i := range s.listens {
		if takes(s.listens[i].Addr, ip, local.Port()) {
			return true
		}
	}
	return false
}

// Takes tells whether a connection of that local address comes in by it.
func (l Listen) Takes(local netip.AddrPort) bool {
	return takes(l.Addr, local.Addr().Unmap().WithZone(""), local.Port())
}

func takes(at netip.AddrPort, ip netip.Addr, port uint16) bool {
	if at.Port() != 0 && at.Port() != port {
		return false
	}
	return at.Addr() == ip || at.Addr().IsUnspecified() && (at.Addr().Is6() || ip.Is4())
}
