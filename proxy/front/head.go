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

// head is one head of a request, as far as it was read. All of it points into the bytes that it was fed.
type head struct {
	limits *Settings

	pos    int // bytes taken
	start  int // of the first line
	empty  int // empty lines before it
	lined  bool
	done   bool   // all of it is there, or fault
	fault  *fault // what is wrong with it
	line   []byte // the first one, without its end
	method []byte
	target []byte // in origin form, or *
	named  []byte // the authority that the target names
	minor  byte
	fields []forward.Field

	host      []byte
	hosts     int
	length    int64 // Content-Length; -1: none was said
	chunked   bool
	close     bool // Connection says so
	keepAlive bool
	upgrade   bool // there is an Upgrade field
	expect    bool // 100-continue
	absolute  bool
}

// reset makes ready for another head, with the room for fields that there is.
func (h *head) reset(limits *Settings) {
	*h = head{limits: limits, fields: h.fields[:0], length: -1}
}

// feed reads the lines of b that were not taken yet. b is all that came of the head, and may have moved only after a
// reset. It reports whether the head is there, or can't be read any further.
func (h *head) feed(b []byte) bool {
	for !h.done {
		end := bytes.IndexByte(b[h.pos:], '\n')
		if end < 0 {
			h.partial(b)
			return h.done
		}
		line := b[h.pos : h.pos+end]
		h.pos += end + 1
		if f := h.over(len(line)+1, h.pos-h.start); f != nil {
			h.fail(f)
			break
		}
		switch {
		case len(line) == 0 || line[len(line)-1] != '\r':
			h.fail(faultBareLF)
		case !h.lined:
			h.first(line[: len(line)-1 : len(line)-1])
		case len(line) == 1:
			h.check()
			h.done = true
		default:
			h.field(line[:len(line)-1])
		}
	}
	return true
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
		h.line = line
	}
	h.fail(f)
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

func (h *head) field(line []byte) {
	name, value, err := syntax.Split(line)
	if err != nil {
		h.fail(faultOf(err))
		return
	}
	switch len(name) {
	case len("Host"):
		if syntax.Equal(name, "host") {
			h.host = value
			h.hosts++
			return // the authority says it
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
	h.fields = append(h.fields, forward.Field{Name: name, Value: value})
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
	case h.hosts > 1:
		h.fail(faultHosts)
	case h.hosts == 0 && h.minor > 0:
		h.fail(faultNoHost)
	case h.hosts == 1 && !syntax.IsAuthority(h.host):
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

// authority is whom the request is for: the target says it before the Host field does.
func (h *head) authority() []byte {
	if h.absolute {
		return h.named
	}
	return h.host
}

// keep tells whether the client wants its connection kept.
func (h *head) keep() bool {
	if h.minor == 0 {
		return h.keepAlive && !h.close
	}
	return !h.close
}
