package proxy

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// Handle serves one request: it is what an engine calls. A file's server blocks come before published routes.
func (p *Proxy) Handle(ctx context.Context, r *forward.Request, c forward.Client) {
	began := p.clock()
	t := p.table.Load()
	if t == nil || t.site == nil {
		p.byRoute(ctx, t, r, c, began)
		return
	}
	if t = p.enter(t, r, c); t == nil {
		return
	}
	of := site.Served{At: began, Done: p.done}
	if p.config.Tracer != nil {
		of.Span = p.follow(r, began)
	}
	defer t.users.exit()
	t.site.Continue(ctx, t, r, c, &of)
	if of.Again {
		p.again(ctx, t, r, c, &of)
	}
}

// byRoute serves a request by a published route.
func (p *Proxy) byRoute(ctx context.Context, t *table, r *forward.Request, c forward.Client, began int64) {
	if r.Proxy != nil {
		p.believe(r)
	}
	span := p.follow(r, began)
	to, refusal := p.find(t, r)
	if to == nil {
		p.refuse(r, c, refusal, began, span)
		return
	}
	way := takeRouted(p, t, r)
	defer way.release()
	way.exchange.Span = span
	way.begin(to, c, began).Run(ctx)
	way.finish(to, began)
}

// refusal is an answer of our own to a request that no route takes.
type refusal struct {
	status int
	text   string
	cause  string // bounded
}

func (p *Proxy) find(t *table, r *forward.Request) (*target, refusal) {
	if why, refused := p.tls.refuses(r); refused {
		return nil, why
	}
	if r.Invalid != "" {
		status := r.Refuse
		if status == 0 {
			status = http.StatusBadRequest
		}
		return nil, refusal{status, strconv.Itoa(status) + " " + r.Invalid, "bad_request"}
	}
	if t == nil {
		return nil, refusal{http.StatusServiceUnavailable, "503 no topology yet", "no_topology"}
	}
	if string(r.Method) == http.MethodConnect {
		return nil, refusal{http.StatusMethodNotAllowed, "405 CONNECT is not served", "method_not_allowed"}
	}
	if p.config.Via != "" && forward.Loops(r, p.config.Via) {
		return nil, refusal{http.StatusLoopDetected, "508 the request has been here before", "loop"}
	}
	path, ok := site.Normalise(r.Target, true)
	if string(r.Method) == http.MethodOptions && string(r.Target) == "*" {
		path, ok = "/", true // asks about the whole host
	}
	if !ok {
		return nil, refusal{http.StatusBadRequest, "400 the path can't be used", "bad_request"}
	}
	to := t.lookup(r.Authority, path)
	if to == nil {
		return nil, refusal{http.StatusNotFound, "404 no route for this host and path", "no_route"}
	}
	return to, refusal{}
}

func (p *Proxy) refuse(r *forward.Request, c forward.Client, why refusal, began int64, span forward.Span) {
	p.metrics.unrouted.WithLabelValues(codeClasses[why.status/100]).Inc()
	out := forward.Outcome{Status: why.status, Cause: why.cause}
	if why.status == http.StatusServiceUnavailable {
		out.Bytes = forward.Plain(c, r, why.status, why.text, forward.RetryAfter(p.config.RetryAfter))
	} else {
		var extra []forward.Field
		if why.status == http.StatusBadRequest || why.status == http.StatusMethodNotAllowed { // what follows can't be trusted either
			extra = []forward.Field{{Name: []byte("Connection"), Value: []byte("close")}}
		}
		out.Bytes = forward.Plain(c, r, why.status, why.text, extra...)
	}
	if p.lines != nil || span != nil {
		f := site.Finished{In: r, Remote: r.Remote, Status: out.Status, Bytes: out.Bytes, Began: began, Ended: p.clock(), Exchange: &out, Span: span}
		p.tell(&f, "", "", p.table.Load())
	}
}

// identity is what a client is believed, and what backends are told of it.
func (p *Proxy) identity(a netip.Addr) forward.Identity {
	return forward.Identity{Trusted: p.trusted(a), Forwarded: p.config.Forwarded, Via: p.config.Via}
}

func (p *Proxy) trusted(a netip.Addr) bool {
	for _, net := range p.config.TrustedProxies {
		if net.Contains(a) {
			return true
		}
	}
	return false
}
