package site

import (
	"context"
	"errors"
	"io/fs"
	"net"

	"github.com/upstrand/upstrand/proxy/forward"
)

// destination is where one request goes.
type destination struct {
	up     *Upstream
	scheme string
	host   string // $proxy_host
	port   string // $proxy_port
	path   []byte
	walk   bool // along the request's walk
}

// proxy is the handler of proxy_pass.
func (r *request) proxy(ctx context.Context) outcome {
	u := &r.up
	u.to.walk = false
	if o := r.locate(&u.to); o.what != onward {
		return o
	}
	r.outgoing(&u.out, &u.to, u.fields)
	u.fields = u.out.Fields
	if r.Excess() {
		return fail(500)
	}
	if o := r.takeBody(&u.out); o.what != onward {
		return o
	}
	p := &r.conf.proxy
	wire, ok := r.wire(&u.to)
	if !ok {
		return fail(500)
	}
	if r.trace != nil {
		r.step("proxy", u.to.up.Name, p.target.node)
	}
	if p.ignoreAbort {
		ctx = context.WithoutCancel(ctx)
	}
	u.begin(r)
	u.exchange = forward.Exchange{
		Name: u.to.up.Name, Request: &u.out, Client: &r.sent, Group: u.to.up.Group, Policy: &p.policy,
		Opener: r.env.Opener(wire), Clock: u.clock, Renew: u.renew, Hooks: (*proxyHooks)(r), Trail: &u.trail,
	}
	if u.to.walk {
		u.exchange.Walk, u.exchange.EachStop = (*siteWalk)(r), true
		r.inError = true // no error_page acts on what a walk comes to
	}
	r.sent.begin(r)
	return r.proxied(u.exchange.Run(ctx))
}

// wire is how the upstream is spoken to; false: TLS can't be set up for it.
func (r *request) wire(d *destination) (Wire, bool) {
	p := &r.conf.proxy
	wire := p.wire
	if p.target.text == nil {
		return wire, true
	}
	if wire.Scheme = d.scheme; wire.Scheme == "https" {
		c, err := p.tls.config(d.host)
		if err != nil {
			return wire, false
		}
		wire.TLS, wire.ServerName = c, c.ServerName
	}
	return wire, true
}

// proxied is what an exchange came to.
func (r *request) proxied(out forward.Outcome) outcome {
	u := &r.up
	u.outcome = out
	if r.movesOn(&out) {
		return outcome{what: moved}
	}
	if u.to.walk {
		if o, instead := r.ended(&out); instead {
			return o
		}
	}
	switch {
	case out.Answered:
		if !r.sent.headed {
			r.status = 499 // the client was gone before
		}
		return outcome{}
	case u.accel != "":
		to := u.accel
		u.accel = ""
		return r.xaccel(to)
	}
	r.stick()
	r.sent.proxied = false // an answer that was begun and can't be
	return fail(out.Status)
}

// locate finds the upstream and the path of the request.
func (r *request) locate(d *destination) outcome {
	t := r.conf.proxy.target
	if t.text != nil {
		return r.locateByText(d, t)
	}
	*d = destination{scheme: t.scheme, host: t.host, port: t.port, path: d.path[:0]}
	p := pathOf{uri: r.uri, args: r.args, escape: r.quoted || r.internal, part: t.part, location: t.name}
	if r.whole {
		p.raw = textOf(r.in.Target)
	}
	if r.stayed {
		p.location = -1
	}
	d.path = p.append(d.path)
	return r.reach(d, t.upstream)
}

// locateByText does the same for a target with variables: a URI part of such a text is the whole path. On the way of a
// walk the upstream is that of the stop at hand, whatever the text says by now.
func (r *request) locateByText(d *destination, t *target) outcome {
	scheme, authority, part, ok := cutURL(t.text.Value(r))
	if !ok {
		if r.walk.lost() {
			return fail(502)
		}
		return fail(500)
	}
	walk := d.walk
	if walk {
		authority = r.walk.walk.At().Name
	}
	host, port, ok := cutAuthority(authority)
	if !ok {
		return fail(500)
	}
	at := target{scheme: scheme}
	at.set(host, port)
	*d = destination{scheme: scheme, host: at.host, port: at.port, path: d.path[:0]}
	if part != "" {
		d.path = appendTarget(d.path, part)
	} else {
		p := pathOf{uri: r.uri, args: r.args, escape: r.quoted || r.internal, location: -1}
		if r.whole {
			p.raw = textOf(r.in.Target)
		}
		d.path = p.append(d.path)
	}
	if port == "" && (walk || r.walk.leads(host)) {
		d.up, d.walk = r.walk.walk.At().Link.(*Upstream), true
		return outcome{what: onward}
	}
	if port == "" {
		if up := r.env.Upstream(lowerText(host)); up != nil {
			d.up = up
			return outcome{what: onward}
		}
	}
	return r.reach(d, at.upstream)
}

// reach finds the upstream. A host that no upstream and no constant target names would have to be looked up while the
// request waits, which is not done: 502, as in nginx without a resolver.
func (r *request) reach(d *destination, name string) outcome {
	if len(d.path) == 0 {
		return fail(500)
	}
	if d.up = r.env.Upstream(name); d.up == nil {
		return fail(502)
	}
	return outcome{what: onward}
}

// takeBody has the whole body at hand before a backend is asked, unless proxy_request_buffering is off.
func (r *request) takeBody(out *forward.Request) outcome {
	if out.Body == nil || out.Body != r.in.Body {
		return outcome{what: onward}
	}
	if r.up.read && out.Body.Rewind() != nil {
		return fail(502)
	}
	r.up.read = true
	p := &r.conf.proxy
	h, ok := out.Body.(forward.Holder)
	if !ok || !p.holdBody && (out.Length >= 0 || !p.wire.HTTP10) {
		r.limitBody()
		if k, ok := out.Body.(forward.Keeper); ok && r.up.to.walk {
			k.Keep(r.conf.core.maxBody)
		}
		return outcome{what: onward}
	}
	var (
		slow net.Error
		disk *fs.PathError
	)
	length, err := h.Hold(r.conf.core.maxBody)
	switch {
	case err == nil:
		out.Length = length
		return outcome{what: onward}
	case errors.Is(err, forward.ErrTooLarge):
		return fail(413)
	case errors.As(err, &slow) && slow.Timeout():
		return fail(408)
	case errors.As(err, &disk):
		return fail(500)
	}
	return fail(400)
}
