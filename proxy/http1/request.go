package http1

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// What makes a request one that can't be sent.
var (
	errMethod  = errors.New("bad method")
	errTarget  = errors.New("bad target")
	errHost    = errors.New("bad host")
	errUnknown = errors.New("HTTP/1.0 can't carry a body whose length is unknown")
)

// outgoing is a request's head as bytes, and what of it matters afterwards.
type outgoing struct {
	head    []byte
	chunked bool
	expects bool // a 100 before the body
	isHead  bool
	last    bool // it says that the connection is not kept, or does not say so in HTTP/1.0
}

// encode appends the request's head to b: Host first, the fields as they are and in their order, and the framing, where a
// Content-Length stood among them or at the end.
func encode(b []byte, r *forward.Request, w *Wire, addr string) (outgoing, error) {
	o := outgoing{chunked: r.Body != nil && r.Length < 0, isHead: string(r.Method) == "HEAD"}
	if o.chunked && w.HTTP10 {
		return o, errUnknown
	}
	b, err := requestLine(b, r, w, addr)
	if err != nil {
		return o, err
	}
	keepAlive, framed := false, false
	for i := range r.Fields {
		f := &r.Fields[i]
		if len(f.Name) == 0 || !all(f.Name, inToken) || !inValue(f.Value) {
			return o, fmt.Errorf("field %q: %w", f.Name, syntax.ErrFieldValue)
		}
		switch len(f.Name) {
		case len("Host"):
			if is(f.Name, "host") { // the authority says it, or nobody does
				continue
			}
		case len("Expect"):
			o.expects = o.expects || is(f.Name, "expect") && is(f.Value, "100-continue")
		case len("Connection"):
			if is(f.Name, "connection") {
				o.last = o.last || hasToken(f.Value, "close")
				keepAlive = keepAlive || hasToken(f.Value, "keep-alive")
			}
		case len("Content-Length"):
			if is(f.Name, "content-length") {
				if r.Body != nil && !framed || r.Body == nil && !framed && string(f.Value) == "0" {
					b, framed = o.framing(b, r), true
				}
				continue
			}
		case len("Transfer-Encoding"):
			if is(f.Name, "transfer-encoding") {
				continue
			}
		}
		b = appendField(b, f.Name, f.Value)
	}
	if r.Body != nil && !framed {
		b = o.framing(b, r)
	}
	o.head = append(b, "\r\n"...)
	o.last = o.last || w.HTTP10 && !keepAlive
	o.expects = o.expects && r.Body != nil && !w.HTTP10
	return o, nil
}

func requestLine(b []byte, r *forward.Request, w *Wire, addr string) ([]byte, error) {
	switch {
	case len(r.Method) == 0 || !all(r.Method, inToken):
		return b, errMethod
	case len(r.Target) == 0 || !all(r.Target, inTarget):
		return b, errTarget
	case !all(r.Authority, inTarget):
		return b, errHost
	}
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	if w.HTTP10 {
		b = append(b, " HTTP/1.0\r\n"...)
	} else {
		b = append(b, " HTTP/1.1\r\n"...)
	}
	switch {
	case len(r.Authority) > 0:
		b = append(append(append(b, "Host: "...), r.Authority...), "\r\n"...)
	case !w.NoHost:
		b = append(append(append(b, "Host: "...), addr...), "\r\n"...)
	}
	return b, nil
}

func (o *outgoing) framing(b []byte, r *forward.Request) []byte {
	if o.chunked {
		return append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	n := r.Length
	if r.Body == nil {
		n = 0
	}
	return append(strconv.AppendInt(append(b, "Content-Length: "...), n, 10), "\r\n"...)
}

func appendField(b, name, value []byte) []byte {
	b = append(append(b, name...), ": "...)
	return append(append(b, value...), "\r\n"...)
}

// appendTrailer appends those fields that the request's head announced, and the line that ends the message.
func appendTrailer(b []byte, trailer, head []forward.Field) ([]byte, error) {
	for i := range trailer {
		f := &trailer[i]
		if !announced(head, f.Name) {
			continue
		}
		if !all(f.Name, inToken) || !inValue(f.Value) {
			return b, fmt.Errorf("trailer %q: %w", f.Name, syntax.ErrFieldValue)
		}
		b = appendField(b, f.Name, f.Value)
	}
	return append(b, "\r\n"...), nil
}

func announced(head []forward.Field, name []byte) bool {
	lower := make([]byte, 0, 32)
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		lower = append(lower, c)
	}
	for i := range head {
		if is(head[i].Name, "trailer") && hasToken(head[i].Value, string(lower)) {
			return true
		}
	}
	return false
}
