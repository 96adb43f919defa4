package http2

import (
	"strings"

	"golang.org/x/net/http2"

	"github.com/upstrand/upstrand/proxy/body"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/front"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// expect finds what a head is for: a new stream, or the end of a body. It is nil when the head is to be read and forgotten.
func (x *session) expect(f *http2.HeadersFrame) (s *stream, trailer bool, err error) {
	id := f.StreamID
	x.mu.Lock()
	defer x.mu.Unlock()
	switch s = x.streams[id]; {
	case id%2 == 0:
		return nil, false, http2.ConnectionError(http2.ErrCodeProtocol)
	case s != nil && s.ended:
		return nil, false, http2.ConnectionError(http2.ErrCodeStreamClosed)
	case s != nil:
		return s, true, nil
	case x.lateAt(id) >= 0:
		if i := x.lateAt(id); f.StreamEnded() {
			x.endLate(i)
		} else {
			x.resetLate(i, http2.ErrCodeProtocol)
		}
		return nil, false, nil
	case id <= x.last && x.ours(id):
		return nil, false, nil
	case id <= x.last:
		return nil, false, http2.ConnectionError(http2.ErrCodeStreamClosed)
	case x.leaving:
		return nil, false, nil
	}
	x.last = id
	return newStream(x, id), false, nil
}

// headed is done with a whole head.
func (x *session) headed(id uint32) error {
	h := &x.heads
	s := h.to
	h.to = nil
	switch {
	case s == nil:
		return nil
	case h.trailer:
		return x.trailed(id, h)
	case h.malformed() && !h.tooLarge():
		s.release()
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	}
	if !x.admit(s, h) {
		s.release()
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
	}
	x.server.requests.Add(1)
	x.idle.start(s)
	return nil
}

// admit makes a request of a head, unless as many as may be are answered already.
func (x *session) admit(s *stream, h *heads) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.running >= streamsOf(&x.info.Settings) {
		return false
	}
	if x.running+len(x.late) >= streamsOf(&x.info.Settings) && len(x.late) > 0 {
		x.resetLate(0, http2.ErrCodeNo) // for the client they are streams as well
	}
	x.served++
	s.window = x.initial
	s.ended = h.end
	s.fill(h, x.served)
	x.running++
	x.streams[s.id] = s
	x.settleIdle()
	return true
}

// trailed ends a body.
func (x *session) trailed(id uint32, h *heads) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.streams[id]
	if s == nil { // it ended meanwhile
		if i := x.lateAt(id); i >= 0 {
			x.endLate(i)
		}
		return nil
	}
	if h.malformed() || h.tooLarge() || s.length >= 0 && s.came != s.length {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	}
	s.trailers, s.ended = append(s.trailers, h.trailers...), true
	s.arrived.Broadcast()
	return nil
}

// fill makes the request of a head. The session's mutex is held.
func (s *stream) fill(h *heads, served int64) {
	info := &s.x.info
	r := &s.request
	*r = forward.Request{
		Method: bytesOf(h.method), Authority: bytesOf(h.authority), Target: bytesOf(h.path),
		Remote: info.Remote.Addr(), RemotePort: info.Remote.Port(), Local: info.Local, Secure: info.TLS != nil, TLS: info.TLS, Proxy: info.Proxy,
		Proto: "HTTP/2.0", Connection: info.Number, Served: served,
		HeadSize: int64(h.raw) + headSize, Scratch: &s.scratch,
	}
	if h.method == "CONNECT" {
		r.Target = r.Authority
	}
	if h.tooLarge() {
		r.Invalid, r.Refuse = "the header is too large", 431
	}
	if r.Invalid == "" {
		r.Refuse, r.Invalid = tooLong(h, s.fields, &info.Settings)
	}
	s.length = -1
	if why := s.sort(h); r.Invalid == "" {
		if r.Invalid = why; why == unexpected {
			r.Refuse = 417
		}
	}
	r.Fields = s.fields
	switch {
	case s.ended && s.length > 0 && r.Invalid == "":
		r.Invalid = "the body is shorter than its Content-Length"
	case s.ended || s.length == 0:
		s.asked = false
	default:
		r.Length = s.length
		s.body = body.New(s, body.Options{Length: s.length, Memory: info.Settings.Replay, Folder: info.Settings.Folder})
		r.Body = s.body
	}
}

const unexpected = "the expectation is not known"

// sort takes Host and Expect out of the fields, reads the length, and says what of the request is wrong. Backends, and proxies
// before us, may take such a one for another than we do.
func (s *stream) sort(h *heads) (invalid string) {
	r := &s.request
	host, hosts, lengths := "", 0, 0
	kept := s.fields[:0]
	var once syntax.Once
	for _, f := range s.fields {
		if once.Again(f.Name) {
			invalid = "a field that may stand once only is there twice"
		}
		switch string(f.Name) {
		case "host":
			host, hosts = string(f.Value), hosts+1
			continue
		case "expect":
			if strings.EqualFold(string(f.Value), "100-continue") {
				s.asked = true
				continue
			}
			invalid = unexpected
		case "content-length":
			if lengths++; !s.measure(f.Value) {
				invalid = "the Content-Length is not valid"
			}
		}
		if !only(f.Value, syntax.Value) {
			invalid = "a field has a control character in its value"
		}
		kept = append(kept, f)
	}
	clear(s.fields[len(kept):])
	s.fields = kept
	if h.authority == "" && hosts == 1 {
		r.Authority = []byte(host)
	}
	switch {
	case lengths > 1:
		return "more than one Content-Length"
	case invalid != "" || h.method == "CONNECT" || h.tooLarge(): // which is refused anyway, and of the latter much is not known
		return invalid
	case !only(h.method, syntax.Method):
		return "the method is not valid"
	case h.path == "*" && h.method != "OPTIONS":
		return "the target * is for OPTIONS only"
	case h.path != "*" && h.path[0] != '/':
		return "the target is no path"
	case !only(h.path, syntax.Asked):
		return "the target is not valid"
	case hosts > 1 || hosts == 1 && h.authority != "" && !strings.EqualFold(host, h.authority):
		return "the host is said twice"
	case !syntax.IsAuthority(r.Authority):
		return "the host is not valid"
	}
	return ""
}

// measure reads a Content-Length.
func (s *stream) measure(v []byte) bool {
	if len(v) == 0 || len(v) > 18 || !only(v, syntax.Digit) {
		return false
	}
	n := int64(0)
	for _, c := range v {
		n = n*10 + int64(c-'0')
	}
	s.length = n
	return true
}

// tooLong says what of a head is longer than it may be, and with which status that is answered.
func tooLong(h *heads, fields []forward.Field, s *front.Settings) (status int, why string) {
	if s.ClientLine <= 0 && s.ClientLines <= 0 {
		return 0, ""
	}
	first := len(h.method) + len(h.path) + len(" ") + len(" HTTP/2.0\r\n")
	if s.ClientLine > 0 && first > s.ClientLine {
		return 414, "the request's target is too long"
	}
	total := first
	for i := range fields {
		field := len(fields[i].Name) + len(": ") + len(fields[i].Value) + len("\r\n")
		if total += field; s.ClientLine > 0 && field > s.ClientLine {
			return 400, "a header field is too long"
		}
	}
	if s.ClientLines > 0 && total > s.ClientLines {
		return 400, "the header is too long"
	}
	return 0, ""
}
