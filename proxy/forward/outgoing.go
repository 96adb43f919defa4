package forward

import "bytes"

var (
	nameConnection = []byte("Connection")
	nameUpgrade    = []byte("Upgrade")
	nameTE         = []byte("TE")
	valueTrailers  = []byte("trailers")
	valueHTTP      = []byte("http")
	valueHTTPS     = []byte("https")
	nameForFor     = []byte("X-Forwarded-For")
	nameForProto   = []byte("X-Forwarded-Proto")
	nameForHost    = []byte("X-Forwarded-Host")
)

// Outgoing makes of a client's request the one that goes to backends: target and Host stay as they are, fields of the
// hop go, and X-Forwarded-For, -Proto and -Host and X-Real-IP tell who asked. What a client says about who asks is kept only when it
// is trusted to be a proxy itself; from anybody else those fields are replaced or dropped, since a backend believes
// them. The package's comment lists them.
func Outgoing(r *Request, as Identity) *Request { return new(Draft).Make(r, as) }

// Draft is the memory of a request for backends. What Make gives is valid until the next Make.
type Draft struct {
	request Request
	fields  []Field

	forFor, realIP, forwarded, via []byte
}

// Make is Outgoing in this memory. Of the request it has what backends are told, and none of what is known of a client's only.
func (d *Draft) Make(r *Request, as Identity) *Request {
	q := &d.request
	q.Method, q.Authority, q.Target = r.Method, r.Authority, r.Target
	q.Length, q.Body, q.Remote, q.Secure = r.Length, r.Body, r.Remote, r.Secure
	d.fields = appendOutgoing(d.fields[:0], r, as)
	if proto := upgradeFor(r); proto != nil {
		d.fields = added(added(d.fields, nameConnection, nameUpgrade), nameUpgrade, proto)
	}
	if te := Get(r.Fields, "TE"); te != nil && hasToken(te, valueTrailers) {
		d.fields = added(d.fields, nameTE, valueTrailers)
	}
	d.appendIdentity(r, as)
	q.Fields = d.fields
	return q
}

// Clear lets go of the request, and keeps the memory.
func (d *Draft) Clear() {
	q := &d.request
	q.Method, q.Authority, q.Target, q.Fields, q.Body = nil, nil, nil, nil, nil
	d.fields = emptied(d.fields)
}

// appendOutgoing appends the client's own fields that go on.
func appendOutgoing(out []Field, r *Request, as Identity) []Field {
	o := optionsOf(r.Fields)
	pass := func(name []byte) bool {
		return !isReplaced(name, as) && o.pass(name) && (r.Plain || bytes.IndexByte(name, '_') < 0)
	}
	for i := range r.Fields {
		name, value := r.Fields[i].Name, r.Fields[i].Value
		if !pass(name) {
			continue
		}
		if is(name, "Trailer") {
			if r.Body == nil || r.Length >= 0 { // only what is sent in chunks has trailers
				continue
			}
			if value = trailerNames(value, pass); value == nil {
				continue
			}
		}
		out = added(out, name, value)
	}
	return out
}

// upgradeFor is the change of protocol that a backend is asked for. A request with a body asks for none: the body would
// have to end before the tunnel begins. HTTP/2 is none either: its requests would meet no route and no filter.
func upgradeFor(r *Request) []byte {
	proto := upgradeOf(r.Fields)
	if proto == nil || r.Body != nil || hasToken(proto, []byte("h2c")) || hasToken(proto, []byte("h2")) {
		return nil
	}
	return proto
}

const forwardedFamily = "X-Forwarded-"

// isReplaced names the fields that Outgoing writes itself and, unless the client is trusted, all others that say on whose
// behalf, or as what, a request comes.
func isReplaced(name []byte, as Identity) bool {
	switch len(name) {
	case len("Via"):
		return as.Via != "" && is(name, "Via")
	case len("Forwarded"): // as long as X-Real-IP
		return is(name, "X-Real-IP") || (as.Forwarded || !as.Trusted) && is(name, "Forwarded")
	case len("X-Forwarded-For"):
		if is(name, "X-Forwarded-For") {
			return true
		}
	case len("X-Forwarded-Host"):
		if is(name, "X-Forwarded-Host") {
			return true
		}
	case len("X-Forwarded-Proto"):
		if is(name, "X-Forwarded-Proto") {
			return true
		}
	}
	return !as.Trusted && len(name) > len(forwardedFamily) && is(name[:len(forwardedFamily)], forwardedFamily)
}

func proto(r *Request) []byte {
	if r.Secure {
		return valueHTTPS
	}
	return valueHTTP
}

func forwardedAs(r *Request, trusted bool, name string, own []byte) []byte {
	if !trusted {
		return own
	}
	if v := Get(r.Fields, name); v != nil {
		return v
	}
	return own
}

func appendForwardedFor(list []byte, r *Request, trusted bool) []byte {
	if trusted {
		for i := range r.Fields {
			if f := &r.Fields[i]; is(f.Name, "X-Forwarded-For") && len(f.Value) > 0 {
				list = append(append(list, f.Value...), ", "...)
			}
		}
	}
	return r.Remote.Unmap().AppendTo(list)
}
