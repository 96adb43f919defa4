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
	origin *origin // nil: none is known yet
	path   []byte
	texts  *balancingTexts // of up; nil: it needs to know nothing
	walk   bool            // along the request's walk
}

// origin is who is asked, as variables tell it.
type origin struct {
	scheme string
	host   string // $proxy_host: without a port that is the scheme's own
	port   string // $proxy_port
}

var noOrigin origin

// known is the destination's origin, or an empty one.
func (d *destination) known() *origin {
	if d.origin == nil {
		return &noOrigin
	}
	return d.origin
}

// proxy is the handler of proxy_pass. It calls nothing but what waits: its frame is small, and that of what comes before is
// gone by then.
func (r *request) proxy(ctx context.Context) outcome {
	if o := r.prepare(); o.what != onward {
		return o
	}
	if r.conf.way().ignoreAbort {
		ctx = context.WithoutCancel(ctx)
	}
	return r.proxied(r.up.exchange.Run(ctx))
}

// prepare readies the request's exchange.
func (r *request) prepare() outcome {
	u := &r.up
	u.to.walk = false
	if o := r.locate(&u.to); o.what != onward {
		return o
	}
	r.outgoing(&u.out, &u.to)
	if r.Excess() {
		return fail(500)
	}
	if o := r.takeBody(&u.out); o.what != onward {
		return o
	}
	p := r.conf.way()
	wire := r.wire(&u.to)
	if r.trace != nil {
		r.step("proxy", u.to.up.Name, p.target.node)
	}
	u.round(r)
	x := &u.exchange
	x.Clear()
	x.Request, x.Client, x.Group, x.Policy = &u.out, &r.sent, u.to.up.Group, &p.policy
	x.Opener, x.Clock, x.Renew, x.Hooks, x.Trail, x.At = r.env.Opener(wire), r.clock(), u.renew, (*proxyHooks)(r), &u.trail, r.at
	x.Span, x.Failures = r.span, (*proxyHooks)(r)
	if u.to.walk {
		x.Walk, x.EachStop = (*siteWalk)(r), true
		r.inError = true // no error_page acts on what a walk comes to
	}
	r.sent.proxied = false
	r.wished()
	r.at = 0 // from here on the exchange knows
	u.runs = true
	return outcome{what: onward}
}

// wire is how the upstream is spoken to.
func (r *request) wire(d *destination) *Wire {
	p := r.conf.way()
	switch {
	case p.tls == nil:
		return &p.wire
	case d.origin.scheme != "https":
		return p.tls.plain
	}
	return p.tls.wire(r, d.origin.host)
}

// proxied is what an exchange came to.
func (r *request) proxied(out *forward.Outcome) outcome {
	u := &r.up
	u.runs, u.kept = false, out.Intercepted
	r.at, u.exchange.At = u.exchange.At, 0
	if out.Answered && !u.to.walk {
		if !r.sent.headed {
			r.status = 499 // the client was gone before
		}
		return outcome{}
	}
	return r.unanswered(out)
}

// unanswered is what an exchange came to that gave the client no answer, or of which a walk has to be told.
func (r *request) unanswered(out *forward.Outcome) outcome {
	u := &r.up
	if r.movesOn(out) {
		return outcome{what: moved}
	}
	if u.to.walk {
		if o, instead := r.walkEnded(out); instead {
			return o
		}
	}
	switch {
	case out.Answered:
		if !r.sent.headed {
			r.status = 499
		}
		return outcome{}
	case u.accel != "":
		to := u.accel
		u.accel = ""
		return r.xaccel(to)
	}
	r.stick()
	r.sent.proxied = false // an answer that was begun and can't be
	if r.why = out.Cause; out.Intercepted {
		r.why = whyIntercepted
	}
	return fail(out.Status)
}

// locate finds the upstream and the path of the request.
func (r *request) locate(d *destination) outcome {
	t := r.conf.way().target
	if t.text != nil {
		return r.locateByText(d, t)
	}
	d.up, d.origin, d.walk, d.texts = nil, &t.origin, false, nil
	if r.whole && t.part == "" {
		d.path = r.in.Target
	} else {
		d.path = r.made(t.part, t.name)
	}
	return r.reach(d, t.upstream)
}

// made is the path of a request where it is not the client's as it came.
func (r *request) made(part string, location int) []byte {
	p := pathOf{uri: r.uri, args: r.args, escape: r.quoted || r.internal, part: part, location: location}
	if r.whole {
		p.raw = textOf(r.in.Target)
	}
	if r.stayed {
		p.location = -1
	}
	r.up.path = p.append(r.up.path[:0])
	return r.up.path
}

// locateByText does the same for a target with variables: a URI part of such a text is the whole path. On the way of a
// walk the upstream is that of the stop at hand, whatever the text says by now.
func (r *request) locateByText(d *destination, t *target) outcome {
	r.waited() // for the host's addresses, if it has to be looked up
	scheme, authority, part, ok := t.cut(t.text.Value(r))
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
	at := &r.up.made
	at.scheme = scheme
	at.set(host, port)
	*d = destination{origin: at}
	if part != "" {
		r.up.path = appendTarget(r.up.path[:0], part)
		d.path = r.up.path
	} else {
		d.path = r.made("", -1)
	}
	if port == "" && (walk || r.walk.leads(host)) {
		d.up, d.walk = r.walk.walk.At().Link.(*Upstream), true
		return r.reached(d)
	}
	if port == "" {
		if up := r.env.Upstream(lowerText(host)); up != nil {
			d.up = up
			return r.reached(d)
		}
	}
	return r.reach(d, host+":"+at.port)
}

// reach finds the upstream. A host that no upstream and no constant target names would have to be looked up while the
// request waits, which is not done: 502, as in nginx without a resolver.
func (r *request) reach(d *destination, name string) outcome {
	if len(d.path) == 0 {
		return fail(500)
	}
	if d.up = r.env.Upstream(name); d.up == nil {
		r.why = whyNoUpstream
		(*proxyHooks)(r).Failed(name, nil, whyNoUpstream, errNoUpstream)
		return fail(502)
	}
	return r.reached(d)
}

var errNoUpstream = errors.New("neither an upstream nor a host whose address is known")

// reached finds what the upstream needs to know of the request.
func (r *request) reached(d *destination) outcome {
	if len(r.site.balancing) > 0 {
		d.texts = r.site.balancing[d.up.Name]
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
	r.waited()
	p := r.conf.way()
	h, ok := out.Body.(forward.Holder)
	if !ok || !p.holdBody && (out.Length >= 0 || !p.wire.HTTP10) {
		r.limitBody()
		if k, ok := out.Body.(forward.Keeper); ok && r.up.to.walk {
			k.Keep(r.conf.core.maxBody)
		}
		return outcome{what: onward}
	}
	length, err := h.Hold(r.conf.core.maxBody)
	if err != nil {
		return bodyFault(err)
	}
	out.Length = length
	return outcome{what: onward}
}

// bodyFault answers for a body that can't be had.
func bodyFault(err error) outcome {
	var (
		slow net.Error
		disk *fs.PathError
	)
	switch {
	case errors.Is(err, forward.ErrTooLarge):
		return fail(413)
	case errors.As(err, &slow) && slow.Timeout():
		return fail(408)
	case errors.As(err, &disk):
		return fail(500)
	}
	return fail(400)
}
