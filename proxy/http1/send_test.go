package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// post is a request with a body that is waited for, unless it says that it is whole.
func post(b forward.Source, length int64, more ...string) *forward.Request {
	return &forward.Request{Method: []byte("POST"), Authority: []byte("shop"), Target: []byte("/"), Body: b, Length: length, Fields: fields(more...)}
}

// upstream is an address where each connection's requests are read by net/http and answered by what the function says.
func upstream(t *testing.T, answer func(r *http.Request, c net.Conn)) string {
	return listen(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			answer(r, c)
		}
	})
}

func TestBodies(t *testing.T) {
	large := strings.Repeat("0123456789", 30_000)
	for _, tc := range []struct {
		name   string
		body   *text
		length int64
		more   []string
		want   string // what the peer read; the trailer after a |
		class  forward.Class
		once   bool // it went out without a sender; one that is larger than the host takes at once may need one
	}{
		{"small and at hand", body("abc"), 3, nil, "abc|", 0, true},
		{"empty", body(""), 0, nil, "|", 0, true},
		{"waited for", &text{Reader: strings.NewReader("abc"), waits: true}, 3, nil, "abc|", 0, false},
		{"64 KiB at hand", body(large[:64<<10]), 64 << 10, nil, large[:64<<10] + "|", 0, true},
		{"large and at hand", body(large), int64(len(large)), nil, large + "|", 0, false},
		{"large, in chunks", body(large), -1, nil, large + "|", 0, false},
		{"in chunks", body("abc"), -1, nil, "abc|", 0, false},
		{"in chunks, empty", body(""), -1, nil, "|", 0, false},
		{"with a trailer", &text{Reader: strings.NewReader("abc"), trailer: fields("X-Sum", "1", "X-Other", "2")}, -1, []string{"Trailer", "X-Sum"}, "abc|1", 0, false},
		{"too short", &text{Reader: strings.NewReader("ab"), waits: true}, 3, nil, "", forward.ClientBody, false},
		{"too short, at hand", body("ab"), 3, nil, "", forward.ClientBody, false},
		{"too long", &text{Reader: strings.NewReader("abcd"), waits: true}, 3, nil, "", forward.ClientBody, false},
		{"the client fails", &text{Reader: strings.NewReader("ab"), err: errors.New("gone")}, 3, nil, "", forward.ClientBody, false},
		{"the client fails, in chunks", &text{Reader: strings.NewReader("ab"), err: errors.New("gone")}, -1, nil, "", forward.ClientBody, false},
		{"a trailer that can't be", &text{Reader: strings.NewReader("abc"), trailer: fields("X-Sum", "\n")}, -1, []string{"Trailer", "X-Sum"}, "", forward.ClientBody, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := make(chan string, 1)
			addr := upstream(t, func(r *http.Request, c net.Conn) {
				b, err := io.ReadAll(r.Body)
				if err == nil {
					got <- string(b) + "|" + r.Trailer.Get("X-Sum") + r.Trailer.Get("X-Other")
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
			b := ps.Open(t.Context(), p, false)
			r := post(tc.body, tc.length, tc.more...)
			_, _, err := exchanged(b, r)
			if tc.class != 0 {
				if err == nil || classOf(t, err) != tc.class || b.Sent().Unread {
					t.Errorf("%v, %+v", err, b.Sent())
				}
				b.Close()
				if n := p.Link.(*Pool).open(); n != 0 {
					t.Errorf("%d connections are left", n)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if all, err := io.ReadAll(readerOf{b.Body()}); string(all) != "ok" || err != nil {
				t.Errorf("%q, %v", all, err)
			}
			if s := <-got; s != tc.want {
				t.Errorf("the peer got %d bytes, %.50q", len(s), s)
			}
			if at := b.(*attempt); (at.sender == nil) != tc.once && len(tc.want) < len(large) {
				t.Errorf("a sender: %v", at.sender != nil)
			}
			if sent := b.Sent(); sent.Out < int64(len(tc.want)) || sent.In < 40 {
				t.Errorf("%+v", sent)
			}
			b.Close()
			if n := p.Link.(*Pool).shelf.count; n != 1 {
				t.Errorf("%d connections are kept", n)
			}
		})
	}
}

// stuck is a body whose client says nothing.
type stuck struct {
	text
	reading chan struct{}
}

func (s *stuck) Whole() bool { return false }
func (s *stuck) ReadUntil(_ []byte, stop <-chan struct{}) (int, error) {
	close(s.reading)
	<-stop
	return 0, errors.New("stopped")
}

// TestEarlyAnswer: an answer may come before the body is sent, is passed on as it comes, and costs the connection.
func TestEarlyAnswer(t *testing.T) {
	release := make(chan struct{})
	addr := listen(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 413 X\r\nContent-Length: 5\r\n\r\nla")
		<-release
		_, _ = io.WriteString(c, "rge")
		_, _ = io.Copy(io.Discard, c)
	})
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	b := ps.Open(t.Context(), p, false)
	src := &stuck{reading: make(chan struct{})}
	status, _, err := exchanged(b, post(src, 1000))
	if status != 413 || err != nil {
		t.Fatal(status, err)
	}
	<-src.reading
	buf := make([]byte, 10)
	if n, err := b.Body().Read(buf); string(buf[:n]) != "la" || err != nil {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	close(release)
	if rest, err := io.ReadAll(readerOf{b.Body()}); string(rest) != "rge" || err != nil {
		t.Fatalf("%q, %v", rest, err)
	}
	b.Close()
	if n := p.Link.(*Pool).open(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

// TestPeerGoesWhileTheBodyIsWaitedFor: the attempt fails at once, and nobody reads the body any more.
func TestPeerGoesWhileTheBodyIsWaitedFor(t *testing.T) {
	addr := listen(t, func(c net.Conn) { readRequest(c) })
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	b := ps.Open(t.Context(), p, false)
	_, _, err := exchanged(b, post(&stuck{reading: make(chan struct{})}, 1000))
	if classOf(t, err) != forward.OnError || !b.Sent().Sent || b.Sent().Unread {
		t.Errorf("%v, %+v", err, b.Sent())
	}
	b.Close()
	select {
	case <-b.(*attempt).sender.done:
	default:
		t.Error("the body is still read")
	}
}

// TestPeerTakesNothing: a peer that does not take the request is a timeout.
func TestPeerTakesNothing(t *testing.T) {
	stop := make(chan struct{})
	addr := listen(t, func(c net.Conn) { _ = c.(*net.TCPConn).SetReadBuffer(4 << 10); <-stop })
	defer close(stop)
	ps := NewPools(Settings{Send: 50 * time.Millisecond}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	large := strings.Repeat("x", 8<<20) // more than what the kernel takes for both sides
	for name, r := range map[string]*forward.Request{
		"body": post(body(large), int64(len(large))),
		"head": {Method: []byte("GET"), Target: []byte("/"), Fields: fields("A", large)},
	} {
		b := ps.Open(t.Context(), p, false)
		if _, _, err := exchanged(b, r); classOf(t, err) != forward.OnTimeout {
			t.Errorf("%s: %v", name, err)
		}
		b.Close()
	}
}

// TestReadTimeRunsFromTheEndOfTheBody as nginx has it: not while the client takes its time.
func TestReadTimeRunsFromTheEndOfTheBody(t *testing.T) {
	addr := upstream(t, func(r *http.Request, c net.Conn) {
		b, _ := io.ReadAll(r.Body)
		if string(b) == "slow" {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	ps := NewPools(Settings{Read: 100 * time.Millisecond}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	for word, class := range map[string]forward.Class{"slow": 0, "mute": forward.OnTimeout} {
		r, w := io.Pipe()
		go func() {
			for i := range word {
				time.Sleep(60 * time.Millisecond) // all of it takes longer than the limit
				_, _ = w.Write([]byte(word[i : i+1]))
			}
			_ = w.Close()
		}()
		ctx, cancel := context.WithCancel(t.Context())
		b := ps.Open(ctx, p, false)
		_, _, err := exchanged(b, post(piped{r}, -1))
		if class == 0 && err != nil || class != 0 && classOf(t, err) != class {
			t.Errorf("%s: %v", word, err)
		}
		b.Close()
		cancel()
	}
}

type piped struct{ *io.PipeReader }

func (piped) Trailer() []forward.Field { return nil }
func (piped) Rewind() error            { return errNotHeld }
func (piped) Rewindable() bool         { return false }

// TestExpect: the body is sent when the peer asks for it or does not answer in time, and not when it answers at once.
func TestExpect(t *testing.T) {
	for name, tc := range map[string]struct {
		first  string
		status int
		asked  bool
	}{
		"asks":               {"HTTP/1.1 100 Continue\r\n\r\n", 200, true},
		"hints, then asks":   {"HTTP/1.1 103 X\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n", 200, true},
		"says nothing":       {"", 200, true},
		"refuses":            {"HTTP/1.1 417 X\r\nContent-Length: 0\r\n\r\n", 417, false},
		"accepts without it": {"HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n", 200, false},
		"closes":             {"close", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 1)
			addr := listen(t, func(c net.Conn) {
				head := readRequest(c)
				if tc.first == "close" || !strings.Contains(head, "Expect: 100-continue\r\n") {
					return
				}
				_, _ = io.WriteString(c, tc.first)
				buf := make([]byte, 10)
				n, _ := io.ReadFull(c, buf[:3])
				got <- string(buf[:n])
				if n == 3 {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			})
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
			b := ps.Open(t.Context(), p, false)
			status, _, err := exchanged(b, post(body("abc"), 3, "Expect", "100-continue"))
			if status != tc.status || (err != nil) != (status == 0) {
				t.Errorf("%d, %v", status, err)
			}
			b.Close()
			if n := p.Link.(*Pool).shelf.count; (n == 1) != tc.asked {
				t.Errorf("%d connections are kept", n)
			}
			if tc.first != "close" {
				if s := <-got; (s == "abc") != tc.asked {
					t.Errorf("the peer got %q", s)
				}
			}
		})
	}
}
