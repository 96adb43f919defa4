package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// recorder is a server of HTTP/1 that answers whatever comes in one piece, and keeps it.
type recorder struct {
	mu   sync.Mutex
	seen bytes.Buffer
}

func (b *recorder) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen.Write(p)
}

func (b *recorder) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen.String()
}

func (b *recorder) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(io.TeeReader(c, b))
				for {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					if line == "\r\n" {
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestDowngrade: whatever an HTTP/2 client says, a server of HTTP/1 sees one request in it, or none.
func TestDowngrade(t *testing.T) {
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	w := newWorld(t, nil)
	back := &recorder{}
	w.mustLoad(false, `server { listen 8080; location / { proxy_pass http://`+back.listen(t)+`; proxy_http_version 1.1; proxy_request_buffering off; } }`)
	addr := strings.TrimPrefix(w.speaksHTTP2(), "http://")
	post := func(more ...string) []string {
		return append([]string{":method", "POST", ":scheme", "http", ":authority", "a.example", ":path", "/"}, more...)
	}
	for name, tc := range map[string]struct {
		fields, trailer []string
		body            string
	}{
		"length 0 and a body":       {fields: post("content-length", "0"), body: smuggled},
		"too short a length":        {fields: post("content-length", "3"), body: "abc" + smuggled},
		"too long a length":         {fields: post("content-length", "300"), body: smuggled},
		"a sign":                    {fields: post("content-length", "+3"), body: "abc"},
		"two lengths":               {fields: post("content-length", "3", "content-length", "40"), body: "abc"},
		"transfer-encoding":         {fields: post("transfer-encoding", "chunked"), body: "0\r\n\r\n" + smuggled},
		"a line end in a value":     {fields: post("x", "y\r\n\r\n"+smuggled)},
		"a line feed in a value":    {fields: post("x", "y\n\n"+smuggled)},
		"a line end in a name":      {fields: post("x: y\r\n\r\n"+smuggled, "z")},
		"a colon in a name":         {fields: post("transfer-encoding: chunked\r\nx", "y")},
		"a space behind a name":     {fields: post("content-length ", "3")},
		"in the path":               {fields: []string{":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/ HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled}},
		"a space in the path":       {fields: []string{":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/smuggled HTTP/1.1"}},
		"in the method":             {fields: []string{":method", "GET /smuggled HTTP/1.1\r\nx: ", ":scheme", "http", ":authority", "a", ":path", "/"}},
		"in the authority":          {fields: []string{":method", "GET", ":scheme", "http", ":authority", "a\r\n\r\n" + smuggled, ":path", "/"}},
		"in the scheme":             {fields: []string{":method", "GET", ":scheme", "http://x/smuggled?", ":authority", "a", ":path", "/"}},
		"in a cookie":               {fields: post("cookie", "a", "cookie", "b\r\n\r\n"+smuggled)},
		"two hosts":                 {fields: post("host", "smuggled")},
		"connection names a length": {fields: post("connection", "content-length", "content-length", "3"), body: "abc"},
		"trailers of framing":       {fields: post("trailer", "content-length, x"), body: "abc", trailer: []string{"content-length", "30", "host", "smuggled"}},
		"a trailer with a line end": {fields: post("trailer", "x"), body: "abc", trailer: []string{"x", "y\r\n\r\n" + smuggled}},
		"pseudo fields behind":      {fields: post(), body: "abc", trailer: []string{":path", "/smuggled"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(2 * time.Second))
			var block bytes.Buffer
			enc, fr := hpack.NewEncoder(&block), http2.NewFramer(c, c)
			head := func(fields []string) []byte {
				block.Reset()
				for i := 0; i < len(fields); i += 2 {
					_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
				}
				return block.Bytes()
			}
			_, _ = io.WriteString(c, http2.ClientPreface)
			_ = fr.WriteSettings()
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head(tc.fields), EndHeaders: true, EndStream: tc.body == ""})
			if tc.body != "" {
				_ = fr.WriteData(1, tc.trailer == nil, []byte(tc.body))
			}
			if tc.trailer != nil {
				_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head(tc.trailer), EndHeaders: true, EndStream: true})
			}
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: head([]string{":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/next"}), EndHeaders: true, EndStream: true})
			for done := false; !done; { // the connection goes on
				f, err := fr.ReadFrame()
				if err != nil {
					t.Fatal(err)
				}
				done = f.Header().StreamID == 3 && f.Header().Flags.Has(http2.FlagDataEndStream)
			}
		})
	}
	seen := back.text()
	for line := range strings.Lines(seen) {
		if strings.Contains(line, "smuggled") && !strings.HasPrefix(line, "abcGET") {
			at := strings.Index(seen, line)
			t.Errorf("the server saw %q after %q", line, seen[max(at-300, 0):at])
		}
	}
}

// TestPrefaceByteByByte: HTTP/2 is known however slowly it begins.
func TestPrefaceByteByByte(t *testing.T) {
	w := newWorld(t, nil)
	w.mustLoad(false, `server { listen 8080; location / { return 204; } }`)
	c, err := net.Dial("tcp", strings.TrimPrefix(w.speaksHTTP2(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	var out, block bytes.Buffer
	out.WriteString(http2.ClientPreface)
	fr, enc := http2.NewFramer(&out, c), hpack.NewEncoder(&block)
	_ = fr.WriteSettings()
	for _, f := range []string{":method GET", ":scheme http", ":authority a", ":path /"} {
		name, value, _ := strings.Cut(f, " ")
		_ = enc.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
	for _, b := range out.Bytes() {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := f.(*http2.HeadersFrame); ok {
			if !h.StreamEnded() {
				t.Error(fmt.Sprint(h))
			}
			return
		}
	}
}
