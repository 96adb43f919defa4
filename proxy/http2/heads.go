package http2

import (
	"bytes"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// heads decodes the heads that come over a connection, one at a time.
type heads struct {
	dec  *hpack.Decoder
	most int // bytes of names and values, each field with 32 more

	// The one that is being read.
	id      uint32  // 0: none is
	frames  int     // that it took
	end     bool    // it ends its stream
	size    int     // of what was decoded
	raw     int     // bytes of the block
	regular bool    // a field that is no pseudo field came
	wrong   bool    // RFC 9113, 8.1.1: malformed
	said    byte    // which pseudo fields came
	to      *stream // nil: it is forgotten. One that it is the end of may have ended, and be used again, before it is whole
	trailer bool

	trailers []forward.Field // its fields when trailer

	method, scheme, authority, path string
	cookies                         int  // place of the cookie field among the fields, from 1 on; 0: there was none
	joined                          bool // its value is memory of ours
}

// mostRaw is how many bytes of a block are decoded at most, in heads that are too large.
const mostRaw = 4

func (h *heads) init(most int) {
	h.most = most
	h.dec = hpack.NewDecoder(4096, h.field)
	h.dec.SetMaxStringLength(2 * most)
}

func (h *heads) begin(id uint32, end bool, s *stream, trailer bool) {
	*h = heads{dec: h.dec, most: h.most, id: id, end: end, to: s, trailer: trailer}
}

// write decodes a piece of the block.
func (h *heads) write(b []byte) error {
	h.raw += len(b)
	h.frames++
	if h.raw+h.frames*headSize > mostRaw*h.most { // frames may be empty
		return errAbuse
	}
	if _, err := h.dec.Write(b); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	return nil
}

func (h *heads) tooLarge() bool { return h.size > h.most }

const (
	saidMethod = 1 << iota
	saidScheme
	saidAuthority
	saidPath
)

// field is told of each field. What is too large in all is dropped: all that is still known is that it was.
func (h *heads) field(f hpack.HeaderField) {
	if h.size += len(f.Name) + len(f.Value) + 32; h.tooLarge() || h.to == nil || h.wrong {
		return
	}
	if f.Name != "" && f.Name[0] == ':' {
		h.pseudo(f)
		return
	}
	h.regular = true
	if !validName(f.Name) || !validValue(f.Value) || forbidden(f.Name, f.Value) {
		h.wrong = true
		return
	}
	name := bytesOf(f.Name)
	switch {
	case h.trailer:
		h.trailers = append(h.trailers, forward.Field{Name: name, Value: bytesOf(f.Value)})
		return
	case f.Name == "cookie" && h.cookies > 0: // RFC 9113, 8.2.3
		c := &h.to.fields[h.cookies-1]
		if !h.joined { // what came is not to be written to; what was joined grows in place
			h.joined, c.Value = true, bytes.Clone(c.Value)
		}
		c.Value = append(append(c.Value, "; "...), f.Value...)
		return
	}
	h.to.fields = append(h.to.fields, forward.Field{Name: name, Value: bytesOf(f.Value)})
	if f.Name == "cookie" {
		h.cookies = len(h.to.fields)
	}
}

func (h *heads) pseudo(f hpack.HeaderField) {
	var bit byte
	var to *string
	switch f.Name {
	case ":method":
		bit, to = saidMethod, &h.method
	case ":scheme":
		bit, to = saidScheme, &h.scheme
	case ":authority":
		bit, to = saidAuthority, &h.authority
	case ":path":
		bit, to = saidPath, &h.path
	}
	if bit == 0 || h.said&bit != 0 || h.regular || h.trailer || !validValue(f.Value) {
		h.wrong = true
		return
	}
	h.said |= bit
	*to = f.Value
}

// malformed tells whether a whole head is none (RFC 9113, 8.3.1).
func (h *heads) malformed() bool {
	switch {
	case h.wrong:
		return true
	case h.trailer:
		return !h.end
	case h.method == "CONNECT":
		return h.said != saidMethod|saidAuthority || h.authority == ""
	}
	return h.method == "" || h.path == "" || h.scheme != "http" && h.scheme != "https"
}

func validName(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' || !syntax.Is(c, syntax.Token) {
			return false
		}
	}
	return true
}

func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c == 0 || c == '\n' || c == '\r' {
			return false
		}
	}
	return s == "" || !isSpace(s[0]) && !isSpace(s[len(s)-1])
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// forbidden tells whether a field speaks of one connection (RFC 9113, 8.2.2).
func forbidden(name, value string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		return true
	case "te":
		return value != "trailers"
	}
	return false
}

// headers takes the beginning of a head, or of trailers.
func (x *session) headers(f *http2.HeadersFrame) error {
	s, trailer, err := x.expect(f)
	if err != nil {
		return err
	}
	x.heads.begin(f.StreamID, f.StreamEnded(), s, trailer)
	if f.HasPriority() && f.Priority.StreamDep == f.StreamID {
		x.heads.wrong = true
	}
	return x.block(f.HeaderBlockFragment(), f.HeadersEnded())
}

func (x *session) more(f *http2.ContinuationFrame) error {
	if x.heads.id != f.StreamID {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return x.block(f.HeaderBlockFragment(), f.HeadersEnded())
}

func (x *session) block(b []byte, whole bool) error {
	h := &x.heads
	if err := h.write(b); err != nil {
		return err
	}
	if !whole {
		if x.stamps.heading.Load() == 0 {
			x.stamps.heading.Store(x.server.now() + int64(x.info.Settings.ClientHeader))
		}
		return nil
	}
	x.stamps.heading.Store(0)
	if h.dec.Close() != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	id := h.id
	h.id = 0
	return x.headed(id)
}
