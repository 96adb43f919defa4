package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/http1"
)

func TestNotReadyBeforeATopology(t *testing.T) {
	w := newWorld(t, nil)
	if err := w.p.Ready(); err == nil {
		t.Error("ready without a topology")
	}
	if a := w.get("/orders"); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("without a topology: %+v", a)
	}
	w.apply()
	if err := w.p.Ready(); err != nil {
		t.Errorf("an empty topology is one too: %v", err)
	}
	if a := w.get("/orders"); a.status != 404 {
		t.Errorf("without a route: %+v", a)
	}
}

func TestRoundRobinOverInstances(t *testing.T) {
	w := newWorld(t, nil)
	a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
	two := instance("a", a.addr())
	two.Weight = 2
	w.set("orders", two, instance("b", b.addr()))
	w.apply()
	var got strings.Builder
	for range 6 {
		got.WriteString(w.get("/orders/x").body)
	}
	if got.String() != "abaaba" {
		t.Errorf("order %s, want abaaba", got.String())
	}
}

func TestAServiceWithoutInstances(t *testing.T) {
	w := newWorld(t, nil)
	all := newBackend(t, "all", nil)
	w.set("shop", instance("all", all.addr()))
	w.set("orders")
	w.paths = map[string]string{"/": "shop", "/orders": "orders"}
	w.apply()
	if got := w.get("/orders/1"); got.status != 503 || got.header.Get("Retry-After") != "5" || !strings.Contains(got.body, "no live instance") {
		t.Errorf("known service without instances: %+v", got)
	}
	if got := w.get("/ordersx"); got.body != "all" {
		t.Errorf("/ordersx belongs to /: %+v", got)
	}
}

func TestTheRequestAsTheBackendSeesIt(t *testing.T) {
	w := newWorld(t, nil)
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(rw, "%s %s %s %s", r.Method, r.RequestURI, r.Host, body)
	})
	w.set("orders", instance("b", b.addr()))
	w.apply()
	for _, target := range []string{"/orders/a%2Fb?x=%20y&z", "/orders//a/./b/../c", "//orders/x?y=1", "/orders/%7Euser?", "/orders?a?b"} {
		got := rawRequest(t, w.addr, "POST "+target+" HTTP/1.1\r\nHost: shop.example:81\r\nContent-Length: 3\r\n"+
			"Connection: close, X-Hop\r\nX-Hop: 1\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nKeep-Alive: 5\r\nTE: trailers, gzip\r\n\r\nabc")
		if want := "POST " + target + " shop.example:81 abc"; got.body != want {
			t.Errorf("backend saw %q, want %q", got.body, want)
		}
		h := b.request().Header
		for name, want := range map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "shop.example:81",
			"X-Hop": "", "Connection": "", "Keep-Alive": "", "Te": "trailers", "User-Agent": "", "Accept-Encoding": "",
		} {
			if got := strings.Join(h.Values(name), "|"); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

func TestTrustedProxiesKeepTheirForwardedFields(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	b := newBackend(t, "b", nil)
	w.set("orders", instance("b", b.addr()))
	w.apply()
	w.do("GET", "/orders", nil, "X-Forwarded-For", "9.9.9.9", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "shop")
	h := b.request().Header
	if h.Get("X-Forwarded-For") != "9.9.9.9, 127.0.0.1" || h.Get("X-Forwarded-Proto") != "https" || h.Get("X-Forwarded-Host") != "shop" {
		t.Errorf("fields of a trusted proxy: %v", h)
	}
}

func TestPathsThatCantBe(t *testing.T) {
	w := newWorld(t, nil)
	b := newBackend(t, "b", nil)
	w.set("orders", instance("b", b.addr()))
	w.apply()
	for target, want := range map[string]int{
		"/../orders": 400, "/orders/%zz": 400, "/orders/%00": 400, "/x/%2e%2e/orders": 200, "/x/../orders/": 200,
		"/%6frders": 200, "http://any/orders?x": 200, "/orders/..": 404,
	} {
		if got := rawRequest(t, w.addr, "GET "+target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); got.status != want {
			t.Errorf("%s: %d, want %d (%s)", target, got.status, want, got.body)
		}
	}
	if got := rawRequest(t, w.addr, "CONNECT orders:80 HTTP/1.1\r\nHost: orders:80\r\n\r\n"); got.status != 405 {
		t.Errorf("CONNECT: %+v", got)
	}
}

// rawRequest sends text over a connection of its own and reads one answer.
func rawRequest(t *testing.T, addr, text string) answer {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, string(body), resp.Header}
}

func TestAnswersArePassedOnAsTheyCome(t *testing.T) {
	next := make(chan string)
	w := newWorld(t, nil)
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		rw.WriteHeader(200)
		_ = http.NewResponseController(rw).Flush()
		for s := range next {
			_, _ = io.WriteString(rw, s)
			_ = http.NewResponseController(rw).Flush()
		}
	})
	w.set("orders", instance("b", b.addr()))
	w.apply()
	resp, err := w.client.Get(w.url + "/orders") // returns before the first event: the head comes at once
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, s := range []string{"data: 1\n\n", "data: 2\n\n"} {
		next <- s
		buf := make([]byte, len(s))
		if _, err := io.ReadFull(resp.Body, buf); err != nil || string(buf) != s {
			t.Fatalf("event %q, %v", buf, err)
		}
	}
	close(next)
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		t.Errorf("after the last event: %q, %v", rest, err)
	}
}

func TestTrailersBothWays(t *testing.T) {
	w := newWorld(t, nil)
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Trailer", "X-Sum")
		_, _ = io.Copy(rw, r.Body)
		rw.Header().Set("X-Sum", "of "+r.Trailer.Get("X-Asked"))
		rw.Header().Set(http.TrailerPrefix+"X-Late", "yes")
	})
	w.set("orders", instance("b", b.addr()))
	w.apply()
	req, _ := http.NewRequest("POST", w.url+"/orders", io.MultiReader(strings.NewReader("ab"), strings.NewReader("cd")))
	req.Trailer = http.Header{"X-Asked": nil}
	req.Trailer.Set("X-Asked", "question")
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if string(body) != "abcd" || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
	if resp.Trailer.Get("X-Sum") != "of question" || resp.Trailer.Get("X-Late") != "yes" {
		t.Errorf("trailers: %v", resp.Trailer)
	}
}

func TestHeadAndBodilessAnswers(t *testing.T) {
	w := newWorld(t, nil)
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/orders/204":
			rw.WriteHeader(204)
		case "/orders/304":
			rw.Header().Set("Etag", `"x"`)
			rw.WriteHeader(304)
		default:
			rw.Header().Set("Content-Length", "1234")
			rw.WriteHeader(200)
		}
	})
	w.set("orders", instance("b", b.addr()))
	w.apply()
	if got := w.do("HEAD", "/orders/x", nil); got.status != 200 || got.header.Get("Content-Length") != "1234" || got.body != "" {
		t.Errorf("HEAD: %+v", got)
	}
	if got := w.get("/orders/204"); got.status != 204 {
		t.Errorf("204: %+v", got)
	}
	if got := w.get("/orders/304"); got.status != 304 || got.header.Get("Etag") != `"x"` {
		t.Errorf("304: %+v", got)
	}
}

func TestInformationalAnswersAndExpect(t *testing.T) {
	w := newWorld(t, nil)
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Refuse") != "" {
			rw.WriteHeader(413)
			return
		}
		rw.Header().Set("Link", "</style.css>")
		rw.WriteHeader(103)
		rw.Header().Del("Link")
		body, _ := io.ReadAll(r.Body)
		_, _ = rw.Write(bytes.ToUpper(body))
	})
	w.set("orders", instance("b", b.addr()))
	w.apply()
	var hints []string
	var asked int
	trace := &httptrace.ClientTrace{
		Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(status, h.Get("Link")))
			return nil
		},
		Got100Continue: func() { asked++ },
	}
	req, _ := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), "POST", w.url+"/orders", strings.NewReader("body"))
	req.Header.Set("Expect", "100-continue")
	w.client.Transport.(*http.Transport).ExpectContinueTimeout = 5 * time.Second
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(got) != "BODY" || asked != 1 {
		t.Errorf("%q, %d times 100", got, asked)
	}
	if want := "103</style.css>"; !strings.Contains(strings.Join(hints, ","), want) {
		t.Errorf("informational answers %q, want %q", hints, want)
	}
	if a := w.do("POST", "/orders", strings.NewReader("body"), "Expect", "100-continue", "X-Refuse", "1"); a.status != 413 {
		t.Errorf("refused before the body: %+v", a)
	}
}

func TestTunnel(t *testing.T) {
	w := newWorld(t, nil)
	gone := make(chan struct{})
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) {
		defer close(gone)
		if r.Header.Get("Upgrade") != "echo" || r.Header.Get("Connection") != "Upgrade" {
			http.Error(rw, "no upgrade", 400)
			return
		}
		c, buf, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello ")
		_, _ = io.Copy(c, buf)
	})
	w.set("orders", instance("b", b.addr()))
	w.apply()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(c, "GET /orders HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\nearly ")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "echo" {
		t.Fatalf("%+v, %v", resp, err)
	}
	_, _ = io.WriteString(c, "late")
	buf := make([]byte, len("hello early late"))
	if _, err := io.ReadFull(r, buf); err != nil || string(buf) != "hello early late" {
		t.Fatalf("tunnel gave %q, %v", buf, err)
	}
	if s := w.state("orders")[0]; s.Conns != 1 {
		t.Errorf("an open tunnel is an open attempt: %+v", s)
	}
	_ = c.Close()
	<-gone
	eventually(t, "the attempt ends with the tunnel", func() bool { return w.state("orders")[0].Conns == 0 })
}

func TestUnaskedUpgradeIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	addr := rawBackend(t, func(_ int, c net.Conn) {
		readHead(c)
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	w.set("orders", instance("b", addr))
	w.apply()
	if got := w.get("/orders"); got.status != 502 {
		t.Errorf("%+v", got)
	}
}

func readHead(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\r\n" {
			return
		}
	}
}

func TestZonesWalkOwnFirst(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Zone = "west" })
	east, west := newBackend(t, "east", nil), newBackend(t, "west", nil)
	e, o := instance("e", east.addr()), instance("w", west.addr())
	e.Zone, o.Zone = "east", "west"
	w.zoned["orders"] = true
	w.set("orders", e, o)
	w.apply()
	for range 4 {
		if got := w.get("/orders").body; got != "west" {
			t.Fatalf("own zone first: %s", got)
		}
	}
	west.kill()
	for range 4 {
		if got := w.get("/orders"); got.status != 200 || got.body != "east" {
			t.Fatalf("own zone dead: %+v", got)
		}
	}
	o.Drain = true
	w.set("orders", e, o)
	w.apply()
	if got := w.get("/orders"); got.body != "east" {
		t.Fatalf("own zone without a peer: %+v", got)
	}
	w.set("orders")
	w.zoned["orders"] = false
	w.apply()
	if got := w.get("/orders"); got.status != 503 {
		t.Fatalf("no instance in any zone: %+v", got)
	}
}

func TestTimeouts(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Peers = http1.Settings{Read: 80 * time.Millisecond, Connect: 200 * time.Millisecond}
	})
	slow := newBackend(t, "slow", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/orders/body" {
			rw.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(rw, "12345")
			_ = http.NewResponseController(rw).Flush()
		}
		<-r.Context().Done()
	})
	w.set("orders", instance("slow", slow.addr()))
	w.apply()
	if got := w.get("/orders"); got.status != 504 || !strings.Contains(got.body, "no answer in time") {
		t.Errorf("a single peer that hangs: %+v", got)
	}
	if a, err := w.try("GET", "/orders/body", nil); err == nil {
		t.Errorf("an answer that stops half-way must be cut: %+v", a)
	}
	w.set("orders", instance("slow", slow.addr()), topology.Instance{ID: "ok", Addr: newBackend(t, "ok", nil).addr(), Order: 9})
	w.apply()
	for range 3 {
		if got := w.get("/orders"); got.body != "ok" {
			t.Errorf("another peer answers: %+v", got)
		}
	}
}
