package http2

import (
	"strconv"
	"strings"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// Heads are written without a table of the connection's: each field as a literal that is not indexed, its name by the
// static table where that has it (RFC 7541, 6.2.2). So they can be made without a lock, and nothing of them is kept.

// tableSize tells the peer that our table has no room (RFC 7541, 6.3). Each block begins with it; only the first of a
// connection is sent with it.
const tableSize = 0x20

// putHead adds a head to what is written. The mutex is held.
func (x *session) putHead(id uint32, block []byte, end bool) {
	if x.table {
		block = block[1:]
	}
	x.table = true
	x.writeHead(id, block, end)
}

// staticStatus are the statuses that the static table has.
var staticStatus = map[int]byte{200: 8, 204: 9, 206: 10, 304: 11, 400: 12, 404: 13, 500: 14}

// staticNames are the names that it has, but those of pseudo fields.
var staticNames = func() map[string]byte {
	all := map[string]byte{}
	for i, name := range strings.Fields(`accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow
		authorization cache-control content-disposition content-encoding content-language content-length content-location content-range
		content-type cookie date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since
		last-modified link location max-forwards proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie
		strict-transport-security transfer-encoding user-agent vary via www-authenticate`) {
		all[name] = byte(15 + i)
	}
	return all
}()

var nameDate, nameLength = []byte("date"), []byte("content-length")

// appendStatus begins a block.
func appendStatus(b []byte, status int) []byte {
	b = append(b, tableSize)
	if i := staticStatus[status]; i != 0 {
		return append(b, 0x80|i)
	}
	return strconv.AppendInt(append(b, 8, 3), int64(status), 10)
}

// seen is what of a head is written by us when nobody else does.
type seen struct{ date, length bool }

// appendFields appends fields, but those that have no place in HTTP/2.
func appendFields(b []byte, fields []forward.Field, s *seen) []byte {
	for i := range fields {
		b = appendNamed(b, fields[i].Name, fields[i].Value, s)
	}
	return b
}

func appendNamed(b, name, value []byte, s *seen) []byte {
	var room [64]byte
	lower := room[:0]
	if len(name) > len(room) {
		lower = make([]byte, 0, len(name))
	}
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if !syntax.Is(c, syntax.Token) {
			return b
		}
		lower = append(lower, c)
	}
	switch string(lower) {
	case "", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "http2-settings", "te":
		return b
	case "date":
		if s != nil {
			s.date = true
		}
	case "content-length":
		if s == nil {
			return b
		}
		s.length = true
	}
	return appendField(b, lower, value)
}

// appendField appends a field whose name is in lower case.
func appendField(b, name, value []byte) []byte {
	switch i := staticNames[string(name)]; {
	case i >= 15:
		b = append(b, 0x0f, i-15)
	case i > 0:
		b = append(b, i)
	default:
		b = append(appendLength(append(b, 0), len(name)), name...)
	}
	b = appendLength(b, len(value))
	from := len(b)
	b = append(b, value...)
	for i := from; i < len(b); i++ {
		if c := b[i]; c == 0 || c == '\r' || c == '\n' {
			b[i] = ' '
		}
	}
	return b
}

func appendNumber(b, name []byte, n int64) []byte {
	var room [20]byte
	return appendField(b, name, strconv.AppendInt(room[:0], n, 10))
}

// appendLength appends the length of a text that is not coded (RFC 7541, 5.1 with a prefix of 7 bits).
func appendLength(b []byte, n int) []byte {
	if n < 0x7f {
		return append(b, byte(n))
	}
	b = append(b, 0x7f)
	for n -= 0x7f; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}
