package simulate

import (
	"slices"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
)

// kept is the connections that an upstream keeps and that serve nobody now, the one that was used last at the end.
type kept struct {
	limit int   // of connections; the oldest goes when there are more
	idle  int64 // nanoseconds after which one is closed
	conns []conn
}

type conn struct {
	peer  *balance.Peer
	since int64
}

// keepalive settles how many connections an upstream keeps, and lets go those to peers that left.
func (w *world) keepalive(peers []*balance.Peer, k topology.Keepalive) {
	u := &kept{limit: k.Idle, idle: int64(k.Timeout)}
	if k.Idle < 0 {
		u.limit = topology.DefaultKeepalive
	}
	if k.Timeout == 0 {
		u.idle = int64(topology.DefaultKeepaliveTimeout)
	}
	for _, p := range peers {
		if old := w.kept[p]; old != nil && u.conns == nil {
			u.conns = old.conns
		}
		w.kept[p] = u
	}
	u.conns = slices.DeleteFunc(u.conns, func(c conn) bool { return c.peer.Gone() })
}

// takeIdle uses a kept connection if there is one.
func (w *world) takeIdle(p *balance.Peer) bool {
	u := w.kept[p]
	if u == nil {
		return false
	}
	for i := len(u.conns) - 1; i >= 0; i-- {
		if c := u.conns[i]; c.peer == p && w.Now()-c.since < u.idle {
			u.conns = slices.Delete(u.conns, i, i+1)
			return true
		}
	}
	return false
}

// putIdle keeps a connection.
func (w *world) putIdle(p *balance.Peer) {
	u := w.kept[p]
	if u == nil || u.limit == 0 {
		return
	}
	if len(u.conns) == u.limit {
		u.conns = slices.Delete(u.conns, 0, 1)
	}
	u.conns = append(u.conns, conn{p, w.Now()})
}

// dropIdle closes the kept connections to an address.
func (w *world) dropIdle(addr string) {
	for _, u := range w.kept {
		u.conns = slices.DeleteFunc(u.conns, func(c conn) bool { return c.peer.Addr() == addr })
	}
}

// longest is the longest time that something may last in virtual time: a day.
const longest = 24 * time.Hour
