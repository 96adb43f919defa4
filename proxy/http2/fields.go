package http2

import (
	"net/http"
	"net/textproto"
	"strings"
	"unsafe"

	"github.com/upstrand/upstrand/proxy/forward"
)

// bytesOf gives a text as bytes without a copy. They must not be written to.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// fieldsOf appends the fields of a head, sorted by name: the client's order is lost, and this one is at least always
// the same.
func fieldsOf(out []forward.Field, h http.Header) []forward.Field {
	from := len(out)
	for name, values := range h {
		for _, v := range values {
			out = append(out, forward.Field{Name: bytesOf(name), Value: bytesOf(v)})
		}
	}
	for i := from + 1; i < len(out); i++ { // heads are short
		for j := i; j > from && string(out[j].Name) < string(out[j-1].Name); j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

// announced is the Trailer field for the names that net/http took out of the head.
func announced(trailer http.Header) string {
	names := make([]string, 0, len(trailer))
	for name := range trailer {
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// addFields puts fields into a head that is written, but those that speak of one connection. It takes one copy of all
// names and values: net/http keeps some of them for the heads that follow.
func addFields(h http.Header, fields []forward.Field) {
	size := 0
	for i := range fields {
		size += len(fields[i].Value)
	}
	var all strings.Builder
	all.Grow(size)
	for i := range fields {
		all.Write(fields[i].Value)
	}
	values, texts := make([]string, len(fields)), all.String()
	for i := range fields {
		n := len(fields[i].Value)
		values[i], texts = texts[:n], texts[n:]
		name := canonical(fields[i].Name)
		switch {
		case ofConnection[name]:
		case h[name] == nil:
			h[name] = values[i : i+1 : i+1]
		default:
			h[name] = append(h[name], values[i])
		}
	}
}

// ofConnection are the fields that have no place in HTTP/2 (RFC 9113, 8.2.2).
var ofConnection = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Transfer-Encoding": true, "Upgrade": true, "Http2-Settings": true,
}

// canonical is a name as net/http writes it. Common ones cost nothing.
func canonical(name []byte) string {
	if s, ok := known[string(name)]; ok {
		return s
	}
	return textproto.CanonicalMIMEHeaderKey(string(name))
}

var known = func() map[string]string {
	all := map[string]string{}
	for _, s := range strings.Fields(`Accept-Ranges Access-Control-Allow-Headers Access-Control-Allow-Methods Access-Control-Allow-Origin
		Age Allow Alt-Svc Cache-Control Connection Content-Disposition Content-Encoding Content-Language Content-Length Content-Range
		Content-Type Date Etag Expires Grpc-Encoding Grpc-Message Grpc-Status Keep-Alive Last-Modified Link Location Pragma Retry-After Server
		Set-Cookie Strict-Transport-Security Trailer Transfer-Encoding Vary Via X-Content-Type-Options X-Frame-Options X-Powered-By
		X-Request-Id X-Xss-Protection`) {
		all[s], all[strings.ToLower(s)] = s, s
	}
	all["ETag"] = "Etag"
	return all
}()
