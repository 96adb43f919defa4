package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// TestAnswers: what the client gets, but for Date. Every case is the last on its connection.
func TestAnswers(t *testing.T) {
	const closing = "Connection: close\r\n\r\n"
	for _, tc := range []struct {
		name, asks string // behind the target; empty: a GET of HTTP/1.1
		answer     func(c forward.Client) error
		want       string
	}{
		{"by length", "", func(c forward.Client) error {
			return errors.Join(c.Head(200, []forward.Field{field("b", "1"), field("A", "2")}, 4), c.Write([]byte("ab")), c.Write([]byte("cd")), c.End(nil))
		}, "HTTP/1.1 200 OK\r\nb: 1\r\nA: 2\r\nContent-Length: 4\r\n" + closing + "abcd"},
		{"its place", "", func(c forward.Client) error {
			return errors.Join(c.Head(201, []forward.Field{field("content-length", "9"), field("A", "2"), field("Content-Length", "4")}, 4), c.(forward.Finisher).Finish([]byte("abcd"), nil))
		}, "HTTP/1.1 201 Created\r\nContent-Length: 4\r\nA: 2\r\n" + closing + "abcd"},
		{"chunks", "", func(c forward.Client) error {
			return errors.Join(c.Head(299, []forward.Field{field("Transfer-Encoding", "gzip")}, -1), c.Write([]byte("ab")), c.Write(nil), c.End([]forward.Field{field("S", "1")}))
		}, "HTTP/1.1 299 \r\nTransfer-Encoding: chunked\r\n" + closing + "2\r\nab\r\n0\r\nS: 1\r\n\r\n"},
		{"chunks, finished", "", func(c forward.Client) error {
			c.(forward.Corker).Cork()
			return errors.Join(c.Head(200, nil, -1), c.(forward.Finisher).Finish([]byte("ab"), nil))
		}, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + closing + "2\r\nab\r\n0\r\n\r\n"},
		{"chunks, nothing", "", func(c forward.Client) error {
			return errors.Join(c.Head(200, nil, -1), c.(forward.Finisher).Finish(nil, nil))
		}, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + closing + "0\r\n\r\n"},
		{"a large chunk", "", func(c forward.Client) error {
			return errors.Join(c.Head(200, nil, -1), c.(forward.Finisher).Finish(make([]byte, 100000), nil))
		}, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + closing + "186a0\r\n" + strings.Repeat("\x00", 100000) + "\r\n0\r\n\r\n"},
		{"HEAD", "HEAD / HTTP/1.1\r\nHost: a\r\n", func(c forward.Client) error {
			return errors.Join(c.Head(200, []forward.Field{field("Content-Length", "9")}, 9), c.Write([]byte("not sent")), c.End(nil))
		}, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n" + closing},
		{"HEAD, unknown length", "HEAD / HTTP/1.1\r\nHost: a\r\n", func(c forward.Client) error {
			return errors.Join(c.Head(200, nil, -1), c.End(nil))
		}, "HTTP/1.1 200 OK\r\n" + closing},
		{"204", "", func(c forward.Client) error {
			return errors.Join(c.Head(204, []forward.Field{field("Content-Length", "0")}, 0), c.End(nil))
		}, "HTTP/1.1 204 No Content\r\n" + closing},
		{"304", "", func(c forward.Client) error {
			return errors.Join(c.Head(304, []forward.Field{field("Content-Length", "7")}, -1), c.End(nil))
		}, "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n" + closing},
		{"old, unknown length", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n", func(c forward.Client) error {
			return errors.Join(c.Head(200, []forward.Field{field("Keep-Alive", "timeout=5"), field("Connection", "keep-alive")}, -1), c.Write([]byte("ab")), c.Write([]byte("c")), c.End([]forward.Field{field("S", "1")}))
		}, "HTTP/1.1 200 OK\r\n" + closing[:len(closing)-2] + "\r\nabc"},
		{"no head", "", func(c forward.Client) error {
			return errors.Join(c.Head(forward.Headless, nil, -1), c.Write([]byte("ab")), c.End(nil))
		}, "ab"},
		{"informed", "", func(c forward.Client) error {
			return errors.Join(c.Inform(103, []forward.Field{field("Link", "x")}), c.Inform(100, nil), c.Head(200, nil, 0), c.End(nil))
		}, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + closing},
		{"old ones are not informed", "GET / HTTP/1.0\r\n", func(c forward.Client) error {
			return errors.Join(c.Inform(103, nil), c.Head(200, nil, 0), c.End(nil))
		}, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + closing},
		{"a value that would end its line", "", func(c forward.Client) error {
			return errors.Join(c.Head(200, []forward.Field{field("A", "1\r\nSet-Cookie: evil\n\r\n<p>"), field("B b\r\nC", "2"), field("", "3")}, 0), c.End(nil))
		}, "HTTP/1.1 200 OK\r\nA: 1  Set-Cookie: evil   <p>\r\nContent-Length: 0\r\n" + closing},
		{"other options of the connection", "", func(c forward.Client) error {
			return errors.Join(c.Head(426, []forward.Field{field("Connection", "Upgrade"), field("Upgrade", "h2c"), field("Connection", "keep-alive")}, 0), c.End(nil))
		}, "HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"},
		{"more than its length", "", func(c forward.Client) error {
			if err := c.Head(200, nil, 1); err != nil || c.Write([]byte("ab")) == nil {
				return errors.New("it was written")
			}
			return nil
		}, ""},
		{"less than its length", "", func(c forward.Client) error {
			if err := errors.Join(c.Head(200, nil, 2), c.Write([]byte("a"))); err != nil || c.End(nil) == nil {
				return errors.New("it was ended")
			}
			return nil
		}, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + closing + "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asks := tc.asks
			if asks == "" {
				asks = "GET / HTTP/1.1\r\nHost: a\r\n"
			}
			if !strings.Contains(asks, "Connection") {
				asks += "Connection: close\r\n"
			}
			got := talk(t, func(_ context.Context, _ *forward.Request, c forward.Client) {
				if err := tc.answer(c); err != nil {
					t.Error(err)
				}
			}, asks+"\r\n")
			if got = drop(got, "Date"); got != tc.want {
				t.Errorf("got  %.400q\nwant %.400q", got, tc.want)
			}
		})
	}
}

// TestKept: which connections carry another request.
func TestKept(t *testing.T) {
	for _, tc := range []struct {
		name, asks string
		s          Settings
		fields     []forward.Field
		kept       bool
		says       string
	}{
		{"new", "GET / HTTP/1.1\r\nHost: a\r\n", Settings{}, nil, true, ""},
		{"asked to close", "GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n", Settings{}, nil, false, "close"},
		{"old", "GET / HTTP/1.0\r\n", Settings{}, nil, false, "close"},
		{"old and kept", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n", Settings{}, nil, true, "keep-alive"},
		{"told to close", "GET / HTTP/1.1\r\nHost: a\r\n", Settings{}, []forward.Field{field("Connection", "close")}, false, "close"},
		{"told to keep", "GET / HTTP/1.1\r\nHost: a\r\n", Settings{}, []forward.Field{field("Connection", "keep-alive")}, true, "keep-alive"},
		{"told to keep, can't", "GET / HTTP/1.0\r\n", Settings{}, []forward.Field{field("Connection", "keep-alive")}, false, "close"},
		{"none are kept", "GET / HTTP/1.1\r\nHost: a\r\n", Settings{ClientIdle: -1}, nil, false, "close"},
		{"one request", "GET / HTTP/1.1\r\nHost: a\r\n", Settings{ClientRequests: 1}, nil, false, "close"},
	} {
		_, addr := serve(t, tc.s, func(_ context.Context, _ *forward.Request, c forward.Client) {
			_ = c.Head(200, tc.fields, 0)
			_ = c.End(nil)
		})
		c := dial(t, addr)
		say(t, c, tc.asks+"\r\n")
		got := hear(t, c, "\r\n\r\n")
		if says := headerOf(got, "Connection"); says != tc.says {
			t.Errorf("%s: Connection %q, want %q", tc.name, says, tc.says)
		}
		if !tc.kept {
			if rest := gone(t, c); rest != "" {
				t.Errorf("%s: %q", tc.name, rest)
			}
			continue
		}
		say(t, c, get)
		hear(t, c, "\r\n\r\n")
	}
}

func headerOf(answer, name string) string {
	for line := range strings.SplitSeq(answer, "\r\n") {
		if v, ok := strings.CutPrefix(line, name+": "); ok {
			return v
		}
	}
	return ""
}

// TestPipelining: answers come in the order of the requests, whatever they carry and however they were cut up.
func TestPipelining(t *testing.T) {
	var text, want strings.Builder
	for i := range 200 {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&text, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
		case 1:
			fmt.Fprintf(&text, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", i, i*10, strings.Repeat("b", i*10))
		case 2:
			fmt.Fprintf(&text, "\r\nPOST /%d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", i, i*100, strings.Repeat("c", i*100))
		case 3: // nobody reads the body
			fmt.Fprintf(&text, "PUT /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde", i)
		}
		size := 0
		switch i % 4 {
		case 1:
			size = i * 10
		case 2:
			size = i * 100
		}
		fmt.Fprintf(&want, "/%d:%d;", i, size)
	}
	for _, step := range []int{1 << 20, 8192, 999} {
		_, addr := serve(t, Settings{}, func(_ context.Context, r *forward.Request, c forward.Client) {
			n := int64(0)
			if r.Body != nil && string(r.Method) != "PUT" {
				n, _ = io.Copy(io.Discard, r.Body)
			}
			b := fmt.Sprintf("%s:%d;", r.Target, n)
			_ = c.Head(200, nil, int64(len(b)))
			_ = c.Write([]byte(b))
			_ = c.End(nil)
		})
		c := dial(t, addr)
		go func() {
			for s := text.String(); len(s) > 0; {
				n := min(step, len(s))
				if _, err := io.WriteString(c, s[:n]); err != nil {
					return
				}
				s = s[n:]
			}
		}()
		var got strings.Builder
		all := hear(t, c, "/199:")
		for line := range strings.SplitSeq(all, "\r\n") {
			if strings.HasPrefix(line, "/") {
				body, _, _ := strings.Cut(line, ";")
				got.WriteString(body + ";")
			}
		}
		if !strings.HasPrefix(want.String(), got.String()) || !strings.HasSuffix(got.String(), "/199:0;") {
			t.Errorf("by %d: %.2000s", step, got.String())
		}
	}
}

// TestHandlerWithoutAnAnswer: the client is cut off.
func TestHandlerWithoutAnAnswer(t *testing.T) {
	const unfinished = "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 10\r\n\r\nabc"
	for name, h := range map[string]handlerFunc{
		"returns": func(context.Context, *forward.Request, forward.Client) {},
		"aborts":  func(_ context.Context, _ *forward.Request, c forward.Client) { c.Abort() },
		"panics":  func(context.Context, *forward.Request, forward.Client) { panic("a bug") },
		"panics after reading": func(_ context.Context, r *forward.Request, _ forward.Client) {
			if r.Body != nil {
				_, _ = r.Body.Read(make([]byte, 10))
			}
			panic("a bug")
		},
	} {
		for _, request := range []string{get, unfinished} {
			_, addr := serve(t, Settings{}, h)
			c := dial(t, addr)
			say(t, c, request)
			if got, _ := io.ReadAll(c); len(got) > 0 {
				t.Errorf("%s: the client got %q for %q", name, got, request)
			}
		}
	}
}

// TestCutAnswers: the client can tell that an answer is not whole. Of one that ends with its connection only a reset tells.
func TestCutAnswers(t *testing.T) {
	cut := func(_ context.Context, _ *forward.Request, c forward.Client) {
		_ = c.Head(200, nil, -1)
		_ = c.Write([]byte("ab"))
		c.Abort()
	}
	for _, secure := range []bool{false, true} {
		_, addr := serve(t, Settings{TLS: secure}, cut, withTLS(t))
		for _, proto := range []string{"1.1", "1.0"} {
			c := net.Conn(dial(t, addr))
			if secure {
				c = shakeHands(t, c)
			}
			say(t, c, "GET / HTTP/"+proto+"\r\nHost: a\r\n\r\n")
			got, err := io.ReadAll(c)
			if proto == "1.0" && err == nil || proto == "1.1" && (err != nil || !strings.HasSuffix(string(got), "2\r\nab\r\n")) {
				t.Errorf("TLS %v, HTTP/%s: %q, %v", secure, proto, got, err)
			}
		}
	}
}

// TestWhatIsKnownOfARequest: what is known of a request besides its bytes.
func TestWhatIsKnownOfARequest(t *testing.T) {
	var number uint64
	served := int64(0)
	_, addr := serve(t, Settings{}, func(_ context.Context, r *forward.Request, c forward.Client) {
		if r.Remote.String() != "127.0.0.1" || r.RemotePort == 0 || r.Local.Port() == 0 || r.Secure || r.TLS != nil || string(r.Line) != "GET / HTTP/1.1" {
			t.Errorf("%+v", r)
		}
		if served++; r.Served != served || number != 0 && r.Connection != number || r.Connection == 0 {
			t.Errorf("request %d of connection %d", r.Served, r.Connection)
		}
		number = r.Connection
		forward.Plain(c, r, http.StatusOK, "ok")
	})
	c := dial(t, addr)
	for range 3 {
		say(t, c, get)
		hear(t, c, "ok\n")
	}
}
