package simulate

import (
	"io"

	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/accesslog"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// proxy makes the proxy of live traffic, with the world in the place of sockets, time, chance and files.
func (w *world) proxy(watch func(*balance.Explanation)) (*proxy.Proxy, error) {
	return proxy.New(proxy.Config{
		Clock: w.Now, Rand: w.chance, Lookup: w.lookup, Watch: watch, Opener: w.opener,
		RetryShare: -1,
		Logs:       &accesslog.Files{Now: true, Opener: func(string) (io.WriteCloser, error) { return nopCloser{w.logs()}, nil }},
	})
}

func (w *world) opener(wire site.Wire) forward.Opener {
	return &opener{world: w, limits: limits{connect: wire.Connect, read: wire.Read, keepAlive: !wire.HTTP10, headless: wire.Headless}}
}

// logs is where access logs go.
func (w *world) logs() io.Writer {
	if w.log == nil {
		return io.Discard
	}
	return w.log
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// load puts a configuration in force.
func (w *world) load(p *proxy.Proxy, f *proxy.File) error {
	if err := p.Load(served(f)); err != nil {
		return err
	}
	for _, name := range p.Upstreams() {
		if g, spec := p.Group(name), p.Spec(name); g != nil && spec != nil {
			w.keepalive(g.Peers(), spec.Keepalive)
		}
	}
	return nil
}
