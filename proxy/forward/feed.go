package forward

import "github.com/upstrand/upstrand/proxy/balance"

// enter begins a pass through an upstream.
func (x *Exchange) enter(g *balance.Group) {
	var ask *balance.Ask
	if x.Hooks != nil {
		ask = x.Hooks.Ask(g)
	}
	x.pass.Begin(g, x.Policy.Tries, ask)
}
