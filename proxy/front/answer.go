package front

import (
	"net/http"
	"strconv"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// statusLines are those of the statuses that have a name, by status.
var statusLines = func() (lines [600]string) {
	for status := range lines {
		if text := http.StatusText(status); text != "" {
			lines[status] = "HTTP/1.1 " + strconv.Itoa(status) + " " + text + "\r\n"
		}
	}
	return lines
}()

func appendStatus(b []byte, status int) []byte {
	if status >= 0 && status < len(statusLines) && statusLines[status] != "" {
		return append(b, statusLines[status]...)
	}
	b = strconv.AppendInt(append(b, "HTTP/1.1 "...), int64(status), 10)
	return append(b, " \r\n"...)
}

// appendHead appends the answer's head. Names, values and order are as they were given, but for what says how the body is
// framed and what becomes of the connection.
func (cl *client) appendHead(b []byte, status int, fields []forward.Field) []byte {
	b = appendStatus(b, status)
	var framed, dated, said bool
	for i := range fields {
		f := &fields[i]
		switch len(f.Name) {
		case len("Date"):
			dated = dated || syntax.Equal(f.Name, "date")
		case len("Connection"):
			if syntax.Equal(f.Name, "connection") {
				if speaks := cl.decides(f); speaks && !said {
					b, said = cl.appendConnection(b), true
					continue
				} else if speaks {
					continue
				}
			} else if cl.last && syntax.Equal(f.Name, "keep-alive") {
				continue
			}
		case len("Content-Length"):
			if syntax.Equal(f.Name, "content-length") {
				if !framed {
					b, framed = cl.appendLength(b, status, f.Value), true
				}
				continue
			}
		case len("Transfer-Encoding"):
			if syntax.Equal(f.Name, "transfer-encoding") {
				continue
			}
		}
		b = appendField(b, f)
	}
	if !dated {
		b = append(append(append(b, "Date: "...), syntax.Date()...), "\r\n"...)
	}
	return cl.appendRest(b, status, framed, said)
}

// appendRest appends what no field gave a place for, and the end of the head.
func (cl *client) appendRest(b []byte, status int, framed, said bool) []byte {
	switch {
	case cl.framing == byLength && !framed:
		b = cl.appendLength(b, status, nil)
	case cl.framing == byChunks:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	if !said && (cl.last || cl.old) {
		b = cl.appendConnection(b)
	}
	return append(b, "\r\n"...)
}

// decides tells whether a Connection field speaks of what becomes of the connection, and takes note of it.
func (cl *client) decides(f *forward.Field) bool {
	if syntax.Equal(f.Value, "keep-alive") {
		return true
	}
	if syntax.HasToken(f.Value, "close") {
		cl.last = true
		return true
	}
	return false
}

// appendConnection says what becomes of the connection, in the place where a field was given for it.
func (cl *client) appendConnection(b []byte) []byte {
	if cl.last {
		return append(b, "Connection: close\r\n"...)
	}
	return append(b, "Connection: keep-alive\r\n"...)
}

// appendLength writes a Content-Length: that of the body, or what an answer without one says of it.
func (cl *client) appendLength(b []byte, status int, value []byte) []byte {
	length := cl.left
	switch cl.framing {
	case byLength:
	case noBody:
		n, err := syntax.Length(value)
		if err != nil || status == http.StatusNoContent {
			return b
		}
		length = n
	default:
		return b
	}
	return append(strconv.AppendInt(append(b, "Content-Length: "...), length, 10), "\r\n"...)
}

// appendField writes a field. One without a proper name is left out; a control character, which could end the line, becomes
// a space.
func appendField(b []byte, f *forward.Field) []byte {
	if !syntax.IsToken(f.Name) {
		return b
	}
	b = append(append(b, f.Name...), ": "...)
	from := len(b)
	b = append(b, f.Value...)
	if !syntax.IsValue(f.Value) {
		blank(b[from:])
	}
	return append(b, "\r\n"...)
}

// blank makes spaces of control characters.
func blank(value []byte) {
	for i, c := range value {
		if !syntax.Is(c, syntax.Value) {
			value[i] = ' '
		}
	}
}

func appendTrailer(b []byte, trailer []forward.Field) []byte {
	for i := range trailer {
		b = appendField(b, &trailer[i])
	}
	return append(b, "\r\n"...)
}
