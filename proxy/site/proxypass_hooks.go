package site

import (
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// upstreamState is what a request knows of the upstreams it went to, and the memory that it goes there with.
type upstreamState struct {
	upstreamTold
	trail    forward.Trail   // of all rounds, with dividers
	fields   []forward.Field // memory for those of out
	now      balance.Clock   // the request's, made once for its memory
	renew    func() (*balance.Group, forward.Walk, bool)
	ask      balance.Ask
	exchange forward.Exchange
	tries    [1]forward.Try // memory for most trails
	out      forward.Request
	path     []byte // memory for the target of out
	made     origin // of a proxy_pass with variables
	session  []byte
	done     []forward.Releaser // of former rounds: variables may still show their fields
	none     forward.Outcome    // of a request that has no exchange
}

// upstreamTold is the part of it that begins anew with each request.
type upstreamTold struct {
	to     destination
	asked  bool // exchange is this request's
	runs   bool // … and is going on
	holds  bool // done holds something
	read   bool // the client's body was sent somewhere before
	leaves bool // the site of now goes on
	kept   bool // the answer that the exchange before came to was kept back
	moves  int  // from the sites before to this one

	answered int             // status of the backend's answer, 0 without one
	answer   []forward.Field // its fields
	trailer  []forward.Field
	accel    string // X-Accel-Redirect
}

// begin readies the state for another request.
func (u *upstreamState) begin() { u.upstreamTold = upstreamTold{} }

// outcome is what the last exchange came to, of nothing while there was none.
func (u *upstreamState) outcome() *forward.Outcome {
	if !u.asked {
		u.none = forward.Outcome{}
		return &u.none
	}
	return u.exchange.Outcome()
}

// round readies the state for one more exchange.
func (u *upstreamState) round(r *request) {
	u.asked = true
	if u.renew == nil {
		u.trail = u.tries[:0]
		u.now = func() int64 { return r.env.Now() }
		u.renew = r.renewed
	}
	if done := u.exchange.Take(); done != nil {
		u.holds = true
		u.done = append(u.done, done)
	}
	u.trail.Divide()
	u.answered, u.answer, u.trailer, u.accel = 0, nil, nil, ""
}

// clock is the one that exchanges read.
func (r *request) clock() balance.Clock {
	if env, ok := r.env.(Clocked); ok {
		return env.Clock()
	}
	return r.up.now
}

// release gives back what the exchanges hold. The last one stays as it is until another begins: what little of it has to be
// gone is taken out here.
func (u *upstreamState) release() {
	if !u.asked {
		return
	}
	if u.runs { // a panic left it in the middle
		u.exchange.Clear()
	}
	u.exchange.At = 0
	u.exchange.Release()
	clear(u.trail) // of peers that may have left
	u.trail = u.trail[:0]
	if u.holds {
		for _, r := range u.done {
			r.Release()
		}
		clear(u.done)
		u.done = u.done[:0]
	}
	if cap(u.fields) > keptFields {
		u.fields = nil
	}
}

// renewed is the request's upstream as it is now, when all peers that the request knew may have been replaced. A walk takes
// in by itself what is new.
func (r *request) renewed() (*balance.Group, forward.Walk, bool) {
	env, ok := r.env.(Renewer)
	if !ok || r.up.to.walk {
		return nil, nil, false
	}
	now := env.Renew(r.up.to.up)
	if now == nil {
		return nil, nil, false
	}
	r.up.to.up = now
	r.reached(&r.up.to)
	return now.Group, nil, true
}

// proxyHooks is the request as its exchange sees it.
type proxyHooks request

// Ask says what the upstream's method and sticky want to know.
func (h *proxyHooks) Ask(*balance.Group) *balance.Ask {
	r := (*request)(h)
	texts := r.up.to.texts
	a := &r.up.ask
	a.Client, a.Key, a.Session = r.remote, a.Key[:0], a.Session[:0]
	if texts == nil {
		return a
	}
	if texts.key != nil {
		a.Key = texts.key.Append(a.Key, r)
	}
	if texts.cookie != "" {
		id, _ := r.cookie(texts.cookie)
		a.Session = append(a.Session, id...)
	}
	a.Session = firstOf(a.Session, r, texts.lookup)
	return a
}

// Session is what `sticky learn` is to remember.
func (h *proxyHooks) Session(*balance.Group) []byte {
	r := (*request)(h)
	texts := r.up.to.texts
	if texts == nil || len(texts.create) == 0 {
		return nil
	}
	r.up.session = firstOf(r.up.session[:0], r, texts.create)
	return r.up.session
}

// firstOf appends the first text that is not empty.
func firstOf(dst []byte, r *request, texts []*template) []byte {
	for _, t := range texts {
		if dst = t.Append(dst, r); len(dst) > 0 {
			return dst
		}
	}
	return dst
}

// Head decides whether a backend's answer goes to the client, and with which fields.
func (h *proxyHooks) Head(_ *balance.Group, status int, fields []forward.Field) ([]forward.Field, bool) {
	r := (*request)(h)
	u, p := &r.up, r.conf.way()
	u.answered, u.answer = status, fields
	if status == forward.Headless {
		return nil, true
	}
	if u.to.walk && r.walk.upstrand.intercept(status) != "" {
		return nil, false
	}
	r.stick()
	redirect, charset := accelIn(fields)
	if len(redirect) > 0 && p.ignore&ignoreRedirect == 0 && !u.to.walk {
		u.accel = string(redirect)
		r.keepForAccel(fields)
		return nil, false
	}
	if p.intercept && status >= 300 && r.intercepts(status) {
		if status == 401 {
			r.keep(fields, "WWW-Authenticate")
		}
		return nil, false
	}
	if charset != nil && p.ignore&ignoreCharset == 0 {
		r.sent.charset = string(charset)
	}
	s := &r.sent
	r.passOn(s, fields)
	s.proxied = true
	return s.passed[ownFields:], true
}

// placeholders are for what sentState.fill writes.
var placeholders [ownFields]forward.Field

// accelIn is what a backend says to us in its answer's fields; nil: nothing.
func accelIn(fields []forward.Field) (redirect, charset []byte) {
	for i := range fields {
		switch f := &fields[i]; len(f.Name) {
		case len("X-Accel-Redirect"):
			if redirect == nil && sameName(f.Name, "X-Accel-Redirect") {
				redirect = f.Value
			}
		case len("X-Accel-Charset"):
			if charset == nil && sameName(f.Name, "X-Accel-Charset") {
				charset = f.Value
			}
		}
	}
	return redirect, charset
}

// intercepts tells whether an error_page names the status. Also one that can't act any more intercepts: the answer is then
// our own page.
func (r *request) intercepts(status int) bool {
	for i := range r.conf.core.errorPages {
		if r.conf.core.errorPages[i].status == status {
			return true
		}
	}
	return false
}

// passOn lists the fields of an answer that go on, rewritten where the configuration says so.
func (r *request) passOn(s *sentState, fields []forward.Field) {
	p := r.conf.way()
	out := append(s.empty(), placeholders[:]...)
	named := forward.NamedBy(fields)
	for i := range fields {
		f := &fields[i]
		if p.hidden.has(f.Name) && (!p.trailers || !sameName(f.Name, "Trailer")) || named.Has(f.Name) {
			continue
		}
		value := f.Value
		switch len(f.Name) {
		case len("Location"):
			if sameName(f.Name, "Location") {
				value = r.rewriteLocation(value)
			}
		case len("Upgrade"): // or Refresh
			if sameName(f.Name, "Upgrade") {
				continue
			}
			if sameName(f.Name, "Refresh") {
				value = r.rewriteRefresh(value)
			}
		case len("Set-Cookie"):
			if sameName(f.Name, "Set-Cookie") {
				value = r.rewriteCookie(value)
			}
		case len("Proxy-Connection"):
			if sameName(f.Name, "Proxy-Connection") {
				continue
			}
		}
		out.put(f.Name, value)
	}
	s.passed = out
}

// keepForAccel keeps what of an answer with X-Accel-Redirect goes into the one that it leads to.
func (r *request) keepForAccel(fields []forward.Field) {
	r.keep(fields, "Content-Type", "Set-Cookie", "Content-Disposition", "Cache-Control", "Expires", "Accept-Ranges")
}

func (r *request) keep(fields []forward.Field, names ...string) {
	for _, f := range fields {
		for _, name := range names {
			if sameName(f.Name, name) {
				value := append([]byte(nil), f.Value...) // the answer's memory may be used again before ours is sent
				r.sent.extra = append(r.sent.extra, forward.Field{Name: bytesOf(name), Value: value})
			}
		}
	}
}

// Trailer gives what follows a body.
func (h *proxyHooks) Trailer(fields []forward.Field) []forward.Field {
	h.up.trailer = fields
	if !h.conf.way().trailers {
		return nil
	}
	return fields
}

// balancingTexts are the texts of an upstream that are computed for each request.
type balancingTexts struct {
	key     *template // of hash
	cookie  string    // name of sticky's cookie
	lookup  []*template
	create  []*template
	sticky  *topology.Sticky
	age     time.Duration // of sticky's cookie
	expires bool          // it says its age
	domain  *template
	same    *template
}

// balancingOf compiles the texts of all upstreams.
func (c *compiler) balancingOf(groups []*topology.Group) map[string]*balancingTexts {
	out := map[string]*balancingTexts{}
	for _, g := range groups {
		n := &topology.Node{Name: "upstream " + g.Name}
		t := &balancingTexts{}
		if g.Method.Key != "" {
			t.key = c.template(n, g.Method.Key)
		}
		if s := g.Sticky; s != nil {
			t.sticky, t.cookie = s, s.Name
			var err error
			t.age, err = topology.ParseSeconds(s.Expires)
			t.expires = err == nil && s.Expires != "" && s.Expires != "max"
			t.domain, t.same = c.template(n, s.Domain), c.template(n, s.SameSite)
			for _, v := range append(append([]string(nil), s.Variables...), s.Lookup...) {
				t.lookup = append(t.lookup, c.template(n, v))
			}
			for _, v := range s.Create {
				t.create = append(t.create, c.template(n, v))
			}
		}
		if t.key != nil || t.sticky != nil {
			out[g.Name] = t
		}
	}
	return out
}
