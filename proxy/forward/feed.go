package forward

import "github.com/upstrand/upstrand/proxy/balance"

// enter begins a pass through an upstream.
func (x *Exchange) enter(g *balance.Group) balance.Pass {
	var ask *balance.Ask
	if x.Hooks != nil {
		ask = x.Hooks.Ask(g)
	}
	return g.Begin(x.Policy.Tries, ask)
}

// feedHeader tells the balancing method that the head of the answer which stays has come, and to which session it
// belongs.
func feedHeader(pass *balance.Pass, session []byte) {
	if session != nil {
		pass.Learn(session)
	}
	pass.Header()
}
