package forward

import "bytes"

var (
	nameConnection = []byte("Connection")
	nameUpgrade    = []byte("Upgrade")
	nameTE         = []byte("TE")
	valueTrailers  = []byte("trailers")
	nameForFor     = []byte("X-Forwarded-For")
	nameForProto   = []byte("X-Forwarded-Proto")
	nameForHost    = []byte("X-Forwarded-Host")
)

// Outgoing makes of a client's request the one that goes to backends: target and Host stay as they are, fields of the
// hop go, and X-Forwarded-For, -Proto and -Host tell who asked. What a client says about who asks is kept only when it
// is trusted to be a proxy itself; from anybody else those fields are replaced or dropped, since a backend believes
// them. The package's comment lists them.
func Outgoing(r *Request, trusted bool) *Request {
	out := *r
	options := optionsOf(r.Fields)
	out.Fields = keep(make([]Field, 0, len(r.Fields)+6), r.Fields, func(name []byte) bool {
		switch {
		case is(name, "Trailer") && (r.Body == nil || r.Length >= 0): // only what is sent in chunks has trailers
			return false
		case bytes.IndexByte(name, '_') >= 0, isReplaced(name), !trusted && isIdentity(name):
			return false
		}
		return options.pass(name)
	})
	if proto := upgradeFor(r); proto != nil {
		out.Fields = append(out.Fields, Field{nameConnection, nameUpgrade}, Field{nameUpgrade, proto})
	}
	if te := Get(r.Fields, "TE"); te != nil && hasToken(te, valueTrailers) {
		out.Fields = append(out.Fields, Field{nameTE, valueTrailers})
	}
	out.Fields = append(out.Fields,
		Field{nameForFor, forwardedFor(r, trusted)},
		Field{nameForProto, forwardedAs(r, trusted, "X-Forwarded-Proto", proto(r))},
		Field{nameForHost, forwardedAs(r, trusted, "X-Forwarded-Host", r.Authority)})
	return &out
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

// isReplaced names the fields that Outgoing writes itself.
func isReplaced(name []byte) bool {
	return is(name, "X-Forwarded-For") || is(name, "X-Forwarded-Proto") || is(name, "X-Forwarded-Host")
}

// isIdentity names the fields that say on whose behalf, or as what, a request comes.
func isIdentity(name []byte) bool {
	const family = "X-Forwarded-"
	return is(name, "Forwarded") || is(name, "X-Real-IP") || len(name) > len(family) && is(name[:len(family)], family)
}

func proto(r *Request) []byte {
	if r.Secure {
		return []byte("https")
	}
	return []byte("http")
}

func forwardedAs(r *Request, trusted bool, name string, own []byte) []byte {
	if v := Get(r.Fields, name); trusted && v != nil {
		return v
	}
	return own
}

func forwardedFor(r *Request, trusted bool) []byte {
	var list []byte
	for _, f := range r.Fields {
		if trusted && is(f.Name, "X-Forwarded-For") && len(f.Value) > 0 {
			list = append(append(list, f.Value...), ", "...)
		}
	}
	return r.Remote.Unmap().AppendTo(list)
}
