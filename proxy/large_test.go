package proxy

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"
)

// fds is how many descriptors this process has open.
func fds(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("descriptors can't be counted here")
	}
	return len(all)
}

// TestLargeAnswers: what goes from socket to socket arrives whole, also at clients that take their time, and beside
// clients that leave within it.
func TestLargeAnswers(t *testing.T) {
	body := make([]byte, 5<<20)
	for i := range body {
		body[i] = byte(i>>12 ^ i*7)
	}
	sum := sha256.Sum256(body)
	w := newWorld(t, nil)
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", fmt.Sprint(len(body)))
		for rest := body; len(rest) > 0; {
			n, err := rw.Write(rest[:min(len(rest), 300_000)])
			if err != nil {
				return
			}
			rest = rest[n:]
			if r.Header.Get("X-Slow") != "" {
				time.Sleep(time.Millisecond)
			}
		}
	})
	w.mustLoad(false, `upstream u { server `+b.addr()+`; }
server { listen 8080; location / { proxy_pass http://u; } location /gzip { gzip on; gzip_types *; proxy_pass http://u; } }`)
	whole := func(path string, slow bool) {
		req, _ := http.NewRequest("GET", w.url+path, nil)
		if slow {
			req.Header.Set("X-Slow", "1")
		}
		resp, err := w.client.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		hash, n := sha256.New(), 0
		for buf := make([]byte, 100_000); err == nil; {
			var more int
			more, err = resp.Body.Read(buf)
			n += more
			_, _ = hash.Write(buf[:more])
			if slow {
				time.Sleep(time.Millisecond)
			}
		}
		if err != io.EOF || !bytes.Equal(hash.Sum(nil), sum[:]) {
			t.Errorf("%s: %d bytes of %d, or others: %v", path, n, len(body), err)
		}
	}
	whole("/", false) // what is kept is made
	before := fds(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { whole("/", i%2 == 0) })
		all.Go(func() { leaves(t, w.addr) })
	}
	all.Go(func() { whole("/gzip", false) })
	all.Wait()
	w.client.CloseIdleConnections()
	// Pipes and idle connections to the backend may be kept; what the clients had is not.
	for end := time.Now().Add(5 * time.Second); fds(t) > before+80; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d descriptors, %d before", fds(t), before)
		}
	}
}

// leaves asks for an answer, takes some of it and goes.
func leaves(t *testing.T, addr string) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	_, _ = io.CopyN(io.Discard, c, 1<<20)
}
