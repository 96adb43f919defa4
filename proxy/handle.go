package proxy

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// Handle serves one request: it is what an engine calls.
func (p *Proxy) Handle(ctx context.Context, r *forward.Request, c forward.Client) {
	began := p.clock()
	t := p.table.Load()
	if t != nil && t.site != nil {
		p.handleSite(ctx, t, r, c)
		return
	}
	to, refusal := p.find(t, r)
	if to == nil {
		p.refuse(r, c, refusal, began)
		return
	}
	way := &routed{table: t, exchange: forward.Exchange{
		Name: to.name, Request: forward.Outgoing(r, p.trusted(r.Remote)), Client: c,
		Policy: &p.config.Policy, Budget: to.service.budget, Opener: p.pools, Clock: p.clock, RetryAfter: p.config.RetryAfter,
	}}
	x := &way.exchange
	x.Group, x.Walk = to.begin(&way.walk, r.Method, began)
	p.keepBody(r, x.Walk)
	x.Renew = func() (*balance.Group, forward.Walk, bool) {
		var now *target
		if way.table, now = p.renewed(way.table, r); now == nil {
			return nil, nil, false
		}
		group, walk := now.begin(&way.again, r.Method, p.clock())
		return group, walk, true
	}
	out := x.Run(ctx)
	took := time.Duration(p.clock() - began)
	to.service.count(&out, took)
	if p.config.AccessLog != nil {
		p.logAccess(r, to.name, &out, took)
	}
}

// refusal is an answer of our own to a request that no route takes.
type refusal struct {
	status int
	text   string
}

func (p *Proxy) find(t *table, r *forward.Request) (*target, refusal) {
	if r.Invalid != "" {
		return nil, refusal{http.StatusBadRequest, "400 " + r.Invalid}
	}
	if t == nil {
		return nil, refusal{http.StatusServiceUnavailable, "503 no topology yet"}
	}
	if string(r.Method) == http.MethodConnect {
		return nil, refusal{http.StatusMethodNotAllowed, "405 CONNECT is not served"}
	}
	path, ok := site.Normalise(r.Target, true)
	if string(r.Method) == http.MethodOptions && string(r.Target) == "*" {
		path, ok = "/", true // asks about the whole host
	}
	if !ok {
		return nil, refusal{http.StatusBadRequest, "400 the path can't be used"}
	}
	to := t.lookup(r.Authority, path)
	if to == nil {
		return nil, refusal{http.StatusNotFound, "404 no route for this host and path"}
	}
	return to, refusal{}
}

func (p *Proxy) refuse(r *forward.Request, c forward.Client, why refusal, began int64) {
	out := forward.Outcome{Status: why.status, Cause: "no_route"}
	if why.status == http.StatusServiceUnavailable {
		out.Cause = "no_topology"
		out.Bytes = forward.Plain(c, r, why.status, why.text, forward.RetryAfter(p.config.RetryAfter))
	} else {
		out.Bytes = forward.Plain(c, r, why.status, why.text)
	}
	p.metrics.unrouted.WithLabelValues(codeClasses[why.status/100]).Inc()
	if p.config.AccessLog != nil {
		p.logAccess(r, "", &out, time.Duration(p.clock()-began))
	}
}

// renewed is the table of now and what the request's route leads to in it, nil when the table is the one before.
func (p *Proxy) renewed(before *table, r *forward.Request) (*table, *target) {
	t := p.table.Load()
	if t == before {
		return t, nil
	}
	to, _ := p.find(t, r)
	return t, to
}

func (p *Proxy) trusted(a netip.Addr) bool {
	for _, net := range p.config.TrustedProxies {
		if net.Contains(a) {
			return true
		}
	}
	return false
}

func (p *Proxy) logAccess(r *forward.Request, service string, out *forward.Outcome, took time.Duration) {
	e := p.config.AccessLog.Log().Bytes("method", r.Method).Bytes("host", r.Authority).Bytes("target", r.Target).
		Stringer("client", r.Remote).Int("status", out.Status).Int64("bytes", out.Bytes).Float64("took_ms", float64(took.Microseconds())/1000)
	if service != "" {
		e = e.Str("service", service).Str("upstream", out.Upstream).Int("attempts", out.Attempts)
	}
	if out.Peer != nil {
		e = e.Str("peer", out.Peer.Addr())
	}
	if out.Cause != "" {
		e = e.Str("cause", out.Cause)
	}
	if out.Err != nil {
		e = e.AnErr("error", out.Err)
	}
	e.Send()
}
