package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// door opens one more door of the proxy and gives its address.
func (w *world) door(d Door) string {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- w.p.ServeDoor(l, d) }()
	w.t.Cleanup(func() {
		_ = l.Close()
		<-served
	})
	return l.Addr().String()
}

// spoken sends bytes to an address and reads the answer; empty: the connection was closed without one.
func spoken(t *testing.T, addr, text string) (status int, body string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

const proxyV1 = "PROXY TCP4 192.0.2.9 192.0.2.1 4711 80\r\n"

// A header of the PROXY protocol tells the client where the one who sends it is trusted; and a connection without one is
// closed.
func TestProxyProtocolOfPublishedRoutes(t *testing.T) {
	saw := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-For"))
	}
	for name, trusted := range map[string][]netip.Prefix{"believed": {netip.MustParsePrefix("127.0.0.0/8")}, "not believed": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.TrustedProxies = trusted })
			w.set("orders", instance("a", newBackend(t, "a", saw).addr()))
			w.apply()
			want := "127.0.0.1"
			if trusted != nil {
				want = "192.0.2.9"
			}
			addr := w.door(Door{ProxyProtocol: true})
			// What the client behind says of itself is not believed, though the one who sends the header is.
			const get = "GET /orders HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 6.6.6.6\r\nConnection: close\r\n\r\n"
			if status, body := spoken(t, addr, proxyV1+get); status != 200 || body != want {
				t.Errorf("%d, %q, want %q", status, body, want)
			}
			twice := strings.Replace(get, "Connection: close\r\n", "", 1)
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			in := bufio.NewReader(c)
			for i, text := range []string{proxyV1 + twice, twice} {
				_, _ = io.WriteString(c, text)
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				if b, _ := io.ReadAll(resp.Body); string(b) != want {
					t.Errorf("request %d of a connection: %q", i, b)
				}
			}
			for _, bad := range []string{get, "PROXY TCP4 nonsense\r\n" + get, proxyV1 + proxyV1 + get} {
				if status, _ := spoken(t, addr, bad); status != 0 && (status != 400 || !strings.HasPrefix(bad, proxyV1)) {
					t.Errorf("%.30q: %d", bad, status)
				}
			}
		})
	}
}

func TestProxyProtocolOfAFile(t *testing.T) {
	w := newWorld(t, nil)
	addr := w.door(Door{ProxyProtocol: true})
	w.mustLoad(false, `server { listen `+addr+` proxy_protocol; set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;
		location / { return 200 "$remote_addr $remote_port $realip_remote_addr $proxy_protocol_server_addr"; } }`)
	if status, body := spoken(t, addr, proxyV1+"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); status != 200 || body != "192.0.2.9 4711 127.0.0.1 192.0.2.1" {
		t.Errorf("%d %q", status, body)
	}
}

// The limits of a door count its own connections, and those of another door with the same limits are its own.
func TestConnectionsOfADoor(t *testing.T) {
	w := newWorld(t, nil)
	w.set("orders", instance("a", newBackend(t, "a", nil).addr()))
	w.apply()
	for name, d := range map[string]Door{"all": {Conns: 2}, "of an address": {ConnsPerAddress: 2}} {
		t.Run(name, func(t *testing.T) {
			one, two := w.door(d), w.door(d)
			open := func(addr string) net.Conn {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				_ = c.SetDeadline(time.Now().Add(5 * time.Second))
				_, _ = io.WriteString(c, "GET /orders HTTP/1.1\r\nHost: x\r\n\r\n")
				return c
			}
			served := func(c net.Conn) bool { _, err := http.ReadResponse(bufio.NewReader(c), nil); return err == nil }
			a, b, c, d := open(one), open(one), open(one), open(two)
			defer b.Close()
			defer c.Close()
			defer d.Close()
			if !served(a) || !served(b) || served(c) || !served(d) {
				t.Error("want two at each door")
			}
			_ = a.Close()
			for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				next := open(one)
				ok := served(next)
				_ = next.Close()
				if ok {
					break
				}
				if time.Now().After(end) {
					t.Fatal("the place of a connection that was closed is not free")
				}
			}
		})
	}
}
