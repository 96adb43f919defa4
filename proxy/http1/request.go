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

// outgoing is what of a request's head matters when it has been written.
type outgoing struct {
	chunked bool
	expects bool // a 100 before the body
	isHead  bool
	safe    bool // to be sent twice
	last    bool // it says that the connection is not kept, or does not say so in HTTP/1.0
}

// encode appends the request's head to b: Host first, the fields as they are and in their order, and the framing, where a
// Content-Length stood among them or at the end.
func encode(b []byte, r *forward.Request, w *Wire, addr string) ([]byte, outgoing, error) {
	chunked, framed := r.Body != nil && r.Length < 0, false
	if chunked && w.HTTP10 {
		return nil, outgoing{}, errUnknown
	}
	b, err := requestLine(b, r, w, addr)
	if err != nil {
		return nil, outgoing{}, err
	}
	expects, last, keepAlive := false, false, false
	for i := range r.Fields {
		name, value := r.Fields[i].Name, r.Fields[i].Value
		if !syntax.IsToken(name) || !inValue(value) {
			return nil, outgoing{}, fmt.Errorf("field %q: %w", name, syntax.ErrFieldValue)
		}
		switch len(name) {
		case len("Host"):
			if is(name, "host") { // the authority says it, or nobody does
				continue
			}
		case len("Expect"):
			expects = expects || is(name, "expect") && is(value, "100-continue")
		case len("Connection"):
			if is(name, "connection") {
				last = last || hasToken(value, "close")
				keepAlive = keepAlive || hasToken(value, "keep-alive")
			}
		case len("Content-Length"):
			if is(name, "content-length") {
				if !framed && (r.Body != nil || string(value) == "0") {
					b, framed = appendFraming(b, r), true
				}
				continue
			}
		case len("Transfer-Encoding"):
			if is(name, "transfer-encoding") {
				continue
			}
		}
		b = appendField(b, name, value)
	}
	if r.Body != nil && !framed {
		b = appendFraming(b, r)
	}
	return append(b, "\r\n"...), outgoing{
		chunked: chunked,
		expects: expects && r.Body != nil && !w.HTTP10,
		isHead:  string(r.Method) == "HEAD",
		safe:    string(r.Method) == "GET" || string(r.Method) == "HEAD",
		last:    last || w.HTTP10 && !keepAlive,
	}, nil
}

func requestLine(b []byte, r *forward.Request, w *Wire, addr string) ([]byte, error) {
	switch {
	case !syntax.IsToken(r.Method):
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

func appendFraming(b []byte, r *forward.Request) []byte {
	n := r.Length
	switch {
	case r.Body == nil:
		n = 0
	case n < 0:
		return append(b, "Transfer-Encoding: chunked\r\n"...)
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
		if !syntax.IsToken(f.Name) || !inValue(f.Value) {
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
