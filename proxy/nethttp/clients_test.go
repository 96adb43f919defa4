package nethttp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// serving runs a server and gives its address.
func serving(t *testing.T, set Settings, h handlerFunc) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(set, h, log.New(io.Discard, "", 0))
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

// caller is a client's connection.
type caller struct {
	net.Conn
	in *bufio.Reader
}

func call(t *testing.T, addr string) caller {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	return caller{c, bufio.NewReader(c)}
}

// ask sends a request and gives the answer with its body.
func (c caller) ask(t *testing.T, text string) (*http.Response, string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// closed tells whether the server closes the connection.
func (c caller) closed(t *testing.T) bool {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	_, err := c.in.ReadByte()
	return err == io.EOF
}

func plain(text string) handlerFunc {
	return func(_ context.Context, r *forward.Request, c forward.Client) { forward.Plain(c, r, 200, text) }
}

func TestRequestTellsWhereItCameFrom(t *testing.T) {
	got := make(chan *forward.Request, 1)
	_, addr := serving(t, Settings{}, func(_ context.Context, r *forward.Request, c forward.Client) {
		got <- r
		forward.Plain(c, r, 200, "ok")
	})
	for proto, text := range map[string]string{"HTTP/1.1": "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.0": "GET / HTTP/1.0\r\n\r\n"} {
		c := call(t, addr)
		c.ask(t, text)
		r := <-got
		if r.Proto != proto || r.Local.String() != addr || fmt.Sprintf("%s:%d", r.Remote, r.RemotePort) != c.LocalAddr().String() {
			t.Errorf("%s: %s, at %s, from %s %d", proto, r.Proto, r.Local, r.Remote, r.RemotePort)
		}
	}
}

// TestOldClients: HTTP/1.0 knows no chunks, and its connection carries one request.
func TestOldClients(t *testing.T) {
	_, addr := serving(t, Settings{}, func(_ context.Context, r *forward.Request, c forward.Client) {
		if string(r.Target) == "/length" {
			forward.Plain(c, r, 200, "ok")
			return
		}
		_ = c.Head(200, nil, -1)
		_ = c.Write([]byte("o"))
		_ = c.Write([]byte("k\n"))
		_ = c.End(nil)
	})
	for _, target := range []string{"/length", "/stream"} {
		for _, more := range []string{"", "Connection: keep-alive\r\n"} {
			c := call(t, addr)
			resp, body := c.ask(t, "GET "+target+" HTTP/1.0\r\n"+more+"\r\n")
			if body != "ok\n" || len(resp.TransferEncoding) > 0 || resp.Header.Get("Connection") == "keep-alive" || !c.closed(t) {
				t.Errorf("%s %q: %q, %v", target, more, body, resp.Header)
			}
		}
	}
}

func TestLongHeads(t *testing.T) {
	_, addr := serving(t, Settings{ClientLine: 100, ClientLines: 250}, func(_ context.Context, r *forward.Request, c forward.Client) {
		status := 200
		if r.Invalid != "" {
			status = max(r.Refuse, 400)
		}
		forward.Plain(c, r, status, r.Invalid)
	})
	field := "A: " + strings.Repeat("x", 80) + "\r\n"
	for name, tc := range map[string]struct {
		text   string
		status int
	}{
		"short":               {"GET / HTTP/1.1\r\nHost: a\r\n", 200},
		"line as it may be":   {"GET /" + strings.Repeat("x", 84) + " HTTP/1.1\r\nHost: a\r\n", 200},
		"long line":           {"GET /" + strings.Repeat("x", 85) + " HTTP/1.1\r\nHost: a\r\n", 414},
		"field as it may be":  {"GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("x", 95) + "\r\n", 200},
		"long field":          {"GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("x", 96) + "\r\n", 400},
		"many fields":         {"GET / HTTP/1.1\r\nHost: a\r\n" + field + field + field, 400},
		"more than all of it": {"GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat(field, 2000), 431},
	} {
		c := call(t, addr)
		resp, body := c.ask(t, tc.text+"\r\n")
		if resp.StatusCode != tc.status || tc.status != 200 && !c.closed(t) {
			t.Errorf("%s: %d %q", name, resp.StatusCode, body)
		}
	}
}

func TestHowLongConnectionsAreKept(t *testing.T) {
	for name, tc := range map[string]struct {
		set   Settings
		asked int // requests until it closes
	}{
		"two requests": {Settings{ClientRequests: 2}, 2}, "too old": {Settings{ClientAge: time.Nanosecond}, 1}, "never": {Settings{ClientIdle: -1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, addr := serving(t, tc.set, plain("ok"))
			c := call(t, addr)
			for i := 1; i <= tc.asked; i++ {
				resp, _ := c.ask(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				if resp.Close != (i == tc.asked) {
					t.Errorf("request %d: close %v", i, resp.Close)
				}
			}
			if !c.closed(t) {
				t.Error("still open")
			}
		})
	}
}

// TestStats follows two connections through what they do.
func TestStats(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s, addr := serving(t, Settings{}, func(_ context.Context, r *forward.Request, c forward.Client) {
		entered <- struct{}{}
		<-release
		forward.Plain(c, r, 200, "ok")
	})
	expect := func(what string, want Stats) {
		t.Helper()
		var got Stats
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if got = s.Stats(); got == want {
				return
			}
		}
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
	a, b := call(t, addr), call(t, addr)
	expect("connected", Stats{Accepts: 2, Handled: 2, Active: 2, Waiting: 2})
	_, _ = io.WriteString(a, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-entered
	expect("in a request", Stats{Accepts: 2, Handled: 2, Requests: 1, Active: 2, Writing: 1, Waiting: 1})
	release <- struct{}{}
	a.ask(t, "")
	expect("answered", Stats{Accepts: 2, Handled: 2, Requests: 1, Active: 2, Waiting: 2})
	_ = b.Close()
	expect("one closed", Stats{Accepts: 2, Handled: 2, Requests: 1, Active: 1, Waiting: 1})
	if sum := s.Stats().Plus(s.Stats()); sum.Active != 2 || sum.Accepts != 4 {
		t.Errorf("%+v", sum)
	}
}

// TestStatsOfTunnels: a connection that changed its protocol is active until it ends.
func TestStatsOfTunnels(t *testing.T) {
	var wg sync.WaitGroup
	wg.Add(1)
	s, addr := serving(t, Settings{}, func(_ context.Context, _ *forward.Request, c forward.Client) {
		defer wg.Done()
		_ = c.Head(http.StatusSwitchingProtocols, nil, 0)
		if rw, err := c.Tunnel(); err == nil {
			_, _ = io.Copy(rw, rw)
			_ = rw.Close()
		}
	})
	c := call(t, addr)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	if _, err := c.in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats(); got.Active != 1 || got.Waiting != 0 {
		t.Errorf("%+v", got)
	}
	_ = c.Close()
	wg.Wait()
	if got := s.Stats(); got.Active != 0 || got.Accepts != 1 {
		t.Errorf("%+v", got)
	}
}

// TestHeadless: the client gets nothing but the bytes, and the end of the connection tells theirs.
func TestHeadless(t *testing.T) {
	for name, text := range map[string]string{"GET": "GET / HTTP/1.1\r\nHost: shop\r\n\r\n", "POST": unfinished} {
		got := talk(t, func(_ context.Context, _ *forward.Request, c forward.Client) {
			if c.Head(forward.Headless, nil, -1) != nil || c.Write([]byte("just ")) != nil || c.Write([]byte("this")) != nil || c.End(nil) != nil {
				t.Error("not written")
			}
		}, text)
		if got != "just this" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
