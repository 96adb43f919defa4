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
