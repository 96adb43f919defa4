package proxy

import (
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// Tracer follows requests, for traces.
type Tracer interface {
	// Start follows a client's request, which began at a moment in Unix nanoseconds.
	Start(r *forward.Request, at int64) forward.Span
}

// follow begins to follow a request; nil: nobody does.
func (p *Proxy) follow(r *forward.Request, began int64) forward.Span {
	if p.config.Tracer == nil {
		return nil
	}
	return p.config.Tracer.Start(r, began)
}

// finish counts what a published route's exchange came to, and tells of it.
func (w *routed) finish(to *target, began int64) {
	x := &w.exchange
	out := x.Outcome()
	f := site.Finished{
		In: w.in, Remote: w.in.Remote, Status: out.Status, Bytes: out.Bytes, Began: began, Ended: w.proxy.clock(), Trail: w.trail, Exchange: out, Span: x.Span,
	}
	to.service.count(&f)
	w.proxy.tell(&f, to.name, "", w.table)
}

// finishSite is the same for a request of a file's.
func (p *Proxy) finishSite(f site.Finished) {
	t := f.Env.(*table)
	t.counted(f.Exchange.Upstream).count(&f)
	p.tell(&f, f.Exchange.Upstream, f.Location, t)
}

// tell writes the request's line and ends its span, where there are such.
func (p *Proxy) tell(f *site.Finished, service, route string, t *table) {
	if p.lines != nil {
		p.lines.write(f, service, t.Version())
	}
	if f.Span != nil {
		f.Span.End(forward.SpanEnd{
			At: f.Ended, Status: f.Status, Bytes: f.Bytes, Route: route, Upstream: f.Exchange.Upstream, Cause: f.Exchange.Cause, Client: f.Remote,
		})
	}
}

// Version is site.Versioned's: that of the published topology, 0 without one.
func (t *table) Version() uint64 {
	if t == nil || t.topology == nil {
		return 0
	}
	return uint64(t.topology.Version)
}
