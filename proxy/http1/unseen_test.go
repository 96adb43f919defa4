package http1

import (
	"context"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// blind uses a connection at once for a second request, when the peer has said or done something on it that nobody looked at
// before the write, and gives what came of that. The runtime has the time told to learn of it.
func blind(t *testing.T, ctx context.Context, ps *Pools, r *forward.Request, conns *atomic.Int32, told time.Duration, act func(*net.TCPConn)) (b forward.Backend, took time.Duration, err error) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere nothing is looked at in any case")
	}
	armed := make(chan struct{})
	addr := listen(t, func(c net.Conn) {
		if conns.Add(1) > 1 {
			return
		}
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-armed
		act(c.(*net.TCPConn))
	})
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	first := ps.Open(ctx, p, false)
	if _, _, err := exchanged(first, get()); err != nil {
		t.Fatal(err)
	}
	first.Close()
	close(armed)
	c := onlyConn(p.Link.(*Pool))
	arrived(t, c)
	time.Sleep(told)
	unused(c.pool, -time.Minute) // however long that took
	began := time.Now()
	b = ps.Open(ctx, p, false)
	t.Cleanup(b.Close)
	_, _, err = exchanged(b, r)
	return b, time.Since(began), err
}

// TestHalfClosedUnseen: a peer that closed its side right after an answer and goes on reading tells nothing any more when the
// next request is written to it. That is found out all the same, and soon; and it is no proof that the request was not read.
func TestHalfClosedUnseen(t *testing.T) {
	for name, tc := range map[string]struct{ limit, told time.Duration }{
		"long limit": {time.Minute, 20 * time.Millisecond}, "short limit": {10 * time.Second, 20 * time.Millisecond}, "none": {-1, 20 * time.Millisecond},
		"told late": {time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ps := NewPools(Settings{Read: tc.limit}, nil)
			defer ps.Close()
			if tc.limit < 0 {
				ps.wire.Read = 0
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var conns atomic.Int32
			read := make(chan string, 1)
			b, took, err := blind(t, ctx, ps, get(), &conns, tc.told, func(c *net.TCPConn) {
				_ = c.CloseWrite()
				read <- readRequest(c)
				_, _ = io.Copy(io.Discard, c)
			})
			if classOf(t, err) != forward.OnError || took > 5*time.Second {
				t.Errorf("%v after %v", err, took)
			}
			if got := b.Sent(); !got.Sent || !got.Kept || got.Unread || got.In != 0 || conns.Load() != 1 {
				t.Errorf("%+v, %d connections", got, conns.Load())
			}
			if head := <-read; head == "" {
				t.Error("the peer did not even get the request")
			}
		})
	}
}

// TestClosedUnseen: that one which closed read nothing is proven, and known at once.
func TestClosedUnseen(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	var conns atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b, took, err := blind(t, ctx, ps, get(), &conns, 0, func(c *net.TCPConn) { _ = c.Close() })
	if got := b.Sent(); classOf(t, err) != forward.OnError || !got.Kept || !got.Unread || took > 5*time.Second {
		t.Errorf("%v after %v, %+v", err, took, got)
	}
}

// TestResetUnseen: what the kernel refuses goes over another connection.
func TestResetUnseen(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	var conns atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b, _, _ := blind(t, ctx, ps, get(), &conns, 0, func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() })
	if got := b.Sent(); got.Kept || conns.Load() != 2 {
		t.Errorf("%+v, %d connections", got, conns.Load())
	}
}

// TestNobodyToWakeUs: without a deadline that ends the wait soon a connection is looked at, however little time has passed.
func TestNobodyToWakeUs(t *testing.T) {
	for name, tc := range map[string]struct {
		read time.Duration
		ctx  context.Context
	}{"no client": {time.Minute, context.Background()}, "a short limit": {patience / 2, t.Context()}, "hardly more": {2 * patience, t.Context()}} {
		t.Run(name, func(t *testing.T) {
			ps := NewPools(Settings{Read: tc.read}, nil)
			defer ps.Close()
			var conns, late atomic.Int32
			b, _, _ := blind(t, tc.ctx, ps, get(), &conns, 0, func(c *net.TCPConn) {
				_ = c.CloseWrite()
				if n, _ := c.Read(make([]byte, 100)); n > 0 {
					late.Add(1)
				}
			})
			if got := b.Sent(); got.Kept || conns.Load() != 2 || late.Load() != 0 {
				t.Errorf("%+v, %d connections, %d requests on the dead one", got, conns.Load(), late.Load())
			}
		})
	}
}

// TestActedAndReset: a peer that closed its side only may act on a request and reset the connection before its host acknowledges
// anything. What must not be sent twice does not get there.
func TestActedAndReset(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 10 { // now and then its host acknowledges in time
		ps := NewPools(Settings{}, nil)
		var conns, acted atomic.Int32
		post := get()
		post.Method = []byte("POST")
		b, _, _ := blind(t, ctx, ps, post, &conns, 0, func(c *net.TCPConn) {
			_ = c.CloseWrite()
			if n, _ := c.Read(make([]byte, 20)); n > 0 {
				acted.Add(1)
			}
		})
		if got := b.Sent(); got.Kept || conns.Load() != 2 || acted.Load() != 0 {
			t.Errorf("%+v, %d connections, acted on %d times", got, conns.Load(), acted.Load())
		}
		b.Close()
		ps.Close()
	}
}

// TestWhenToLook: at a connection that was not used for as long as unseen, and at no other.
func TestWhenToLook(t *testing.T) {
	for since, used := range map[time.Duration]bool{0: true, unseen - 1: true, unseen: false, time.Hour: false} {
		a := &attempt{course: course{conn: &conn{idleSince: moment(), dry: true}}}
		a.wait.slice, a.wait.from = true, a.conn.idleSince+int64(since)
		if a.justUsed() {
			t.Errorf("after %v, for a request that must not be sent twice", since)
		}
		if a.out.safe = true; a.justUsed() != used {
			t.Errorf("after %v: %v", since, !used)
		}
		a.wait.slice = false
		if a.justUsed() {
			t.Errorf("after %v, without a deadline that wakes", since)
		}
		if a.wait.slice, a.conn.dry = true, false; a.justUsed() {
			t.Errorf("after %v, when something may have been left", since)
		}
	}
}

// TestMoreThanTheLength: what came with the end of a body is found before the next request, however soon that follows and
// whether or not the last read asked for it.
func TestMoreThanTheLength(t *testing.T) {
	for name, size := range map[string]int{"room for no more": 5, "room for more": 100} {
		t.Run(name, func(t *testing.T) {
			headed := make(chan struct{})
			var conns atomic.Int32
			addr := listen(t, func(c net.Conn) {
				if conns.Add(1) == 1 {
					readRequest(c)
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
					<-headed
					_, _ = io.WriteString(c, "helloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
				} else {
					readRequest(c)
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood")
				}
				_, _ = io.Copy(io.Discard, c)
			})
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
			b := held(t, ps, p)
			close(headed)
			arrived(t, b.(*attempt).conn)
			got := make([]byte, size)
			if n, err := b.Body().Read(got); string(got[:n]) != "hello" || err != io.EOF {
				t.Errorf("%q, %v", got[:n], err)
			}
			b.Close()
			if pool := p.Link.(*Pool); size > 5 && pool.open() != 0 {
				t.Error("the connection is kept")
			} else if size == 5 {
				unused(pool, 0)
			}
			if got := must(t, ps, p, get()); got != "good" {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestBodyWhereNoneIs: a peer that sends a body where there is none sends it after the head, and nobody else may get it.
func TestBodyWhereNoneIs(t *testing.T) {
	for name, tc := range map[string]struct{ method, head string }{
		"HEAD": {"HEAD", "200 OK\r\nContent-Length: 4"}, "HEAD, chunks": {"HEAD", "200 OK\r\nTransfer-Encoding: chunked"}, "304": {"GET", "304 Not Modified\r\nETag: x"}, "204": {"GET", "204 No Content"},
	} {
		t.Run(name, func(t *testing.T) {
			headed := make(chan struct{})
			var conns atomic.Int32
			addr := listen(t, func(c net.Conn) {
				readRequest(c)
				if conns.Add(1) == 1 {
					_, _ = io.WriteString(c, "HTTP/1.1 "+tc.head+"\r\n\r\n")
					<-headed
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
				} else {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood")
				}
				_, _ = io.Copy(io.Discard, c)
			})
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
			r := get()
			r.Method = []byte(tc.method)
			must(t, ps, p, r)
			close(headed)
			pool := p.Link.(*Pool)
			arrived(t, onlyConn(pool))
			unused(pool, -time.Minute)
			if got := must(t, ps, p, get()); got != "good" {
				t.Errorf("%q", got)
			}
		})
	}
}
