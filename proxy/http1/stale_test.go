package http1

import (
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/upstrand/upstrand/proxy/forward"
)

// wrapped is a connection that is not known to be a TCP one, so that it is written and read in the plain way.
type wrapped struct{ *net.TCPConn }

// arrived waits until something is there to read, or an error. It takes nothing of either away.
func arrived(t *testing.T, c *conn) {
	if err := c.raw.Control(func(fd uintptr) {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 5000); n != 1 {
			t.Errorf("poll: %d, %v", n, err)
		}
	}); err != nil {
		t.Error(err)
	}
}

// onlyConn is the one open connection of a peer's pool.
func onlyConn(p *Pool) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		return c
	}
	return nil
}

// unused makes the one connection of a peer, which is kept, one that has not been used for so long.
func unused(p *Pool, d time.Duration) {
	p.shelf.mu.Lock()
	defer p.shelf.mu.Unlock()
	p.idle[0].idleSince = moment() - int64(d)
}

// TestUnreadIsProven: a request that meets the peer's close on the wire is known not to have been read; one whose peer
// read of it and then closed is not, nor is one whose connection was reset.
func TestUnreadIsProven(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what was acknowledged is known on Linux only")
	}
	for name, tc := range map[string]struct {
		reads  int // bytes of the second request, before the close
		reset  bool
		unread bool
	}{
		"closed before":          {0, false, true},
		"read, then closed":      {4096, false, false},
		"read in part and reset": {20, false, false}, // what the host acknowledged by then is not known
		"read, then reset":       {4096, true, false},
	} {
		for way, wrap := range map[string]func(net.Conn) net.Conn{
			"direct": nil, "plain": func(c net.Conn) net.Conn { return wrapped{c.(*net.TCPConn)} },
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				armed := make(chan struct{})
				var conns atomic.Int32
				addr := listen(t, func(c net.Conn) {
					if conns.Add(1) > 1 {
						return
					}
					buf := make([]byte, 4096)
					_, _ = c.Read(buf)
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					if tc.reads > 0 {
						_, _ = c.Read(buf[:tc.reads])
					} else {
						<-armed
					}
					if tc.reset {
						_ = c.(*net.TCPConn).SetLinger(0)
					}
				})
				ps := NewPools(Settings{}, nil)
				defer ps.Close()
				ps.wrap = wrap
				p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
				post := get()
				post.Method = []byte("POST")
				b := ps.Open(t.Context(), p, false)
				if _, _, err := exchanged(b, post); err != nil {
					t.Fatal(err)
				}
				b.Close()
				unused(p.Link.(*Pool), unseen)
				if tc.reads == 0 {
					c := onlyConn(p.Link.(*Pool))
					ps.crossing = func() { ps.crossing = nil; close(armed); arrived(t, c) }
				}
				b = ps.Open(t.Context(), p, false)
				defer b.Close()
				_, _, err := exchanged(b, post)
				if got := b.Sent(); classOf(t, err) != forward.OnError || !got.Sent || !got.Kept || got.Unread != tc.unread {
					t.Errorf("%v, %+v; want unread %v", err, got, tc.unread)
				}
				if n := conns.Load(); n != 1 {
					t.Errorf("sent again over %d other connections", n-1)
				}
			})
		}
	}
}

// TestDeadConnectionIsNotWrittenTo: a kept connection that the peer closed, or on which it spoke, is found out before
// anything is written; the request goes over another one, whatever its method.
func TestDeadConnectionIsNotWrittenTo(t *testing.T) {
	for name, last := range map[string]string{
		"closed":                      "",
		"an answer that nobody asked": "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"a farewell":                  "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n",
	} {
		for way, wrap := range map[string]func(net.Conn) net.Conn{
			"direct": nil, "plain": func(c net.Conn) net.Conn { return wrapped{c.(*net.TCPConn)} },
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				var conns, late atomic.Int32
				go1 := make(chan struct{})
				addr := listen(t, func(c net.Conn) {
					n := conns.Add(1)
					buf := make([]byte, 4096)
					_, _ = c.Read(buf)
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					if n > 1 {
						return
					}
					<-go1
					_, _ = io.WriteString(c, last)
					_ = c.(*net.TCPConn).CloseWrite()
					if m, _ := c.Read(buf); m > 0 {
						late.Add(1)
					}
				})
				ps := NewPools(Settings{}, nil)
				defer ps.Close()
				ps.wrap = wrap
				p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
				for i := range 2 {
					b := ps.Open(t.Context(), p, false)
					post := get()
					post.Method = []byte("POST")
					status, _, err := exchanged(b, post)
					if err != nil || status != 200 || b.Sent().Kept {
						t.Fatalf("%d, %v, %+v", status, err, b.Sent())
					}
					b.Close()
					if i == 0 {
						close(go1)
						arrived(t, onlyConn(p.Link.(*Pool)))
						unused(p.Link.(*Pool), unseen)
					}
				}
				if conns.Load() != 2 || late.Load() != 0 {
					t.Errorf("%d connections, %d requests on the dead one", conns.Load(), late.Load())
				}
			})
		}
	}
}

// TestResetBeforeTheWrite: what the kernel does not take was not sent.
func TestResetBeforeTheWrite(t *testing.T) {
	for way, wrap := range map[string]func(net.Conn) net.Conn{
		"direct": nil, "plain": func(c net.Conn) net.Conn { return wrapped{c.(*net.TCPConn)} },
	} {
		t.Run(way, func(t *testing.T) {
			var conns atomic.Int32
			armed := make(chan struct{})
			addr := listen(t, func(c net.Conn) {
				n := conns.Add(1)
				_, _ = c.Read(make([]byte, 4096))
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				if n == 1 {
					<-armed
					_ = c.(*net.TCPConn).SetLinger(0)
				}
			})
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			ps.wrap = wrap
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
			b := ps.Open(t.Context(), p, false)
			if _, _, err := exchanged(b, get()); err != nil {
				t.Fatal(err)
			}
			b.Close()
			c := onlyConn(p.Link.(*Pool))
			unused(c.pool, unseen)
			ps.crossing = func() { ps.crossing = nil; close(armed); arrived(t, c) }
			b = ps.Open(t.Context(), p, false)
			defer b.Close()
			post := get()
			post.Method = []byte("POST")
			if status, _, err := exchanged(b, post); status != 200 || err != nil || conns.Load() != 2 {
				t.Errorf("%d, %v, %d connections", status, err, conns.Load())
			}
		})
	}
}
