package nethttp

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/upstrand/upstrand/proxy/forward"
)

func (s *Server) request(r *http.Request, rc *http.ResponseController) (*forward.Request, *replay) {
	if !r.ProtoAtLeast(1, 1) {
		r.Header.Del("Upgrade") // HTTP/1.0 has none
	}
	req := &forward.Request{
		Method:    []byte(r.Method),
		Authority: []byte(r.Host),
		Target:    []byte(originForm(r.RequestURI)),
		Fields:    append(fieldsOf(r.Header), announced(r.Trailer)...),
		Length:    r.ContentLength,
		Secure:    r.TLS != nil,
		Proto:     "HTTP/1.1",
		Local:     local(r.Context()),
	}
	if !r.ProtoAtLeast(1, 1) {
		req.Proto = "HTTP/1.0"
	}
	req.Remote, req.RemotePort = remote(r.RemoteAddr)
	if req.Refuse, req.Invalid = s.tooLong(r); req.Invalid == "" {
		req.Invalid = invalid(r)
	}
	if r.ContentLength == 0 {
		return req, nil
	}
	// An answer may begin before the body has ended; without this net/http would read the rest of it first.
	_ = rc.EnableFullDuplex()
	body := &replay{r: r, rc: rc, idle: s.settings.ClientBody, limit: s.settings.Replay, dir: s.settings.Folder}
	req.Body = body
	return req, body
}

// invalid says what of a request that net/http accepts is wrong all the same. Backends, and proxies before us, may take
// such a one for another than we do.
func invalid(r *http.Request) string {
	target := r.RequestURI
	switch {
	case r.Method == http.MethodConnect: // is refused anyway
		return ""
	case target == "*":
		if r.Method != http.MethodOptions {
			return "the target * is for OPTIONS only"
		}
	case !strings.HasPrefix(target, "/"):
		if u := r.URL; u.User != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "the target is neither a path nor an http address"
		}
	}
	switch {
	case r.Host == "" && r.ProtoAtLeast(1, 1):
		return "the Host field is empty"
	case r.Host != "" && !validAuthority(r.Host):
		return "the host is not valid"
	}
	return ""
}

// validAuthority tells whether s is a host, or an address, with or without a port.
func validAuthority(s string) bool {
	host, port := s, ""
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return false
		}
		if a, err := netip.ParseAddr(s[1:end]); err != nil || !a.Is6() || a.Zone() != "" {
			return false
		}
		if host, port = "", s[end+1:]; port != "" && port[0] != ':' {
			return false
		}
		port = strings.TrimPrefix(port, ":")
	} else if i := strings.IndexByte(s, ':'); i >= 0 {
		if host, port = s[:i], s[i+1:]; host == "" {
			return false
		}
	}
	return only(host, isHostByte) && only(port, func(c byte) bool { return c >= '0' && c <= '9' })
}

func only(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isHostByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~!$&'()*+,;=%", c) >= 0
}

// originForm takes the authority out of a target that a client sent as to a forward proxy.
func originForm(target string) string {
	if strings.HasPrefix(target, "/") {
		return target
	}
	_, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		if rest[i] == '?' {
			return "/" + rest[i:]
		}
		return rest[i:]
	}
	return "/"
}

func remote(addr string) (netip.Addr, uint16) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return netip.Addr{}, 0
	}
	return ap.Addr().Unmap().WithZone(""), ap.Port()
}

// local is the address that a connection was made to.
func local(ctx context.Context) netip.AddrPort {
	tcp, ok := ctx.Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// tooLong says what of a head is longer than it may be, and with which status that is answered.
func (s *Server) tooLong(r *http.Request) (status int, why string) {
	line, lines := s.settings.ClientLine, s.settings.ClientLines
	if line <= 0 && lines <= 0 {
		return 0, ""
	}
	first := len(r.Method) + len(r.RequestURI) + len(" ") + len(" HTTP/1.1\r\n")
	if line > 0 && first > line {
		return http.StatusRequestURITooLong, "the request's first line is too long"
	}
	total := first
	for name, values := range r.Header {
		for _, v := range values {
			field := len(name) + len(": ") + len(v) + len("\r\n")
			if total += field; line > 0 && field > line {
				return http.StatusBadRequest, "a header field is too long"
			}
		}
	}
	if lines > 0 && total > lines {
		return http.StatusBadRequest, "the header is too long"
	}
	return 0, ""
}
