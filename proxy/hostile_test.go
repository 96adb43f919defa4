package proxy

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/front"
)

// converse sends the first text, waits for an answer's first byte, sends the others, and gives all that came until the
// proxy closed the connection.
func converse(t *testing.T, addr, first string, others ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(c, first)
	got := make([]byte, 1)
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatalf("no answer: %v", err)
	}
	for _, s := range others {
		_, _ = io.WriteString(c, s)
	}
	rest, err := io.ReadAll(c)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Errorf("the connection is still open after %q", rest)
	}
	return string(append(got, rest...))
}

// early is a backend that answers as soon as it has a head, and counts the heads.
func early(t *testing.T, answer string) (addr string, heads, upgrades *atomic.Int32) {
	heads, upgrades = new(atomic.Int32), new(atomic.Int32)
	return rawBackend(t, func(_ int, c net.Conn) {
		buf := make([]byte, 16<<10)
		n, _ := c.Read(buf)
		heads.Add(int32(strings.Count(string(buf[:n]), " HTTP/1.1\r\n")))
		if strings.Contains(string(buf[:n]), "Upgrade") {
			upgrades.Add(1)
		}
		_, _ = io.WriteString(c, answer)
		_, _ = io.Copy(io.Discard, c)
	}), heads, upgrades
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestRestOfABodyIsNoRequest: a body that comes after its answer, or is not understood, does not become a request.
func TestRestOfABodyIsNoRequest(t *testing.T) {
	const hidden = "GET /orders/hidden HTTP/1.1\r\nHost: x\r\n\r\n"
	const post = "POST /orders HTTP/1.1\r\nHost: x\r\n"
	for _, tc := range []struct{ name, first, then string }{
		{"length, nothing sent", post + "Content-Length: 42\r\n\r\n", hidden},
		{"length, a part sent", post + "Content-Length: 42\r\n\r\nab", hidden},
		{"chunked, nothing sent", post + "Transfer-Encoding: chunked\r\n\r\n", "2a\r\n" + hidden},
		{"chunked, between chunks", post + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", hidden},
		{"chunked, bad framing", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + hidden, ""},
		{"both framings", post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, ""},
		{"nobody's", "POST /none HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", hidden},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Engine = front.Settings{ClientBody: 100 * time.Millisecond} })
			addr, heads, _ := early(t, ok)
			w.set("orders", instance("b", addr))
			w.apply()
			got := converse(t, w.addr, tc.first, tc.then)
			if n := strings.Count(got, "HTTP/1.1 "); n != 1 || !strings.Contains(got, "\r\nConnection: close\r\n") {
				t.Errorf("%d answers: %q", n, got)
			}
			if n := heads.Load(); n > 1 {
				t.Errorf("the backend got %d requests", n)
			}
			if s := w.state("orders")[0]; s.Fails != 0 {
				t.Errorf("counted against the peer: %+v", s)
			}
		})
	}
}

func TestBadFramingIsToldWith400(t *testing.T) {
	w := newWorld(t, nil)
	w.set("orders", instance("b", newBackend(t, "b", nil).addr()))
	w.apply()
	got := converse(t, w.addr, "POST /orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 400") || !strings.Contains(got, "\r\nConnection: close\r\n") {
		t.Errorf("%q", got)
	}
}

// TestWholeBodiesKeepTheConnection: a request whose body was read before the answer costs no connection.
func TestWholeBodiesKeepTheConnection(t *testing.T) {
	w := newWorld(t, nil)
	w.set("orders", instance("b", newBackend(t, "b", nil).addr()))
	w.apply()
	const post = "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
	got := converse(t, w.addr, post, post, "GET /orders HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if n := strings.Count(got, "HTTP/1.1 200"); n != 3 {
		t.Errorf("%d answers: %q", n, got)
	}
}

// TestUpgradeWithABody: net/http panics when a body is read from a connection that became a tunnel.
func TestUpgradeWithABody(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Engine = front.Settings{ClientBody: 100 * time.Millisecond} })
	addr, _, upgrades := early(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	w.set("orders", instance("b", addr))
	w.apply()
	const get = "GET /orders HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	for _, framing := range []string{"Content-Length: 1000\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"} {
		got := converse(t, w.addr, get+framing, "def")
		if !strings.HasPrefix(got, "HTTP/1.1 502") && !strings.HasPrefix(got, "HTTP/1.1 503") {
			t.Errorf("%q", got)
		}
	}
	if n := upgrades.Load(); n != 0 {
		t.Errorf("the backend was asked to change protocols %d times", n)
	}
}

// TestTrailerNamesThatCantBe: net/http refuses to send them; nobody is to blame and the request goes without.
func TestTrailerNamesThatCantBe(t *testing.T) {
	w := newWorld(t, nil)
	b := newBackend(t, "b", nil)
	w.set("orders", instance("b", b.addr()))
	w.apply()
	for _, rest := range []string{
		"GET /orders HTTP/1.1\r\nHost: x\r\nTrailer: a b\r\n\r\n",
		"GET /orders HTTP/1.1\r\nHost: x\r\nTrailer:\r\n\r\n",
		"POST /orders HTTP/1.1\r\nHost: x\r\nTrailer: Content-Length\r\nContent-Length: 2\r\n\r\nhi",
		"POST /orders HTTP/1.1\r\nHost: x\r\nTrailer: a b\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
	} {
		if got := rawRequest(t, w.addr, rest); got.status != 200 {
			t.Errorf("%q: %+v", rest, got)
		}
	}
	if s := w.state("orders")[0]; s.Fails != 0 {
		t.Errorf("counted against the peer: %+v", s)
	}
}

// TestForgedTrailer: what may not be said before the body may not be said after it.
func TestForgedTrailer(t *testing.T) {
	w := newWorld(t, nil)
	trailer := make(chan http.Header, 1)
	b := newBackend(t, "b", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		trailer <- r.Trailer
	})
	w.set("orders", instance("b", b.addr()))
	w.apply()
	rawRequest(t, w.addr, "POST /orders HTTP/1.1\r\nHost: x\r\nConnection: X-Hop\r\nTrailer: X-Forwarded-For, X-Sum, X-Hop, X-Real-IP\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\nX-Sum: 1\r\nX-Hop: 1\r\nX-Real-IP: 6.6.6.6\r\nX-Quiet: 1\r\n\r\n")
	if got := <-trailer; len(got) != 1 || got.Get("X-Sum") != "1" {
		t.Errorf("%v", got)
	}
}

func TestTargetsAndHosts(t *testing.T) {
	w := newWorld(t, nil)
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, r.RequestURI+" "+r.Host) })
	w.set("orders", instance("b", b.addr()))
	w.paths = map[string]string{"/": "orders"}
	w.apply()
	for head, want := range map[string]string{
		"GET http://Shop:81/a?b HTTP/1.1\r\nHost: other": "200 /a?b Shop:81",
		"OPTIONS * HTTP/1.1\r\nHost: x":                  "200 ", // by net/http in the backend
		"GET / HTTP/1.0\r\nA: b":                         "200 / ",
		"GET * HTTP/1.1\r\nHost: x":                      "400",
		"GET http://a<b/ HTTP/1.1\r\nHost: x":            "400",
		"GET http://u@a/ HTTP/1.1\r\nHost: x":            "400",
		"GET http://\xff\xfe/ HTTP/1.1\r\nHost: x":       "400",
		"GET ftp://a/ HTTP/1.1\r\nHost: x":               "400",
		"GET mailto:x?y://a/ HTTP/1.1\r\nHost: x":        "400",
		"GET http:x?y://a/ HTTP/1.1\r\nHost: x":          "400",
		"GET / HTTP/1.1\r\nHost:":                        "400",
		"GET / HTTP/1.1\r\nHost: a:b":                    "400",
	} {
		a := rawRequest(t, w.addr, head+"\r\nConnection: close\r\n\r\n")
		got := "400"
		if a.status != 400 {
			got = http.StatusText(a.status)
			if a.status == 200 {
				got = "200 " + a.body
			}
		}
		if want == "200 / " {
			got = strings.TrimSuffix(got, b.addr()) // net/http names the peer when there is no host
		}
		if got != want {
			t.Errorf("%q: %d %q, want %q", head, a.status, a.body, want)
		}
	}
	if s := w.state("orders")[0]; s.Fails != 0 {
		t.Errorf("counted against the peer: %+v", s)
	}
}
