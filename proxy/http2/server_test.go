package http2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestRequestOfHTTP2 holds what of a request meets the core, in the clear and over TLS.
func TestRequestOfHTTP2(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			seen := make(chan forward.Request, 1)
			d := listen(t, limitsForTests(), secure, func(_ context.Context, r *forward.Request, c forward.Client) {
				copied := *r
				copied.Fields = nil
				for _, f := range r.Fields {
					copied.Fields = append(copied.Fields, field(string(f.Name), string(f.Value)))
				}
				b, _ := io.ReadAll(r.Body)
				copied.Line = b
				copied.Fields = append(copied.Fields, r.Body.Trailer()...)
				seen <- copied
				say(c, 201, "made")
			})
			scheme := map[bool]string{false: "http", true: "https"}[secure]
			req, _ := http.NewRequest("PUT", scheme+"://"+d.addr+"/a%2fb?c=d", io.NopCloser(strings.NewReader("body")))
			req.Host = "www.example:81"
			req.Header.Add("Cookie", "a=1; b=2")
			req.Header.Set("Te", "trailers")
			req.Header["X-Two"] = []string{"1", "2"}
			req.Trailer = http.Header{"X-After": []string{"end"}}
			res, err := caller(t, secure).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			if res.StatusCode != 201 || string(text) != "made" || res.Proto != "HTTP/2.0" || res.ContentLength != 4 {
				t.Errorf("%s %d %q, length %d", res.Proto, res.StatusCode, text, res.ContentLength)
			}
			r := <-seen
			if string(r.Method) != "PUT" || string(r.Authority) != "www.example:81" || string(r.Target) != "/a%2fb?c=d" || r.Proto != "HTTP/2.0" ||
				r.Length != -1 || string(r.Line) != "body" || r.Connection != 1 || r.Served != 1 || r.Secure != secure || (r.TLS != nil) != secure ||
				r.Remote.String() != "127.0.0.1" || r.RemotePort == 0 || r.Local.String() != d.addr || r.Invalid != "" {
				t.Errorf("%+v", r)
			}
			var got []string
			for _, f := range r.Fields {
				got = append(got, string(f.Name)+": "+string(f.Value))
			}
			slices.Sort(got) // net/http's client has no order
			want := "cookie: a=1; b=2|te: trailers|trailer: X-After|user-agent: Go-http-client/2.0|x-after: end|x-two: 1|x-two: 2"
			if text := strings.Join(got, "|"); text != want {
				t.Errorf("%s\nwant %s", text, want)
			}
		})
	}
}

// TestAnswers holds how answers of every kind look to clients.
func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		method string
		handle func(c forward.Client)
		want   string // status, length, body, trailer; or an error
	}{
		"known length": {"GET", func(c forward.Client) { say(c, 200, "hello") }, "200 5 hello map[]"},
		"unknown length": {"GET", func(c forward.Client) {
			_ = c.Head(200, nil, -1)
			_ = c.Write([]byte("one"))
			_ = c.Write([]byte("two"))
			_ = c.End([]forward.Field{field("grpc-status", "0"), field("X-T", "a"), field("X-T", "b")})
		}, "200 -1 onetwo map[Grpc-Status:[0] X-T:[a b]]"},
		"finished at once": {"GET", func(c forward.Client) {
			c.(forward.Corker).Cork()
			_ = c.Head(200, nil, -1)
			_ = c.(forward.Finisher).Finish([]byte("all"), []forward.Field{field("X-T", "a")})
		}, "200 -1 all map[X-T:[a]]"},
		"nothing": {"GET", func(c forward.Client) { _ = c.Head(204, nil, -1); _ = c.End(nil) }, "204 0  map[]"},
		"empty": {"GET", func(c forward.Client) {
			_ = c.Head(200, []forward.Field{field("grpc-status", "12")}, 0)
			_ = c.End(nil)
		}, "200 0  map[]"},
		"head": {"HEAD", func(c forward.Client) {
			_ = c.Head(200, []forward.Field{field("Content-Length", "77")}, 77)
			_ = c.End(nil)
		}, "200 77  map[]"},
		"HTTP/0.9": {"GET", func(c forward.Client) {
			_ = c.Head(forward.Headless, nil, -1)
			_ = c.Write([]byte("raw"))
			_ = c.End(nil)
		}, "200 -1 raw map[]"},
		"no answer": {"GET", func(forward.Client) {}, "INTERNAL_ERROR"},
		"aborted": {"GET", func(c forward.Client) {
			_ = c.Head(200, nil, 10)
			_ = c.Write([]byte("half"))
			c.Abort()
		}, "INTERNAL_ERROR"},
		"a panic": {"GET", func(forward.Client) { panic(http.ErrAbortHandler) }, "INTERNAL_ERROR"},
		"no tunnel": {"GET", func(c forward.Client) {
			_ = c.Head(101, []forward.Field{field("Upgrade", "x"), field("Connection", "upgrade")}, 0)
			if _, err := c.Tunnel(); errors.Is(err, forward.ErrNoTunnel) {
				say(c, 502, "no")
			}
		}, "502 2 no map[]"},
		"fields of a connection": {"GET", func(c forward.Client) {
			_ = c.Head(200, []forward.Field{field("Connection", "x"), field("Keep-Alive", "1"), field("Transfer-Encoding", "chunked"), field("Upgrade", "y")}, -1)
			_ = c.Write([]byte("z"))
			_ = c.End(nil)
		}, "200 -1 z map[]"},
	} {
		t.Run(name, func(t *testing.T) {
			d := listen(t, limitsForTests(), false, func(_ context.Context, _ *forward.Request, c forward.Client) { tc.handle(c) })
			req, _ := http.NewRequest(tc.method, "http://"+d.addr+"/", nil)
			res, err := caller(t, false).Do(req)
			got := ""
			if err == nil {
				var b []byte
				b, err = io.ReadAll(res.Body)
				got = fmt.Sprintf("%d %d %s %v", res.StatusCode, res.ContentLength, b, res.Trailer)
				for _, name := range []string{"Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade"} {
					if v := res.Header[name]; v != nil {
						t.Errorf("%s: %v", name, v)
					}
				}
			}
			if err != nil {
				got = err.Error()
			}
			if got != tc.want && (err == nil || !strings.Contains(got, tc.want)) {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestInformational: 103 comes before the answer, each with its own fields.
func TestInformational(t *testing.T) {
	d := listen(t, limitsForTests(), false, func(_ context.Context, _ *forward.Request, c forward.Client) {
		_ = c.Inform(103, []forward.Field{field("Link", "</a>")})
		_ = c.Inform(103, []forward.Field{field("Link", "</b>")})
		say(c, 200, "x")
	})
	var told []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
		told = append(told, fmt.Sprint(status, h))
		return nil
	}})
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://"+d.addr, nil)
	res, err := caller(t, false).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if got := fmt.Sprint(told); got != "[103 map[Link:[</a>]] 103 map[Link:[</b>]]]" || res.Header["Link"] != nil {
		t.Errorf("%s, then %v", got, res.Header)
	}
}

// TestBothWays: an answer begins, and goes on, while the request's body still comes.
func TestBothWays(t *testing.T) {
	d := listen(t, limitsForTests(), true, func(_ context.Context, r *forward.Request, c forward.Client) {
		_ = c.Head(200, nil, -1)
		b := make([]byte, 1<<10)
		for {
			n, err := r.Body.Read(b)
			if n > 0 {
				_ = c.Write(b[:n])
			}
			if err != nil {
				_ = c.End(nil)
				return
			}
		}
	})
	from, to := io.Pipe()
	req, _ := http.NewRequest("POST", "https://"+d.addr, from)
	res, err := caller(t, true).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		text := strings.Repeat("x", 1+i)
		_, _ = io.WriteString(to, text)
		b := make([]byte, len(text))
		if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != text {
			t.Fatalf("%q, %v", b, err)
		}
	}
	_ = to.Close()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestClientGoes: the handler's context ends when the client resets its stream, and when its connection ends.
func TestClientGoes(t *testing.T) {
	var began, ended atomic.Int32
	d := listen(t, limitsForTests(), false, func(ctx context.Context, _ *forward.Request, c forward.Client) {
		began.Add(1)
		<-ctx.Done()
		ended.Add(1)
		c.Abort()
	})
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://"+d.addr, nil)
	go func() {
		for began.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := caller(t, false).Do(req); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	within(t, 5*time.Second, "the request ends", func() bool { return ended.Load() == 1 })
	within(t, 5*time.Second, "it is counted out", func() bool { s := d.server.Stats(); return s.Writing == 0 && s.Requests == 1 })
}
