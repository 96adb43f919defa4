package proxy

import (
	"sync"
	"sync/atomic"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/http1"
	"github.com/upstrand/upstrand/proxy/http2"
	"github.com/upstrand/upstrand/proxy/site"
)

// mostOpeners are kept at once: a site has one for each location, and a proxy_pass to https://$host has one for each name that
// clients ask for.
const mostOpeners = 1 << 16

// openers are those of the site in force, by *site.Wire. They hold no connections, so that any may go at any time.
type openers struct {
	all   sync.Map // *site.Wire to forward.Opener
	count atomic.Int64
}

// of gives the opener of a wire, which make makes the first time.
func (o *openers) of(w *site.Wire, make func() forward.Opener) forward.Opener {
	if made, ok := o.all.Load(w); ok {
		return made.(forward.Opener)
	}
	if o.count.Load() >= mostOpeners {
		o.forget()
	}
	made, loaded := o.all.LoadOrStore(w, make())
	if !loaded {
		o.count.Add(1)
	}
	return made.(forward.Opener)
}

// forget lets all go: another site has other wires.
func (o *openers) forget() {
	o.count.Store(0)
	o.all.Clear()
}

// Opener is site.Env's.
func (t *table) Opener(w *site.Wire) forward.Opener {
	p := t.proxy
	return p.openers.of(w, func() forward.Opener {
		if p.config.Opener != nil {
			return p.config.Opener(*w)
		}
		if w.HTTP2 {
			return p.peers2.Opener(http2.Wire{
				Connect: w.Connect, Read: w.Read, Send: w.Send, HeadMax: w.HeadMax, Scheme: w.Scheme, TLS: w.TLS, ServerName: w.ServerName,
			})
		}
		return p.pools.Opener(http1.Wire{
			Connect: w.Connect, Read: w.Read, Send: w.Send, HeadMax: w.HeadMax, HTTP10: w.HTTP10, Headless: w.Headless, NoHost: w.NoHost,
			Scheme: w.Scheme, TLS: w.TLS, ServerName: w.ServerName,
		})
	})
}
