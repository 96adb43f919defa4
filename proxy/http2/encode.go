package http2

import (
	"bytes"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// What makes a request one that can't be sent.
var (
	errMethod = errors.New("bad method")
	errTarget = errors.New("bad target")
	errHost   = errors.New("bad host")
)

// newRequest is the request as net/http takes it, without its body. What it says of the connection stays behind; so does TE but
// for trailers.
func newRequest(r *forward.Request, peer *balance.Peer) (*http.Request, error) {
	method, host, target := string(r.Method), string(r.Authority), string(r.Target)
	switch {
	case method == "" || !only(method, syntax.Token) || method == http.MethodConnect:
		return nil, errMethod
	case target == "" || target[0] != '/' && target != "*" || !only(target, syntax.Asked):
		return nil, errTarget
	case host == "":
		host = peer.Addr()
	case !only(host, syntax.Asked):
		return nil, errHost
	}
	req := &http.Request{
		Method: method, URL: &url.URL{Scheme: peer.Scheme(), Host: host, Opaque: target}, Host: host,
		Header: make(http.Header, len(r.Fields)+1), Proto: "HTTP/2.0", ProtoMajor: 2,
	}
	if strings.HasPrefix(target, "//") { // else net/http would take it for a host
		req.URL.Opaque = "//" + host + target
	}
	addFields(req.Header, r.Fields)
	settle(req.Header)
	if r.Body != nil {
		req.ContentLength = r.Length
		req.Trailer = announcedBy(r.Fields)
	}
	return req, nil
}

// settle takes out what net/http writes itself, or must not.
func settle(h http.Header) {
	for _, name := range [...]string{"Host", "Content-Length", "Trailer"} {
		delete(h, name)
	}
	if te := h["Te"]; te != nil {
		if delete(h, "Te"); hasToken(te, "trailers") {
			h["Te"] = trailers
		}
	}
	if len(h["User-Agent"]) == 0 {
		h["User-Agent"] = none // else net/http names itself
	}
}

var trailers, none = []string{"trailers"}, []string{""}

func hasToken(lists []string, token string) bool {
	for _, list := range lists {
		for item := range strings.SplitSeq(list, ",") {
			item, _, _ = strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(item), token) {
				return true
			}
		}
	}
	return false
}

// announcedBy is the names of fields that may follow the body.
func announcedBy(fields []forward.Field) http.Header {
	var out http.Header
	for i := range fields {
		if !strings.EqualFold(string(fields[i].Name), "Trailer") {
			continue
		}
		for name := range bytes.SplitSeq(fields[i].Value, []byte(",")) {
			key := textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(string(name)))
			if key == "" || !only(key, syntax.Token) || ofConnection[key] || key == "Trailer" || key == "Content-Length" {
				continue
			}
			if out == nil {
				out = http.Header{}
			}
			out[key] = nil
		}
	}
	return out
}
