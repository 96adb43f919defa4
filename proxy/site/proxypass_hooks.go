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
	to       destination
	out      forward.Request
	fields   []forward.Field // of out
	exchange forward.Exchange
	trail    forward.Trail // of all rounds, with dividers
	ask      balance.Ask
	session  []byte
	done     []forward.Releaser // of former rounds: variables may still show their fields
	clock    balance.Clock      // the request's, made once for its memory
	renew    func() (*balance.Group, forward.Walk, bool)
	passed   []forward.Field // those of answer that go on
}

// upstreamTold is the part of it that begins anew with each request.
type upstreamTold struct {
	outcome forward.Outcome
	read    bool // the client's body was sent somewhere before
	moves   int  // from the sites before to this one
	leaves  bool // the site of now goes on

	answered int             // status of the backend's answer, 0 without one
	answer   []forward.Field // its fields
	trailer  []forward.Field
	accel    string // X-Accel-Redirect
}

// begin readies the state for one more exchange.
func (u *upstreamState) begin(r *request) {
	if u.clock == nil {
		u.clock = func() int64 { return r.env.Now() }
		u.renew = r.renewed
	}
	if done := u.exchange.Take(); done != nil {
		u.done = append(u.done, done)
	}
	u.trail.Divide()
	u.answered, u.answer, u.trailer, u.accel = 0, nil, nil, ""
}

func (u *upstreamState) reset() {
	u.exchange.Release()
	u.exchange.Clear() // who panicked left it in the middle
	for _, r := range u.done {
		r.Release()
	}
	clear(u.done)
	clear(u.trail) // of peers that may have left
	u.done, u.trail, u.passed, u.fields = u.done[:0], u.trail[:0], emptied(u.passed), emptied(u.fields)
	u.to = destination{path: u.to.path[:0]}
	u.out.Body = nil
	u.upstreamTold = upstreamTold{}
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
	if to := fieldList(fields).get("X-Accel-Redirect"); len(to) > 0 && p.ignore&ignoreRedirect == 0 && !u.to.walk {
		u.accel = string(to)
		r.keepForAccel(fields)
		return nil, false
	}
	if p.intercept && status >= 300 && r.intercepts(status) {
		if status == 401 {
			r.keep(fields, "WWW-Authenticate")
		}
		return nil, false
	}
	if name := fieldList(fields).get("X-Accel-Charset"); name != nil && p.ignore&ignoreCharset == 0 {
		r.sent.charset = string(name)
	}
	u.passed = r.passOn(u.passed[:0], fields)
	r.sent.proxied = true
	return u.passed, true
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

// passOn appends the fields of an answer that go on, rewritten where the configuration says so.
func (r *request) passOn(out, fields []forward.Field) []forward.Field {
	p := r.conf.way()
	named := forward.NamedBy(fields)
	for _, f := range fields {
		if p.hidden.has(f.Name) && (!p.trailers || !sameName(f.Name, "Trailer")) || named.Has(f.Name) || sameName(f.Name, "Upgrade") || sameName(f.Name, "Proxy-Connection") {
			continue
		}
		switch {
		case sameName(f.Name, "Location"):
			f.Value = r.rewriteLocation(f.Value)
		case sameName(f.Name, "Refresh"):
			f.Value = r.rewriteRefresh(f.Value)
		case sameName(f.Name, "Set-Cookie"):
			f.Value = r.rewriteCookie(f.Value)
		}
		out = append(out, f)
	}
	return out
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
