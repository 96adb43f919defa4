package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/front"
)

// changing is a backend that changes protocols: after the request's body, or before with eager. Then it says what it has got.
func changing(t *testing.T, eager bool) string {
	return rawBackend(t, func(_ int, c net.Conn) {
		in := bufio.NewReader(c)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		const change = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
		if eager {
			_, _ = io.WriteString(c, change)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if !eager {
			_, _ = io.WriteString(c, change)
		}
		_, _ = fmt.Fprintf(c, "%d|", len(body))
		_, _ = io.Copy(c, in)
	})
}

// TestTunnelsBehindABody: a request with a body may change protocols, and what follows the body is the tunnel's.
func TestTunnelsBehindABody(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 16<<10)
	chunked := func(s string) string {
		return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(s), s)
	}
	sized := func(s string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(s), s) }
	for name, tc := range map[string]struct {
		path, rest string
		want       string // what comes through the tunnel; empty: it is refused
	}{
		"short":                          {"/", sized("hello"), "5|"},
		"in chunks":                      {"/", chunked("hello"), "5|"},
		"more than memory holds":         {"/", sized(long), "262144|"},
		"sent as it comes":               {"/now", sized("hello"), "5|"},
		"sent as it comes, in chunks":    {"/now", chunked("hello"), "5|"},
		"sent as it comes, long":         {"/now", sized(long), "262144|"},
		"eager backend":                  {"/eager", sized("hello"), "5|"},
		"eager backend, as it comes":     {"/eager/now", chunked(long), "262144|"},
		"eager backend, client is stuck": {"/eager/now", "Content-Length: 9\r\n\r\nhello", ""},
		"published: nobody is asked":     {"/published", sized("hello"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Engine = front.Settings{ClientBody: 200 * time.Millisecond} })
			if tc.path == "/published" {
				w.set("published", instance("a", changing(t, false)))
				w.apply()
			} else {
				w.mustLoad(false, strings.NewReplacer("PASS", `proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; proxy_pass http:/`,
					"L;", w.addr+";").Replace(`server { listen L; location / { PASS/`+changing(t, false)+`; }
location /now { proxy_request_buffering off; PASS/`+changing(t, false)+`; } location /eager { PASS/`+changing(t, true)+`; }
location /eager/now { proxy_request_buffering off; PASS/`+changing(t, true)+`; } }`))
			}
			c, err := net.Dial("tcp", w.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = io.WriteString(c, "POST "+tc.path+" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n"+tc.rest)
			rd := bufio.NewReader(c)
			resp, err := http.ReadResponse(rd, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				if resp.StatusCode != 502 {
					t.Errorf("%d", resp.StatusCode)
				}
				return
			}
			if resp.StatusCode != 101 {
				t.Fatalf("%d", resp.StatusCode)
			}
			_, _ = io.WriteString(c, "late")
			got := make([]byte, len(tc.want+"late"))
			if _, err := io.ReadFull(rd, got); err != nil || string(got) != tc.want+"late" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestAHalfClosedTunnelIsNotForgotten: a client that has ended its side still gets what the backend says, and when nobody says
// anything for the idle time both connections are closed.
func TestAHalfClosedTunnelIsNotForgotten(t *testing.T) {
	for _, protocol := range []string{"echo", "websocket"} {
		t.Run(protocol, func(t *testing.T) {
			const idle = 300 * time.Millisecond
			over := make(chan struct{})
			defer close(over)
			backend := rawBackend(t, func(_ int, c net.Conn) {
				in := bufio.NewReader(c)
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
				_, _ = io.Copy(io.Discard, in) // until the client's end comes through
				_, _ = c.Write([]byte{0x81, 1, 'x'})
				<-over
			})
			w := newWorld(t, func(c *Config) { c.Engine = front.Settings{TunnelIdle: idle} })
			w.set("s", instance("a", backend))
			w.apply()
			c, in := upgrade(t, w.addr, "/s", protocol)
			began := time.Now()
			_ = c.(*net.TCPConn).CloseWrite()
			rest, err := io.ReadAll(in)
			if string(rest) != "\x81\x01x" || err != nil {
				t.Errorf("the client got % x, %v", rest, err)
			}
			if took := time.Since(began); took < idle {
				t.Errorf("it ended after %v", took)
			}
			eventually(t, "nobody waits for the backend", func() bool { return w.p.Clients() == 0 })
		})
	}
}
