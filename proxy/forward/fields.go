package forward

import (
	"bytes"
	"strconv"
)

// Get is the value of the first field of that name, nil when there is none.
func Get(fields []Field, name string) []byte {
	for i := range fields {
		if is(fields[i].Name, name) {
			return fields[i].Value
		}
	}
	return nil
}

func is(have []byte, name string) bool {
	return len(have) == len(name) && bytes.EqualFold(have, []byte(name))
}

// hopByHop are the fields that speak of one connection only. TE and Upgrade are put back where they apply.
var hopByHop = [...]string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "TE", "Upgrade"}

// endToEnd appends to out the fields that travel on: not those of the hop, nor what Connection names.
func endToEnd(out, fields []Field) []Field {
	for _, f := range fields {
		if !isHop(f.Name) && !named(fields, f.Name) {
			out = append(out, f)
		}
	}
	return out
}

func isHop(name []byte) bool {
	for _, h := range hopByHop {
		if is(name, h) {
			return true
		}
	}
	return false
}

// named reports whether a Connection field names the given one.
func named(fields []Field, name []byte) bool {
	for _, f := range fields {
		if is(f.Name, "Connection") && hasToken(f.Value, name) {
			return true
		}
	}
	return false
}

// hasToken looks for a token in a comma-separated list, without regard to case.
func hasToken(list, token []byte) bool {
	for len(list) > 0 {
		item := list
		if i := bytes.IndexByte(list, ','); i >= 0 {
			item, list = list[:i], list[i+1:]
		} else {
			list = nil
		}
		if bytes.EqualFold(bytes.TrimSpace(item), token) {
			return true
		}
	}
	return false
}

// upgradeOf is the protocol that the fields ask to change to, nil when they don't.
func upgradeOf(fields []Field) []byte {
	if !named(fields, []byte("Upgrade")) {
		return nil
	}
	return Get(fields, "Upgrade")
}

// lengthOf is the Content-Length, -1 when there is none that can be read.
func lengthOf(fields []Field) int64 {
	v := Get(fields, "Content-Length")
	if v == nil {
		return -1
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

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
// hop go, and the X-Forwarded fields tell who asked. What a client says in those is kept only when it is trusted to be
// a proxy itself; from anybody else they are replaced, since a backend believes them.
func Outgoing(r *Request, trusted bool) *Request {
	out := *r
	out.Fields = make([]Field, 0, len(r.Fields)+6)
	for _, f := range endToEnd(nil, r.Fields) {
		if !isForwarded(f.Name) {
			out.Fields = append(out.Fields, f)
		}
	}
	if proto := upgradeOf(r.Fields); proto != nil {
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

func isForwarded(name []byte) bool {
	return is(name, "X-Forwarded-For") || is(name, "X-Forwarded-Proto") || is(name, "X-Forwarded-Host")
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
