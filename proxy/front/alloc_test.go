package front

import (
	"context"
	"net"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

var (
	smallBody   = []byte("hello, world")
	smallFields = []forward.Field{field("Server", "x"), field("Date", "Mon, 30 Nov 2026 23:28:00 GMT"), field("Content-Type", "text/plain"), field("Content-Length", "12")}
)

// scratch is one for all: a test has one request at a time.
var scratch [512]byte

func small(_ context.Context, r *forward.Request, c forward.Client) {
	if r.Body != nil {
		for {
			if _, err := r.Body.Read(scratch[:]); err != nil {
				break
			}
		}
	}
	if c.Head(200, smallFields, int64(len(smallBody))) == nil {
		_ = c.(forward.Finisher).Finish(smallBody, nil)
	}
}

const browser = "GET /some/path?with=query HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: text/html,*/*;q=0.8\r\nAccept-Language: en\r\nCookie: session=0123456789abcdef\r\n\r\n"

// rally sends one request after another and reads its answer.
type rally struct {
	c    net.Conn
	text []byte
	buf  []byte
}

func newRally(t testing.TB, text string) *rally {
	_, addr := serve(t, Settings{}, small)
	return &rally{c: dial(t, addr), text: []byte(text), buf: make([]byte, 4096)}
}

func (r *rally) hit(t testing.TB) {
	if _, err := r.c.Write(r.text); err != nil {
		t.Fatal(err)
	}
	n, err := r.c.Read(r.buf)
	if err != nil || string(r.buf[n-len(smallBody):n]) != string(smallBody) {
		t.Fatalf("%q, %v", r.buf[:n], err)
	}
}

// TestRequestsAllocateNothing: neither do small bodies, at hand or in chunks.
func TestRequestsAllocateNothing(t *testing.T) {
	if racing {
		t.Skip("pools forget under the race detector")
	}
	for name, text := range map[string]string{
		"GET": browser, "POST": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
		"chunks": "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	} {
		r := newRally(t, text)
		for range 10 {
			r.hit(t)
		}
		if n := testing.AllocsPerRun(500, func() { r.hit(t) }); n >= 1 {
			t.Errorf("%s: %v allocations a request", name, n)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	r := newRally(b, browser)
	b.ReportAllocs()
	for b.Loop() {
		r.hit(b)
	}
}

// BenchmarkHead is what reading a head costs, without the wire.
func BenchmarkHead(b *testing.B) {
	s := Settings{}.withDefaults()
	var h head
	text := []byte(browser)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		h.reset(&s)
		if !h.feed(text) || h.fault != nil {
			b.Fatal(h.fault)
		}
	}
}

// BenchmarkAnswerHead is what an answer's head costs, of a usual set of fields.
func BenchmarkAnswerHead(b *testing.B) {
	fields := []forward.Field{
		field("Server", "upstrand"), field("Date", "Mon, 30 Nov 2026 23:28:00 GMT"), field("Content-Type", "text/html; charset=utf-8"), field("Content-Length", "1024"),
		field("Connection", "keep-alive"), field("Last-Modified", "Mon, 30 Nov 2026 23:28:00 GMT"), field("ETag", `"5f3a-61c"`), field("Cache-Control", "public, max-age=3600"),
	}
	cl := client{framing: byLength, left: 1024}
	var room [gatherSize]byte
	b.ReportAllocs()
	for b.Loop() {
		cl.appendHead(room[:0], 200, fields)
	}
}
