package http1

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

func fields(pairs ...string) []forward.Field {
	var out []forward.Field
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, forward.Field{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return out
}

// text is a body that never waits.
type text struct {
	*strings.Reader
	trailer []forward.Field
	err     error // in place of the end
	waits   bool  // it does not say that it is whole
}

func body(s string) *text { return &text{Reader: strings.NewReader(s)} }

func (b *text) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}
func (b *text) Trailer() []forward.Field { return b.trailer }
func (b *text) Rewind() error            { _, err := b.Seek(0, io.SeekStart); return err }
func (b *text) Rewindable() bool         { return true }
func (b *text) Whole() bool              { return !b.waits && b.err == nil }

func TestEncode(t *testing.T) {
	const first = "GET /a?b HTTP/1.1\r\nHost: shop:81\r\n"
	for _, tc := range []struct {
		name string
		set  func(*forward.Request, *Wire)
		want string
	}{
		{"no fields", func(*forward.Request, *Wire) {}, first + "\r\n"},
		{"order and names stay", func(r *forward.Request, _ *Wire) { r.Fields = fields("b", "1", "A", "2", "b", "", "TE", "trailers") },
			first + "b: 1\r\nA: 2\r\nb: \r\nTE: trailers\r\n\r\n"},
		{"no authority", func(r *forward.Request, _ *Wire) { r.Authority = nil }, "GET /a?b HTTP/1.1\r\nHost: 10.0.0.1:80\r\n\r\n"},
		{"no authority, no Host", func(r *forward.Request, w *Wire) { r.Authority, w.NoHost = nil, true }, "GET /a?b HTTP/1.1\r\n\r\n"},
		{"Host among the fields, no authority", func(r *forward.Request, _ *Wire) { r.Authority, r.Fields = nil, fields("A", "1", "host", "evil") }, "GET /a?b HTTP/1.1\r\nHost: 10.0.0.1:80\r\nA: 1\r\n\r\n"},
		{"Host among the fields", func(r *forward.Request, _ *Wire) { r.Fields = fields("A", "1", "host", "evil") }, first + "A: 1\r\n\r\n"},
		{"HTTP/1.0", func(r *forward.Request, w *Wire) { w.HTTP10, r.Fields = true, fields("Connection", "close") },
			"GET /a?b HTTP/1.0\r\nHost: shop:81\r\nConnection: close\r\n\r\n"},
		{"length in its place", func(r *forward.Request, _ *Wire) {
			r.Body, r.Length, r.Fields = body("abc"), 3, fields("A", "1", "content-length", "99", "B", "2")
		}, first + "A: 1\r\nContent-Length: 3\r\nB: 2\r\n\r\n"},
		{"length at the end", func(r *forward.Request, _ *Wire) { r.Body, r.Length, r.Fields = body("abc"), 3, fields("A", "1") },
			first + "A: 1\r\nContent-Length: 3\r\n\r\n"},
		{"length said twice", func(r *forward.Request, _ *Wire) {
			r.Body, r.Length, r.Fields = body("abc"), 3, fields("Content-Length", "3", "Content-Length", "4")
		}, first + "Content-Length: 3\r\n\r\n"},
		{"unknown length", func(r *forward.Request, _ *Wire) {
			r.Body, r.Length, r.Fields = body("abc"), -1, fields("Content-Length", "3", "Transfer-Encoding", "gzip", "B", "2")
		}, first + "Transfer-Encoding: chunked\r\nB: 2\r\n\r\n"},
		{"no body, length 0", func(r *forward.Request, _ *Wire) { r.Fields = fields("Content-Length", "0", "B", "2") },
			first + "Content-Length: 0\r\nB: 2\r\n\r\n"},
		{"no body, another length", func(r *forward.Request, _ *Wire) {
			r.Fields = fields("Content-Length", "5", "Transfer-Encoding", "chunked")
		}, first + "\r\n"},
		{"obs-text and a tab", func(r *forward.Request, _ *Wire) { r.Fields = fields("A", "\xe4\tx") }, first + "A: \xe4\tx\r\n\r\n"},
		{"star", func(r *forward.Request, _ *Wire) { r.Method, r.Target = []byte("OPTIONS"), []byte("*") }, "OPTIONS * HTTP/1.1\r\nHost: shop:81\r\n\r\n"},
		{"method with a space", func(r *forward.Request, _ *Wire) { r.Method = []byte("A B") }, ""},
		{"no method", func(r *forward.Request, _ *Wire) { r.Method = nil }, ""},
		{"target with a space", func(r *forward.Request, _ *Wire) { r.Target = []byte("/a b") }, ""},
		{"target with CR LF", func(r *forward.Request, _ *Wire) { r.Target = []byte("/\r\nA: b") }, ""},
		{"target with NUL", func(r *forward.Request, _ *Wire) { r.Target = []byte("/\x00") }, ""},
		{"no target", func(r *forward.Request, _ *Wire) { r.Target = nil }, ""},
		{"host with CR LF", func(r *forward.Request, _ *Wire) { r.Authority = []byte("a\r\nb") }, ""},
		{"name with a space", func(r *forward.Request, _ *Wire) { r.Fields = fields("A b", "c") }, ""},
		{"name with a colon", func(r *forward.Request, _ *Wire) { r.Fields = fields("A:", "c") }, ""},
		{"no name", func(r *forward.Request, _ *Wire) { r.Fields = fields("", "c") }, ""},
		{"value with CR", func(r *forward.Request, _ *Wire) { r.Fields = fields("A", "b\rc") }, ""},
		{"value with LF", func(r *forward.Request, _ *Wire) { r.Fields = fields("A", "b\nc") }, ""},
		{"value with NUL", func(r *forward.Request, _ *Wire) { r.Fields = fields("A", "b\x00c") }, ""},
		{"unknown length in HTTP/1.0", func(r *forward.Request, w *Wire) { r.Body, r.Length, w.HTTP10 = body("abc"), -1, true }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &forward.Request{Method: []byte("GET"), Authority: []byte("shop:81"), Target: []byte("/a?b")}
			w := &Wire{}
			tc.set(r, w)
			head, _, err := encode(nil, r, w, "10.0.0.1:80")
			if got := string(head); got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("%v\ngot  %q\nwant %q", err, got, tc.want)
			}
		})
	}
}

// TestRequestsThatAreTheLast: what a request says of the connection counts too.
func TestRequestsThatAreTheLast(t *testing.T) {
	for _, tc := range []struct {
		http10 bool
		fields []forward.Field
		last   bool
	}{
		{false, nil, false}, {true, nil, true},
		{false, fields("Connection", "close"), true}, {false, fields("connection", "a, CLOSE"), true},
		{true, fields("Connection", "keep-alive"), false}, {true, fields("Connection", "close, keep-alive"), true},
	} {
		r := get()
		r.Fields = tc.fields
		_, o, err := encode(nil, r, &Wire{HTTP10: tc.http10}, "a:1")
		if err != nil || o.last != tc.last {
			t.Errorf("HTTP/1.0 %v, %s: last %v, %v", tc.http10, tc.fields, o.last, err)
		}
	}
}

func TestTrailersAreThoseAnnounced(t *testing.T) {
	head := fields("Trailer", "x-sum, X-Two")
	out, err := appendTrailer(nil, fields("X-Sum", "1", "x-two", "2", "X-Three", "3", "Content-Length", "9"), head)
	if want := "X-Sum: 1\r\nx-two: 2\r\n\r\n"; string(out) != want || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := appendTrailer(nil, fields("X-Sum", "a\r\nb"), head); !errors.Is(err, syntax.ErrFieldValue) {
		t.Errorf("%v", err)
	}
}
