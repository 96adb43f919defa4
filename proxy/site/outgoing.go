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

// outgoing makes the request that goes to backends: out is its memory.
func (r *request) outgoing(out *forward.Request, d *destination, fields []forward.Field) {
	p := r.conf.way()
	*out = forward.Request{Method: r.method, Target: d.path, Remote: r.remote, Secure: r.in.Secure}
	if p.method != nil {
		out.Method = bytesOf(p.method.Value(r))
	}
	if out.Authority = bytesOf(d.host); p.plan.host != nil {
		out.Authority = singleLine(p.plan.host.Value(r))
	}
	out.Fields = r.outgoingFields(fields[:0])
	switch {
	case p.body != nil:
		text := p.body.Value(r)
		out.Body, out.Length = &textBody{text: text}, int64(len(text))
	case p.passBody && r.in.Body != nil:
		out.Body, out.Length = r.in.Body, r.in.Length
	case p.plan.body && p.passHeaders && r.in.Length == 0 && fieldList(r.in.Fields).get("Content-Length") != nil:
		out.Fields = append(out.Fields, forward.Field{Name: nameContentLength, Value: valueZero})
	}
}

func (r *request) outgoingFields(fields []forward.Field) []forward.Field {
	p := r.conf.way()
	for i := range p.plan.lines {
		h := &p.plan.lines[i]
		if value := h.value.Value(r); value != "" {
			fields = append(fields, forward.Field{Name: bytesOf(h.name), Value: singleLine(value)})
		}
	}
	if p.plan.trailers && takesTrailers(r.in.Fields) {
		fields = append(fields, forward.Field{Name: nameTE, Value: valueTrailers})
	}
	if p.passHeaders {
		named := forward.NamedBy(r.in.Fields)
		for _, f := range r.in.Fields {
			if !p.plan.skip.has(f.Name) && !named.Has(f.Name) {
				fields = append(fields, f)
			}
		}
	}
	return fields
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
