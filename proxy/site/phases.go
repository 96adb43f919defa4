package site

import (
	"context"

	"github.com/upstrand/upstrand/proxy/forward"
)

// serve takes a request through the phases until it has its answer. The phases have returned before anybody is waited for
// who makes the answer: as long as that takes, their frames would keep memory in use.
func (r *request) serve(ctx context.Context) {
	if ctx != nil {
		r.trace, _ = ctx.Value(traceKey{}).(func(Step))
	}
	o := r.arrive()
	if o.what == onward {
		o = r.fromServer(ctx)
	}
	for o.what != answered {
		if o.what != onward {
			if o = r.elsewhere(ctx, o); o.what == moved || o.what == cut {
				return
			}
		} else if h := r.conf.handler; h != nil {
			o = h(r, ctx)
		} else {
			o = r.nothing()
		}
	}
}

// elsewhere is what follows when something else than the answer at hand is to be given. Onward: the content.
func (r *request) elsewhere(ctx context.Context, o outcome) outcome {
	switch o.what {
	case failed:
		return r.failure(o)
	case redirected:
		if o = r.redirect(o.to.to, o.to.args); o.what == onward {
			return r.fromServer(ctx)
		}
	case named:
		if o = r.enterNamed(o.to.to); o.what == onward {
			return r.fromRewrite(ctx)
		}
	case cut:
		r.status = 444
		r.client.Abort()
	case moved:
		r.up.leaves = true
	}
	return o
}

// arrive finds the server, and refuses what is no proper request. Nginx reads the first line before it knows the server,
// so that what is wrong with it is the default server's to say.
func (r *request) arrive() outcome {
	at := r.site.addressOf(r.in.Local)
	r.server = at.otherwise
	if at.tls && r.in.TLS != nil {
		r.server = r.site.named(at, r.in.TLS.ServerName)
	}
	r.conf = r.server.set
	p, ok := parseTarget(r.in.Target, r.server.merge)
	host, valid := hostOf(r.in.Authority)
	switch {
	case r.in.Invalid != "" && r.in.Refuse != 0:
		return fail(r.in.Refuse)
	case string(r.method) == "CONNECT":
		r.last = true // what follows may be for the tunnel that was asked for
		return fail(405)
	case r.in.Invalid != "" || !ok || !valid:
		return fail(400)
	case at.tls && r.misdirected(at, host):
		return fail(421)
	}
	r.uri, r.args, r.quoted, r.plus, r.whole = p.uri, p.args, p.quoted, p.plus, true
	r.server = at.serverOf(r, host)
	r.conf = r.server.set
	if r.host = host; host == "" {
		r.host = r.server.name
	}
	if r.trace != nil {
		r.step("server", r.server.name, r.server.node)
	}
	if string(r.method) == "TRACE" {
		return fail(405)
	}
	if at.tls {
		if status := r.checkTLS(); status != 0 {
			return fail(status)
		}
	}
	r.in = r.cleaned()
	if len(r.conf.access.realIP.from) > 0 {
		r.realIP()
	}
	return outcome{what: onward}
}

// fromServer runs the server's rewrite directives, then looks for the location.
func (r *request) fromServer(ctx context.Context) outcome {
	if !r.server.code.empty() {
		if o := r.run(&r.server.code); o.what != onward {
			return o
		}
	}
	if o := r.enter(); o.what != onward {
		return o
	}
	return r.fromRewrite(ctx)
}

// enter finds the location of the path as it is now.
func (r *request) enter() outcome {
	r.changed = false
	loc, how := r.server.inner.find(r)
	if loc == nil {
		if r.trace != nil {
			r.step("location", "none", r.server.node)
		}
		r.location, r.conf = nil, r.server.set
		return r.checkBody()
	}
	if r.trace != nil {
		r.step("location", loc.name, loc.node)
	}
	r.settle(loc)
	if loc.set.core.internal && !r.internal {
		return fail(404)
	}
	if o := r.checkBody(); o.what != onward || how != withSlash {
		return o
	}
	return r.toSlash(loc)
}

// toSlash redirects to the location's name.
func (r *request) toSlash(loc *location) outcome {
	to := loc.escaped
	if r.args != "" {
		to += "?" + r.args
	}
	return r.led(failed, 301, to, "")
}

// checkBody refuses a body whose announced length is more than the location takes. One of unknown length is cut off when
// it is read beyond that.
func (r *request) checkBody() outcome {
	if most := r.conf.core.maxBody; most > 0 && r.in.Length > most {
		r.discard()
		return fail(413)
	}
	return outcome{what: onward}
}

// discard makes the request one without a body: nobody reads it, whatever the request is led to.
func (r *request) discard() {
	in := *r.in
	in.Body, in.Length = nil, 0
	r.in = &in
}

// fromRewrite runs the location's rewrite directives; a path that they changed gets another location.
func (r *request) fromRewrite(ctx context.Context) outcome {
	for {
		if r.location != nil && !r.excepted && !r.location.code.empty() {
			if o := r.run(&r.location.code); o.what != onward {
				return o
			}
		}
		if !r.changed {
			return r.fromAccess(ctx)
		}
		if r.changes--; r.changes == 0 {
			return fail(500)
		}
		r.location, r.conf = nil, r.server.set
		if o := r.enter(); o.what != onward {
			return o
		}
	}
}

// fromAccess asks whether the request may. Onward: it is to be answered.
func (r *request) fromAccess(ctx context.Context) outcome {
	if len(r.conf.access.realIP.from) > 0 {
		r.realIP()
	}
	if o := r.limited(ctx); o.what != onward {
		return o
	}
	if len(r.conf.access.rules) > 0 {
		if status := r.access(); status != 0 {
			return fail(status)
		}
	}
	if t := r.conf.core.tryFiles; t != nil {
		if o := r.tried(t); !r.Excess() {
			return o
		}
		return fail(500)
	}
	return outcome{what: onward}
}

// nothing is the answer where nginx would look for a file.
func (r *request) nothing() outcome {
	switch string(r.method) {
	case "GET", "HEAD", "POST":
		return fail(404)
	}
	return fail(405)
}

// limitBody is called by whoever is about to read the body.
func (r *request) limitBody() {
	if most := r.conf.core.maxBody; most > 0 && r.in.Body != nil {
		if l, ok := r.in.Body.(forward.Limiter); ok {
			l.Limit(most)
		}
	}
}
