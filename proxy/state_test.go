package proxy

import "github.com/upstrand/upstrand/proxy/balance"

// state is an upstream's peers now.
func (w *world) state(upstream string) []balance.PeerState {
	return w.p.table.Load().groups[upstream].group.Snapshot()
}
