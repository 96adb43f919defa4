package http1

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestRefusedAfterADeadConnection: that a kept connection was found dead says nothing of the attempt that follows it over a
// new one. A peer which refuses that one has failed.
func TestRefusedAfterADeadConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	die := make(chan struct{})
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := l.Accept()
		if err != nil {
			return
		}
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-die
		_ = l.Close()
		_ = c.Close()
	}()
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: l.Addr().String()})
	must(t, ps, p, get())
	c := onlyConn(p.Link.(*Pool))
	close(die)
	<-served
	arrived(t, c)
	unused(c.pool, unseen)
	b := ps.Open(t.Context(), p, false)
	defer b.Close()
	err = b.Send(get())
	if classOf(t, err) != forward.OnError {
		t.Fatal(err)
	}
	if got := b.Sent(); got != (forward.Progress{}) {
		t.Errorf("%+v, though there was no connection", got)
	}
}

// TestLateStart: a process that gets no time between setting a deadline and writing has lost nothing but that time.
func TestLateStart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("requests are written in this way on Linux only")
	}
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: numbered(t)})
	must(t, ps, p, get())
	c := onlyConn(p.Link.(*Pool))
	c.deadline = moment() + int64(patience+patience/2) // does for the next wait
	_ = c.socket.SetReadDeadline(time.Unix(1, 0))      // and is over already
	if got, err := take(t.Context(), ps, p, get()); got != "a" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestMoreThanTheAnswerOverTLS: what TLS took off the socket together with an answer is not seen there any more. It must
// not answer the next request.
func TestMoreThanTheAnswerOverTLS(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
	body := strings.Repeat("x", 5000) // more than the buffer for heads takes
	for name, more := range map[string]string{"nothing": "", "another answer": "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"} {
		t.Run(name, func(t *testing.T) {
			ps, p := secured(t, func(w http.ResponseWriter, r *http.Request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				_, _ = io.WriteString(c, answer+body+more)
				readRequest(c)
				_, _ = io.WriteString(c, answer+body)
			}, nil)
			for i := range 2 {
				if got := must(t, ps, p, get()); got != body {
					t.Errorf("request %d: %q", i, got)
				}
				if kept := p.Link.(*Pool).shelf.count == 1; kept != (more == "") {
					t.Errorf("request %d: kept %v", i, kept)
				}
				if more == "" {
					break
				}
			}
		})
	}
}

// TestSlowPeer takes a request slowly: as long as it takes some of it, it is waited for.
func TestSlowPeer(t *testing.T) {
	const size, limit = 16 << 20, 500 * time.Millisecond
	addr := listen(t, func(c net.Conn) {
		_ = c.(*net.TCPConn).SetReadBuffer(256 << 10)
		buf := make([]byte, 128<<10)
		for {
			if _, err := io.ReadFull(c, buf); err != nil {
				return
			}
			time.Sleep(limit / 40)
		}
	})
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	c, err := p.Link.(*Pool).dial(t.Context(), via{}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	if n, err := c.Write(make([]byte, size), limit); n != size || err != nil || time.Since(began) < limit {
		t.Errorf("%d bytes, %v after %v", n, err, time.Since(began))
	}
}

// TestLargeHeadsAreNotRemembered: an attempt that is used again does not keep the room of the largest head there was.
func TestLargeHeadsAreNotRemembered(t *testing.T) {
	addr := listen(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"+strings.Repeat("A: \r\n", 10_000)+"\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	b := ps.Open(t.Context(), p, false).(*attempt)
	if _, got, err := exchanged(b, get()); len(got) != 10_001 || err != nil {
		t.Fatal(len(got), err)
	}
	b.Release()
	if n := cap(b.head.fields); n > 1024 {
		t.Errorf("room for %d fields", n)
	}
}
