package front

import (
	"bytes"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// maxEmpty is how many empty lines before a request are passed over: some clients send one after a body.
const maxEmpty = 4

// maxFields bounds a head's fields.
const maxFields = 1000

// head is one head of a request, as far as it was read. All of it points into the bytes that it was fed. What is looked at
// after the request was answered stands first.
type head struct {
	fields []forward.Field
	facts
	req forward.Request // feed sets Line, Method, Target, in origin form or *, and Authority; the rest is for whoever handles it
}

// facts are what is known of a head.
type facts struct {
	fault  *fault // what is wrong with it
	limits *Settings
	pos    int   // bytes taken
	start  int   // of the first line
	length int64 // Content-Length; -1: none was said
	empty  uint8 // empty lines before it
	lined  bool  // there was a first line
	done   bool  // all of it is there, or fault
	minor  byte

	absolute  bool // the target names the authority
	host      bool // there is a Host field
	hosts     bool // there are several
	badHost   bool
	chunked   bool
	close     bool // Connection says so
	keepAlive bool
	upgrade   bool // there is an Upgrade field
	expect    bool // 100-continue
	odd       bool // a field's name is not plain
	once      syntax.Once
}

// reset makes ready for another head, with the room for fields that there is.
func (h *head) reset(limits *Settings) {
	h.fields = h.fields[:0]
	h.facts = facts{}
	h.limits, h.length = limits, -1
	r := &h.req
	r.Line, r.Method, r.Target, r.Authority = nil, nil, nil, nil
}

// feed reads the lines of b that were not taken yet. b is all that came of the head, and may have moved only after a
// reset. It reports whether the head is there, or can't be read any further.
func (h *head) feed(b []byte) bool {
	for !h.done {
		if h.lined {
			if name, value, n, plain := syntax.NextPlain(b[h.pos:]); n > 0 {
				h.odd = h.odd || !plain
				if h.pos += n; h.within(n) {
					h.field(name, value)
				}
				continue
			}
		}
		end := bytes.IndexByte(b[h.pos:], '\n')
		if end < 0 {
			h.partial(b)
			return h.done
		}
		line := b[h.pos : h.pos+end]
		if h.pos += end + 1; h.within(end + 1) {
			h.lineOf(line)
		}
	}
	return true
}

// lineOf takes a line that is no good field. It ends in CR, or should.
func (h *head) lineOf(line []byte) {
	last := len(line) - 1
	switch {
	case last < 0 || line[last] != '\r':
		h.fail(faultBareLF)
	case !h.lined:
		h.first(line[:last:last])
	case last == 0:
		h.check()
		h.done = true
	default:
		_, _, err := syntax.Split(line[:last])
		h.fail(faultOf(err))
	}
}

func (h *head) fail(f *fault) {
	h.fault, h.done = f, true
}

// partial looks at a line whose end has not come: it may be too long already.
func (h *head) partial(b []byte) {
	line := b[h.pos:]
	f := h.over(len(line), len(b)-h.start)
	if f == nil {
		return
	}
	if h.pos = len(b); !h.lined {
		h.req.Line = line
	}
	h.fail(f)
}

// within compares the line that ends where the head was read to, and all up to there, with the limits.
func (h *head) within(line int) bool {
	f := h.over(line, h.pos-h.start)
	if f != nil {
		h.fail(f)
	}
	return f == nil
}

// over compares the bytes of a line, and of all up to its end, with the limits.
func (h *head) over(line, total int) *fault {
	s := h.limits
	switch {
	case !h.lined && (s.ClientLine > 0 && line > s.ClientLine || total > s.ClientMax):
		return faultLongLine
	case !h.lined:
	case s.ClientLine > 0 && line > s.ClientLine:
		return faultLongField
	case s.ClientLines > 0 && total > s.ClientLines:
		return faultLongHead
	case total > s.ClientMax, len(h.fields) > maxFields:
		return faultLarge
	}
	return nil
}

func (h *head) field(name, value []byte) {
	if h.once.Again(name) {
		h.fail(faultRepeated)
		return
	}
	switch len(name) {
	case len("Host"):
		if syntax.Equal(name, "host") {
			h.authority(value)
			return // the request's Authority says it
		}
	case len("Expect"):
		if syntax.Equal(name, "expect") {
			if !syntax.Equal(value, "100-continue") && h.minor > 0 {
				h.fail(faultExpect)
			}
			h.expect = h.minor > 0
		}
	case len("Upgrade"):
		h.upgrade = h.upgrade || syntax.Equal(name, "upgrade")
	case len("Connection"):
		if syntax.Equal(name, "connection") {
			h.close = h.close || syntax.HasToken(value, "close")
			h.keepAlive = h.keepAlive || syntax.HasToken(value, "keep-alive")
		}
	case len("Content-Length"):
		if syntax.Equal(name, "content-length") {
			h.contentLength(value)
		}
	case len("Transfer-Encoding"):
		if syntax.Equal(name, "transfer-encoding") {
			h.coding(value)
			return // it speaks of this connection
		}
	}
	// Each by itself: a literal would be made elsewhere first, and copied.
	h.fields = append(h.fields, forward.Field{})
	f := &h.fields[len(h.fields)-1]
	f.Name, f.Value = name, value
}

// authority takes a Host field. Whom the request is for, its target says before that does.
func (h *head) authority(host []byte) {
	h.host, h.hosts = true, h.host
	h.badHost = !syntax.IsAuthority(host)
	if !h.absolute {
		h.req.Authority = host
	}
}

func (h *head) contentLength(value []byte) {
	if h.length >= 0 {
		h.fail(faultLengths)
		return
	}
	n, err := syntax.Length(value)
	if err != nil {
		h.fail(faultLength)
		return
	}
	h.length = n
}

func (h *head) coding(value []byte) {
	switch {
	case h.chunked:
		h.fail(faultCodings)
	case h.minor == 0:
		h.fail(faultCoding10)
	case syntax.Equal(value, "chunked"):
		h.chunked = true
	case endsChunked(value):
		h.fail(faultCodingUnknown)
	default:
		h.fail(faultCoding)
	}
}

// endsChunked tells whether a list of codings ends with chunked and has it only there, so that the body's end could be
// found.
func endsChunked(list []byte) bool {
	last := bytes.LastIndexByte(list, ',')
	return last > 0 && syntax.Equal(syntax.Trim(list[last+1:]), "chunked") && !syntax.HasToken(list[:last], "chunked")
}

// check looks at a head that is whole.
func (h *head) check() {
	switch {
	case h.chunked && h.length >= 0:
		h.fail(faultBoth)
	case h.hosts:
		h.fail(faultHosts)
	case !h.host && h.minor > 0:
		h.fail(faultNoHost)
	case h.badHost:
		h.fail(faultHost)
	case h.minor == 0 && h.upgrade:
		h.dropUpgrade() // HTTP/1.0 has none
	}
}

func (h *head) dropUpgrade() {
	h.upgrade = false
	kept := h.fields[:0]
	for _, f := range h.fields {
		if !syntax.Equal(f.Name, "upgrade") {
			kept = append(kept, f)
		}
	}
	h.fields = kept
}

// keep tells whether the client wants its connection kept.
func (h *head) keep() bool {
	if h.minor == 0 {
		return h.keepAlive && !h.close
	}
	return !h.close
}
