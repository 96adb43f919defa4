package http1

import (
	"bytes"
	"errors"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// What can be wrong with an answer's head.
var (
	errNoHTTP     = errors.New("the answer does not begin as HTTP/1 does")
	errStatusLine = errors.New("bad status line")
	errLengths    = errors.New("more than one Content-Length")
	errCoding     = errors.New("a Transfer-Encoding other than chunked")
	errBoth       = errors.New("Content-Length and Transfer-Encoding")
	errCoding10   = errors.New("Transfer-Encoding in an answer of HTTP/1.0")
)

// head is one head of an answer, as far as it was read.
type head struct {
	fields []forward.Field
	status int   // 0: the first line is still to come
	length int64 // Content-Length; -1: none was said

	minor     byte
	chunked   bool
	close     bool // Connection says so
	keepAlive bool
}

func newHead(fields []forward.Field) head { return head{fields: fields, length: -1} }

var protocol = []byte("HTTP/1.")

// feed reads whole lines of b. It gives the number of bytes that they take, and whether the empty line at the end was among
// them. Fields point into b.
func (h *head) feed(b []byte) (n int, done bool, err error) {
	if h.status == 0 && !bytes.HasPrefix(b, protocol[:min(len(b), len(protocol))]) {
		return 0, false, errNoHTTP
	}
	for {
		if h.status != 0 {
			took, err := h.lines(b[n:])
			if n += took; err != nil {
				return n, false, err
			}
			if len(b)-n >= 2 && b[n] == '\r' && b[n+1] == '\n' {
				return n + 2, true, h.check()
			}
		}
		// The first line, or one that is not good or not there yet.
		end := bytes.IndexByte(b[n:], '\n')
		if end < 0 {
			return n, false, nil
		}
		line := b[n : n+end]
		n += end + 1
		if len(line) == 0 || line[len(line)-1] != '\r' {
			return n, false, syntax.ErrBareLF
		}
		line = line[:len(line)-1]
		switch {
		case h.status == 0:
			err = h.statusLine(line)
		default:
			_, _, err = syntax.Split(line)
		}
		if err != nil {
			return n, false, err
		}
	}
}

// statusLine reads "HTTP/1.1 200 Reason"; the reason, and the space before it when there is none, may be missing.
func (h *head) statusLine(s []byte) error {
	const digits = len("HTTP/1.x ")
	if len(s) < digits+3 || s[digits-1] != ' ' || s[digits-2] < '0' || s[digits-2] > '9' {
		return errStatusLine
	}
	status := 0
	for _, c := range s[digits : digits+3] {
		if c < '0' || c > '9' {
			return errStatusLine
		}
		status = status*10 + int(c-'0')
	}
	rest := s[digits+3:]
	if status < 100 || len(rest) > 0 && rest[0] != ' ' || !inValue(rest) {
		return errStatusLine
	}
	h.status, h.minor = status, s[digits-2]-'0'
	return nil
}

// lines takes the fields of whole lines at the beginning of b, as many as are good.
func (h *head) lines(b []byte) (n int, err error) {
	fields := h.fields
	for err == nil {
		name, value, took := syntax.Next(b[n:])
		if took == 0 {
			break
		}
		n += took
		fields = append(fields, forward.Field{})
		f := &fields[len(fields)-1] // in place: a Field that is built first and copied then is waited for
		f.Name, f.Value = name, value
		err = h.special(name, value)
	}
	h.fields = fields
	return n, err
}

// special takes in what a field says of the framing.
func (h *head) special(name, value []byte) error {
	switch len(name) {
	case len("Content-Length"):
		if is(name, "content-length") {
			return h.contentLength(value)
		}
	case len("Transfer-Encoding"):
		if is(name, "transfer-encoding") {
			if h.chunked || !is(value, "chunked") {
				return errCoding
			}
			h.chunked = true
		}
	case len("Connection"):
		if is(name, "connection") {
			h.close = h.close || hasToken(value, "close")
			h.keepAlive = h.keepAlive || hasToken(value, "keep-alive")
		}
	}
	return nil
}

func (h *head) contentLength(s []byte) error {
	if h.length >= 0 {
		return errLengths
	}
	n, err := syntax.Length(s)
	if err != nil {
		return err
	}
	h.length = n
	return nil
}

func (h *head) check() error {
	switch {
	case h.chunked && h.length >= 0:
		return errBoth
	case h.chunked && h.minor == 0:
		return errCoding10
	}
	return nil
}

// framing is how the end of an answer's body is found.
type framing uint8

const (
	noBody framing = iota
	byLength
	byChunks
	untilClose
)

// framing tells how the body of a final answer ends, and whether the connection can be kept after it as far as the answer
// goes. Asked is that the request was a HEAD.
func (h *head) framing(asked bool) (f framing, keep bool) {
	keep = !h.close && (h.minor > 0 || h.keepAlive)
	switch {
	case h.status == 204:
		// Such an answer has no body and must say so: what else it says may come all the same.
		return noBody, keep && !h.chunked && h.length <= 0
	case asked, h.status == 304, h.length == 0:
		return noBody, keep
	case h.chunked:
		return byChunks, keep
	case h.length > 0:
		return byLength, keep
	}
	return untilClose, false
}
