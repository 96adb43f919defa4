package site

import (
	"io"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/forward"
)

// outHeader is a proxy_set_header. An empty value sends no such field.
type outHeader struct {
	name  string
	value *template
}

func setProxyHeader(l *level, n *topology.Node) {
	if !l.args(n, 2, 2) {
		return
	}
	if !isFieldName(n.Args[0]) {
		l.problem(n, quote(n.Args[0])+" is no name of a header field", "letters, digits and any of !#$%&'*+-.^_`|~")
		return
	}
	p := &l.settings().proxy
	if l.first(n.Name) {
		p.setHeaders = nil
	}
	p.setHeaders = append(p.setHeaders, outHeader{n.Args[0], l.template(n, n.Args[1])})
}

// outgoingPlan is how the fields of a request to backends are made.
type outgoingPlan struct {
	host  *template   // nil: $proxy_host
	lines []outHeader // as configured, then nginx's own; without Host
	skip  nameSet     // fields of the client that don't go on
	body  bool        // the client's Content-Length may say 0
	// trailers: the client's word in TE that it takes fields after a body goes on
	trailers bool
}

// notPassed are the client's fields that never go on by themselves: those of one connection, and those that are written
// anew. A proxy_set_header of such a name sends it. Without Trailer no fields after the body go on: they would get past what
// the configuration says of fields.
var notPassed = []string{"Host", "Connection", "Keep-Alive", "Proxy-Connection", "HTTP2-Settings", "Expect", "Upgrade", "TE", "Trailer", "Transfer-Encoding", "Content-Length"}

// planOutgoing settles the fields of a level. nginx's own are the Host and, in HTTP/1.0, Connection: close.
func (l *level) planOutgoing(n *topology.Node, p *proxySettings) *outgoingPlan {
	plan := &outgoingPlan{body: true}
	names := append([]string(nil), notPassed...)
	connection := false
	for _, h := range p.setHeaders {
		names = append(names, h.name)
		switch {
		case sameName(bytesOf(h.name), "Host"):
			plan.host = h.value
			continue
		case sameName(bytesOf(h.name), "Transfer-Encoding"): // how a body is framed is no matter of taste
			continue
		case sameName(bytesOf(h.name), "Content-Length"):
			plan.body = h.value.Text() != ""
			continue
		case sameName(bytesOf(h.name), "Connection"):
			connection = true
		}
		if text, constant := h.value.Constant(); constant && text == "" {
			continue
		}
		plan.lines = append(plan.lines, h)
	}
	if p.wire.HTTP10 && !connection {
		plan.lines = append(plan.lines, outHeader{"Connection", l.template(n, "close")})
	}
	if p.target.grpc {
		plan.trailers = true
		for i := range p.setHeaders {
			plan.trailers = plan.trailers && !sameName(bytesOf(p.setHeaders[i].name), "TE")
		}
	}
	plan.skip = newNameSet(names...)
	return plan
}

// outgoing makes the request that goes to backends: out is its memory, of which nothing else is ever written.
func (r *request) outgoing(out *forward.Request, d *destination) {
	p := r.conf.way()
	out.Method, out.Target, out.Remote, out.Secure = r.method, d.path, r.remote, r.in.Secure
	if p.method != nil {
		out.Method = bytesOf(p.method.Value(r))
	}
	if out.Authority = bytesOf(d.origin.host); p.plan.host != nil {
		out.Authority = singleLine(p.plan.host.Value(r))
	}
	r.sent.unsized = string(out.Method) == "HEAD" && !r.head
	empty := p.body == nil && p.plan.body && p.passHeaders && !(p.passBody && r.in.Body != nil) && r.in.Length == 0 && fieldList(r.in.Fields).get("Content-Length") != nil
	out.Fields = r.outgoingFields(empty)
	out.Body, out.Length = nil, 0
	switch {
	case p.body != nil:
		text := p.body.Value(r)
		out.Body, out.Length = &textBody{text: text}, int64(len(text))
	case p.passBody && r.in.Body != nil:
		out.Body, out.Length = r.in.Body, r.in.Length
	}
}

// outgoingFields are the fields of the request to backends; empty: it says that its body is empty. Where all that they are is
// a piece of the client's own list, that is it, unless there is a span: that changes them.
func (r *request) outgoingFields(empty bool) []forward.Field {
	p, old := r.conf.way(), r.up.fields
	fields := fieldList(old[:0])
	for i := range p.plan.lines {
		h := &p.plan.lines[i]
		if value := h.value.Value(r); value != "" {
			fields.add(h.name, singleLine(value))
		}
	}
	if p.plan.trailers && takesTrailers(r.in.Fields) {
		fields.put(nameTE, valueTrailers)
	}
	if p.passHeaders {
		named := forward.NamedBy(r.in.Fields)
		first, last := p.plan.piece(r.in.Fields, named)
		if last == len(r.in.Fields) && len(fields) == 0 && !empty && r.span == nil {
			return r.in.Fields[first:last:last]
		}
		fields = append(fields, r.in.Fields[first:last]...)
		for i := last; i < len(r.in.Fields); i++ {
			if f := &r.in.Fields[i]; p.plan.passes(f.Name, named) {
				fields.put(f.Name, f.Value)
			}
		}
	}
	if empty {
		fields.put(nameContentLength, valueZero)
	}
	if len(fields) < len(old) {
		clear(old[len(fields):]) // of a request before
	}
	r.up.fields = fields
	return fields
}

// passes tells whether a field of the client goes on.
func (p *outgoingPlan) passes(name []byte, named forward.Named) bool {
	return !p.skip.has(name) && !named.Has(name)
}

// piece is the first of the fields that go on with no other one between them.
func (p *outgoingPlan) piece(fields []forward.Field, named forward.Named) (first, last int) {
	for first < len(fields) && !p.passes(fields[first].Name, named) {
		first++
	}
	for last = first; last < len(fields) && p.passes(fields[last].Name, named); {
		last++
	}
	return first, last
}

// textBody is a body that the configuration gives.
type textBody struct {
	text string
	at   int
}

func (b *textBody) Read(p []byte) (int, error) {
	n := copy(p, b.text[b.at:])
	if b.at += n; b.at == len(b.text) {
		return n, io.EOF
	}
	return n, nil
}

func (b *textBody) Trailer() []forward.Field { return nil }
func (b *textBody) Rewind() error            { b.at = 0; return nil }
func (b *textBody) Rewindable() bool         { return true }

// Whole is what the engine asks: reads never wait.
func (b *textBody) Whole() bool { return true }
