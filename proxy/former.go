package proxy

import (
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/upstrand/upstrand/proxy/site"
)

// former is where earlier files of this process listened: connections that came in there may be open still. It grows with
// the addresses that were ever listened on.
type former struct {
	list atomic.Pointer[[]site.Listen]
}

// add notes them. Calls are serialised.
func (f *former) add(listens []site.Listen) {
	var next []site.Listen
	if now := f.list.Load(); now != nil {
		next = slices.Clone(*now)
	}
	for _, l := range listens {
		if !slices.ContainsFunc(next, func(o site.Listen) bool { return o.Addr == l.Addr }) {
			next = append(next, l)
		}
	}
	f.list.Store(&next)
}

func (f *former) took(local netip.AddrPort) bool {
	now := f.list.Load()
	return now != nil && slices.ContainsFunc(*now, func(l site.Listen) bool { return l.Takes(local) })
}
