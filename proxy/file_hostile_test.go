package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestNoTrailersFromClients: what a file says of a field holds; a client does not get it past that behind its body.
func TestNoTrailersFromClients(t *testing.T) {
	seen := make(chan *http.Request, 1)
	addr := rawBackend(t, func(_ int, c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.ReadAll(r.Body)
		seen <- r
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	})
	w := newWorld(t, nil)
	w.mustLoad(false, `server { listen 8080; location / {
		proxy_request_buffering off; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Secret ""; proxy_pass http://`+addr+`; } }`)
	converse(t, w.addr, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-Real-IP, X-Secret, X-Sum\r\n\r\n"+
		"3\r\nabc\r\n0\r\nX-Real-IP: 1.2.3.4\r\nX-Secret: yes\r\nX-Sum: 1\r\n\r\n")
	if r := <-seen; len(r.Trailer) > 0 || r.Header.Get("X-Real-IP") != "127.0.0.1" || r.Header.Get("X-Secret") != "" {
		t.Errorf("trailer %v of %v", r.Trailer, r.Header)
	}
}

// TestNoRoomForABody: a body that we can't hold is our fault, and nobody is asked.
func TestNoRoomForABody(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Engine.Folder, c.Engine.Replay = t.TempDir()+"/none", 2 })
	a := newBackend(t, "a", nil)
	w.mustLoad(false, `server { listen 8080; location / { proxy_pass http://`+a.addr()+`; } }`)
	for text, want := range map[string]int{"ab": 200, strings.Repeat("x", 32<<10): 500} {
		if got := w.do("POST", "/", strings.NewReader(text)); got.status != want {
			t.Errorf("%d bytes: %d %s", len(text), got.status, got.body)
		}
	}
}
