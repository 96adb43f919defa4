package proxy

import (
	"bytes"
	"net"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/proxy/accesslog"
)

const (
	smallAnswer = "HTTP/1.1 200 OK\r\nServer: b\r\nDate: Mon, 30 Nov 2026 10:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nX-Id: 1\r\n\r\nhello"
	smallGet    = "GET /a/b?c=d HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench/1\r\nAccept: */*\r\nCookie: a=b\r\n\r\n"
	smallPost   = "POST /a/b HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench/1\r\nContent-Length: 5\r\n\r\nhello"
)

// frugal is a backend that answers each request, which it takes to come in one piece, without an allocation.
func frugal(t testing.TB) string {
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
				buf, answer := make([]byte, 4096), []byte(smallAnswer)
				for {
					if _, err := c.Read(buf); err != nil {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// asking gives a function that sends a request on a connection of its own and reads the answer, without an allocation.
func asking(t testing.TB, addr, request string) func() {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	out, buf, end := []byte(request), make([]byte, 4096), []byte("\r\n\r\nhello")
	return func() {
		if _, err := c.Write(out); err != nil {
			t.Fatal(err)
		}
		for n := 0; ; {
			more, err := c.Read(buf[n:])
			if n += more; err != nil {
				t.Fatal(err)
			}
			if bytes.HasSuffix(buf[:n], end) {
				return
			}
		}
	}
}

// TestAllocations: a small request costs no allocation from its first byte to the last of its answer, with logs and
// metrics, whether a file or a published route leads to its backend.
func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget")
	}
	settings := func(c *Config) {
		c.Registerer = prometheus.NewRegistry()
		c.AccessLog = AccessLog{Path: filepath.Join(t.TempDir(), "requests.log"), Options: accesslog.Options{Buffer: 64 << 10}}
	}
	for name, world := range map[string]func(t *testing.T) string{
		"published": func(t *testing.T) string {
			w := newWorld(t, settings)
			w.set("shop", instance("a", frugal(t)), instance("b", frugal(t)))
			w.paths["/a"] = "shop"
			w.apply()
			return w.addr
		},
		"zones": func(t *testing.T) string {
			w := newWorld(t, settings)
			a, b := instance("a", frugal(t)), instance("b", frugal(t))
			a.Zone, b.Zone = "x", "y"
			w.set("shop", a, b)
			w.zoned["shop"] = true
			w.paths["/a"] = "shop"
			w.apply()
			return w.addr
		},
		"file": func(t *testing.T) string {
			w := newWorld(t, settings)
			w.mustLoad(false, `log_format long '$remote_addr "$request" $status $request_time $upstream_addr $upstream_response_time $time_iso8601';
access_log `+filepath.Join(t.TempDir(), "access.log")+` long buffer=64k flush=1s;
upstream u { server `+frugal(t)+`; server `+frugal(t)+`; keepalive 16; }
server { listen 8080; server_name shop.example; location / { proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr;
	proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; add_header X-Served by; proxy_pass http://u; } }`)
			return w.addr
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr := world(t)
			for what, request := range map[string]string{"GET": smallGet, "POST": smallPost} {
				ask := asking(t, addr, request)
				for range 200 { // everything is made that is kept
					ask()
				}
				if n := testing.AllocsPerRun(2000, ask); n > 0 {
					t.Errorf("%s: %v allocations", what, n)
				}
			}
		})
	}
}
