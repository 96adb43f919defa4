package proxy

import (
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
)

// specOf is what balance has to know of a group.
func specOf(g *topology.Group) balance.Spec {
	spec := balance.Spec{
		Servers: make([]balance.Server, len(g.Peers)),
		Method: balance.MethodSpec{
			Name: g.Method.Name, Consistent: g.Method.Consistent, Two: g.Method.Two, LastByte: g.Method.LastByte, Inflight: g.Method.Inflight,
		},
		CountSingle: g.CountSingle, Queue: balance.QueueSpec(g.Queue),
	}
	if g.Sticky != nil {
		spec.Sticky = balance.StickySpec{Kind: g.Sticky.Kind, Timeout: g.Sticky.Timeout, OnHeader: g.Sticky.OnHeader,
			Limit: sessions(g.Sticky.ZoneSize)}
	}
	for i := range g.Peers {
		spec.Servers[i] = serverOf(&g.Peers[i])
	}
	return spec
}

// sessions is how many learned sessions are kept for a zone of so many bytes: never fewer than nginx has room for, and
// few enough for any machine. 0: the method's own number.
func sessions(zone int64) int {
	if zone == 0 {
		return 0
	}
	const each, least, most = 256, 1 << 16, 1 << 22
	return int(min(max(zone/each, least), most))
}

func serverOf(p *topology.Peer) balance.Server {
	return balance.Server{
		Key:  balance.Key{Backup: p.Backup, ID: p.Key.Server, Addr: p.Key.Addr, Ordinal: p.Key.Ordinal},
		Addr: p.Addr, Scheme: p.Scheme, Incarnation: p.Incarnation,
		Weight: p.Weight, MaxConns: p.MaxConns, MaxFails: p.MaxFails, FailTimeout: p.FailTimeout, SlowStart: p.SlowStart,
		Down: p.Down, Drain: p.Drain, Text: p.Text, Route: p.Route,
	}
}
