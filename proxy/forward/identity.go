package forward

import (
	"bytes"
	"net/netip"

	"github.com/upstrand/upstrand/proxy/syntax"
)

// Identity is what backends are told of who asks, and how far a client is believed.
type Identity struct {
	Trusted   bool   // the client is a proxy that is believed about whom it speaks for
	Forwarded bool   // also by RFC 7239
	Via       string // our name in Via; empty: no Via is written
}

var (
	nameRealIP    = []byte("X-Real-IP")
	nameForwarded = []byte("Forwarded")
	nameVia       = []byte("Via")
)

// appendIdentity appends the fields that tell who asks.
func (d *Draft) appendIdentity(r *Request, as Identity) {
	d.forFor = appendForwardedFor(d.forFor[:0], r, as.Trusted)
	fields := added(d.fields, nameForFor, d.forFor)
	fields = added(fields, nameForProto, forwardedAs(r, as.Trusted, "X-Forwarded-Proto", proto(r)))
	fields = added(fields, nameForHost, forwardedAs(r, as.Trusted, "X-Forwarded-Host", r.Authority))
	realIP := d.forFor // the same, as long as nobody else's word counts
	if as.Trusted {
		d.realIP = appendRealIP(d.realIP[:0], r)
		realIP = d.realIP
	}
	if len(realIP) > 0 {
		fields = added(fields, nameRealIP, realIP)
	}
	if as.Forwarded {
		d.forwarded = appendForwarded(d.forwarded[:0], r, as.Trusted)
		fields = added(fields, nameForwarded, d.forwarded)
	}
	if as.Via != "" {
		d.via = appendVia(d.via[:0], r, as.Via)
		fields = added(fields, nameVia, d.via)
	}
	d.fields = fields
}

// appendRealIP gives the address of who asks as a trusted proxy says it, in X-Real-IP or as the last of X-Forwarded-For, else
// the proxy's own; nothing when it is not known.
func appendRealIP(b []byte, r *Request) []byte {
	if v := Get(r.Fields, "X-Real-IP"); isAddr(v) {
		return append(b, v...)
	}
	var last []byte
	for i := range r.Fields {
		if is(r.Fields[i].Name, "X-Forwarded-For") {
			last = r.Fields[i].Value
		}
	}
	last = bytes.TrimSpace(last[bytes.LastIndexByte(last, ',')+1:])
	if isAddr(last) {
		return append(b, last...)
	}
	return r.Remote.Unmap().AppendTo(b)
}

func isAddr(v []byte) bool {
	if len(v) == 0 || len(v) > len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255") {
		return false
	}
	a, err := netip.ParseAddr(string(v))
	return err == nil && a.Zone() == ""
}

// appendForwarded writes the field of RFC 7239. What a trusted proxy says stands before our element, unless it breaks the
// rules of the list: a quote that never ends would make ours part of its own.
func appendForwarded(b []byte, r *Request, trusted bool) []byte {
	if trusted {
		for i := range r.Fields {
			f := &r.Fields[i]
			if !is(f.Name, "Forwarded") || len(f.Value) == 0 {
				continue
			}
			if !isForwarded(f.Value) {
				b = b[:0]
				break
			}
			b = append(append(b, f.Value...), ", "...)
		}
	}
	b = append(b, "for="...)
	switch a := r.Remote.Unmap(); {
	case !a.IsValid():
		b = append(b, "unknown"...)
	case a.Is6():
		b = append(a.WithZone("").AppendTo(append(b, `"[`...)), `]"`...)
	default:
		b = a.AppendTo(b)
	}
	if len(r.Authority) > 0 {
		b = appendWord(append(b, ";host="...), r.Authority)
	}
	return append(append(b, ";proto="...), proto(r)...)
}

// appendWord writes a token, or a quoted string of what is none.
func appendWord(b, word []byte) []byte {
	if tokenLen(word) == len(word) {
		return append(b, word...)
	}
	b = append(b, '"')
	for _, c := range word {
		if c == '"' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return append(b, '"')
}

// tokenLen is how many bytes of the beginning are a token's.
func tokenLen(b []byte) int {
	for i, c := range b {
		if !syntax.Is(c, syntax.Token) {
			return i
		}
	}
	return len(b)
}

// isForwarded tells whether a value keeps to RFC 7239's form: elements of pairs NAME=VALUE, with quotes that end.
func isForwarded(b []byte) bool {
	for len(b) > 0 {
		switch b[0] {
		case ' ', '\t', ',', ';':
			b = b[1:]
			continue
		}
		n := tokenLen(b)
		if n == 0 || n == len(b) || b[n] != '=' {
			return false
		}
		b = b[n+1:]
		if n = valueLen(b); n == 0 {
			return false
		}
		if b = b[n:]; len(b) > 0 && b[0] != ';' && b[0] != ',' && b[0] != ' ' && b[0] != '\t' {
			return false
		}
	}
	return true
}

// valueLen is the length of a token or of a quoted string, 0 for neither.
func valueLen(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return tokenLen(b)
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

// appendVia writes the whole Via field: what came, and us.
func appendVia(b []byte, r *Request, name string) []byte {
	for i := range r.Fields {
		if f := &r.Fields[i]; is(f.Name, "Via") && len(f.Value) > 0 {
			b = append(append(b, f.Value...), ", "...)
		}
	}
	version := "1.1"
	if len(r.Proto) > len("HTTP/") {
		version = r.Proto[len("HTTP/"):]
	}
	return append(append(append(b, version...), ' '), name...)
}

// Loops tells whether the request has been here before: its Via has our name.
func Loops(r *Request, name string) bool {
	for i := range r.Fields {
		if is(r.Fields[i].Name, "Via") && viaNames(r.Fields[i].Value, name) {
			return true
		}
	}
	return false
}

// viaNames looks for a name among the received-by parts of a list; comments are passed over.
func viaNames(list []byte, name string) bool {
	for item := range bytes.SplitSeq(list, []byte(",")) {
		words := bytes.Fields(item)
		if len(words) >= 2 && is(words[1], name) {
			return true
		}
	}
	return false
}
