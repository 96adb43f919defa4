package site

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

func TestExpires(t *testing.T) {
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	const modified = "Mon, 30 Nov 2026 09:00:00 GMT"
	for _, tc := range []struct {
		text     string
		modified bool
		expires  string // empty: nothing is written
		control  string
	}{
		{"1h", false, "Mon, 30 Nov 2026 11:00:00 GMT", "max-age=3600"},
		{"0", false, "Mon, 30 Nov 2026 10:00:00 GMT", "max-age=0"},
		{"-1", false, "Mon, 30 Nov 2026 09:59:59 GMT", "no-cache"},
		{"epoch", false, "Thu, 01 Jan 1970 00:00:01 GMT", "no-cache"},
		{"max", false, "Thu, 31 Dec 2037 23:55:55 GMT", "max-age=315360000"},
		{"off", false, "", ""},
		{"@15h30m", false, "Mon, 30 Nov 2026 15:30:00 GMT", "max-age=19800"},
		{"@9h", false, "Tue, 01 Dec 2026 09:00:00 GMT", "max-age=82800"},
		{"2h", true, "Mon, 30 Nov 2026 11:00:00 GMT", "max-age=3600"},
		{"30m", true, "Mon, 30 Nov 2026 09:30:00 GMT", "no-cache"},
	} {
		rule, ok := parseExpires(tc.text)
		if !ok {
			t.Errorf("%s is not read", tc.text)
		}
		if tc.modified {
			rule.form = expiresModified
		}
		expires, control, some := rule.moment(now, []byte(modified))
		if expires != tc.expires || control != tc.control || some != (tc.expires != "") {
			t.Errorf("%s: %q %q, want %q %q", tc.text, expires, control, tc.expires, tc.control)
		}
	}
	for _, bad := range []string{"", "soon", "@-1h", "@25h", "1x", "--1"} {
		if _, ok := parseExpires(bad); ok {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestExpiresByVariable(t *testing.T) {
	w := newTroupe(t, threePeers+`map $sent_http_content_type $ex { default off; text/css 1h; ~image/ max; text/bad nonsense; }
	server { listen 127.0.0.1:8080; location / { expires $ex; proxy_pass http://u; } }`)
	for kind, want := range map[string]string{"text/css": "max-age=3600", "image/png": "max-age=315360000", "text/html": "", "text/bad": ""} {
		w.plays = map[string]string{"1": "fields:Content-Type=" + kind, "2": "fields:Content-Type=" + kind, "3": "fields:Content-Type=" + kind}
		if got := string(fieldList(w.ask("GET /").fields).get("Cache-Control")); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// TestNoFieldOfTheClientsOwnMaking: decoded line breaks don't reach a head, neither the backend's nor the client's.
func TestNoFieldOfTheClientsOwnMaking(t *testing.T) {
	w := newTroupe(t, threePeers+`server { listen 127.0.0.1:8080;
		location ~ ^/p/(.*) { proxy_set_header X-Path $1; proxy_set_header Host $1; add_header X-Path $1; proxy_pass http://u/$1; }
		location ~ ^/r/(.*) { return 302 http://other.example/$1; }
		location ~ ^/c/(.*) { proxy_cookie_path / /$1; proxy_redirect / /$1; proxy_pass http://u; }
	}`)
	w.plays = map[string]string{"1": "fields:Set-Cookie=a=b; Path=/|Location=/", "2": "fields:Set-Cookie=a=b; Path=/|Location=/", "3": ""}
	for _, ask := range []string{"GET /p/a%0d%0aX-Evil:%201%00", "GET /r/a%0d%0aX-Evil:%201", "GET /c/a%0d%0aX-Evil:%201"} {
		c := w.ask(strings.Replace(ask, "%00", "", 1))
		for _, f := range c.fields {
			if strings.ContainsAny(string(f.Name)+string(f.Value), "\r\n") {
				t.Errorf("%s: %q", ask, f)
			}
		}
	}
	for _, sent := range w.tries {
		if strings.ContainsAny(sent, "\r\n") {
			t.Errorf("sent %q", sent)
		}
	}
}

func TestConnectionOfTheClient(t *testing.T) {
	for _, tc := range []struct{ conf, ask, field, want string }{
		{"", "GET / test.example HTTP/1.1", "", "keep-alive"},
		{"", "GET / test.example HTTP/1.1", "Connection: close", "close"},
		{"", "GET / test.example HTTP/1.1", "Connection: x, Close", "close"},
		{"", "GET / test.example HTTP/1.0", "", "close"},
		{"", "GET / test.example HTTP/1.0", "Connection: Keep-Alive", "keep-alive"},
		{"keepalive_timeout 0;", "GET / test.example HTTP/1.1", "", "close"},
		{"keepalive_requests 0;", "GET / test.example HTTP/1.1", "", "close"},
		{"keepalive_timeout 10s 20s;", "GET / test.example HTTP/1.1", "", "keep-alive timeout=20"},
		{"return 500;", "GET / test.example HTTP/1.1", "", "close"},
		{"return 413;", "GET / test.example HTTP/1.1", "", "close"},
		{"return 404;", "GET / test.example HTTP/1.1", "", "keep-alive"},
	} {
		w := newWorld(t, "server { listen 127.0.0.1:8080; "+tc.conf+" location / { return 200 ok; } }")
		fields := []string{}
		if tc.field != "" {
			fields = append(fields, tc.field)
		}
		c := &collector{}
		r := requestOf(tc.ask, fields...)
		r.Proto = strings.Fields(tc.ask)[3]
		w.site.Handle(context.Background(), w, r, c)
		got := strings.TrimSpace(string(fieldList(c.fields).get("Connection")) + " " + string(fieldList(c.fields).get("Keep-Alive")))
		if got != tc.want {
			t.Errorf("%s %s %q: %q, want %q", tc.conf, tc.ask, tc.field, got, tc.want)
		}
	}
}

// counting is a world that knows its connections.
type counting struct{ *world }

func (counting) Connections() Connections {
	return Connections{Active: 7, Accepts: 20, Handled: 19, Requests: 100, Reading: 1, Writing: 2, Waiting: 4}
}

func TestStubStatus(t *testing.T) {
	w := newWorld(t, `server { listen 127.0.0.1:8080; location /s { stub_status; } location /v { return 200 "$connections_active $connections_reading $connections_writing $connections_waiting"; } }`)
	for _, tc := range []struct{ ask, want string }{
		{"GET /s", "200 | Active connections: 7 \nserver accepts handled requests\n 20 19 100 \nReading: 1 Writing: 2 Waiting: 4 \n"},
		{"POST /s", "405 | <page>"},
		{"GET /v", "200 | 7 1 2 4"},
	} {
		c := &collector{}
		w.site.Handle(context.Background(), counting{w}, requestOf(tc.ask), c)
		if got := c.line(); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.ask, got, tc.want)
		}
	}
	if got := w.ask("GET /s"); !strings.HasPrefix(got, "200 | Active connections: 1 \n") {
		t.Errorf("without counters: %q", got)
	}
}

// switching is an engine whose backend changes protocols when it is asked to.
type switching struct {
	*world
	up   Upstream
	back net.Conn
	got  *forward.Request
}

func (s *switching) Upstream(string) *Upstream   { return &s.up }
func (s *switching) Opener(*Wire) forward.Opener { return s }
func (s *switching) Open(context.Context, *balance.Peer, bool) forward.Backend {
	return s
}
func (s *switching) Send(r *forward.Request) error { s.got = r; return nil }
func (s *switching) Head() (int, []forward.Field, error) {
	field := func(name, value string) forward.Field { return forward.Field{Name: []byte(name), Value: []byte(value)} }
	return 101, []forward.Field{field("Upgrade", "websocket"), field("Connection", "Upgrade"), field("X-A", "b"), field("Server", "s")}, nil
}
func (s *switching) Body() forward.Source                { return nil }
func (s *switching) Sent() forward.Progress              { return forward.Progress{Connected: true, Sent: true} }
func (s *switching) Tunnel() (io.ReadWriteCloser, error) { return s.back, nil }
func (s *switching) Close()                              {}

// upgrading is a client that becomes a tunnel.
type upgrading struct {
	collector
	front net.Conn
}

func (u *upgrading) Tunnel() (io.ReadWriteCloser, error) { return u.front, nil }

func TestWebSocket(t *testing.T) {
	w := newWorld(t, `server { listen 127.0.0.1:8080; location / { proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade"; proxy_pass http://u; } }`)
	backend, back := net.Pipe()
	client, front := net.Pipe()
	s := &switching{world: w, up: Upstream{Name: "u", Group: w.group}, back: back}
	c := &upgrading{front: front}
	done := make(chan Served, 1)
	go func() {
		done <- w.site.Handle(context.Background(), s, requestOf("GET /ws", "Connection: Upgrade", "Upgrade: websocket"), c)
	}()
	_, _ = client.Write([]byte("hi"))
	b := make([]byte, 8)
	if n, err := backend.Read(b); err != nil || string(b[:n]) != "hi" {
		t.Fatalf("%q, %v", b[:n], err)
	}
	_, _ = backend.Write([]byte("hello"))
	if n, err := client.Read(b); err != nil || string(b[:n]) != "hello" {
		t.Fatalf("%q, %v", b[:n], err)
	}
	_ = client.Close()
	_ = backend.Close()
	out := <-done
	if out.Status != 101 || c.status != 101 || string(fieldList(c.fields).get("Upgrade")) != "websocket" || string(fieldList(c.fields).get("X-A")) != "b" {
		t.Errorf("%+v, %v", out, fieldLines(c.fields))
	}
	if n := len(c.fields); n != 3 {
		t.Errorf("%d fields: %v", n, fieldLines(c.fields))
	}
	if s.got != nil && out.Bytes != 5 {
		t.Errorf("%d bytes to the client", out.Bytes)
	}
	if _, err := backend.Write([]byte("x")); err == nil {
		t.Error("the backend's side is open")
	}
}
