package nethttp

import (
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

// lateNews is a connection that tells its end only after the next write, as when both cross on the wire.
type lateNews struct {
	*net.TCPConn
	mu      sync.Mutex
	written chan struct{}
}

func (l *lateNews) Read(p []byte) (int, error) {
	n, err := l.TCPConn.Read(p)
	if err != nil {
		l.mu.Lock()
		wait := l.written
		l.mu.Unlock()
		<-wait
	}
	return n, err
}

func (l *lateNews) Write(p []byte) (int, error) {
	n, err := l.TCPConn.Write(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.written:
	default:
		close(l.written)
	}
	return n, err
}

// again makes news wait for a write that is still to come.
func (l *lateNews) again() {
	l.mu.Lock()
	l.written = make(chan struct{})
	l.mu.Unlock()
}

// TestUnreadIsProven: a request that goes over a kept connection which the peer has closed is known not to have been
// read; one whose peer read of it and then closed is not, nor is one whose connection was reset.
func TestUnreadIsProven(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what was acknowledged is known on Linux only")
	}
	for name, tc := range map[string]struct {
		reads  int // bytes of the second request, before the close
		reset  bool
		unread bool
		field  string // of both requests, empty: none
	}{
		"closed before":          {0, false, true, ""},
		"read, then closed":      {4096, false, false, ""},
		"read in part and reset": {20, false, false, ""}, // what the host acknowledged by then is not known
		"read, then reset":       {4096, true, false, ""},
		// net/http would repeat these, and without being asked
		"read, then closed, with a key":   {4096, false, false, "idempotency-key"},
		"read, then closed, with another": {4096, false, false, "X-Idempotency-Key"},
	} {
		t.Run(name, func(t *testing.T) {
			armed, closed := make(chan struct{}), make(chan struct{})
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
				}
				<-armed
				if tc.reset {
					_ = c.(*net.TCPConn).SetLinger(0)
				}
				_ = c.Close()
				close(closed)
			})
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
			pool := p.Link.(*Pool)
			var late *lateNews
			pool.roundTripper().DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := pool.dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				late = &lateNews{TCPConn: c.(*conn).Conn.(*net.TCPConn), written: make(chan struct{})}
				c.(*conn).Conn = late
				return c, nil
			}
			post := &forward.Request{Method: []byte(http.MethodPost), Authority: []byte("shop"), Target: []byte("/")}
			if tc.field != "" {
				post.Fields = []forward.Field{{Name: []byte(tc.field), Value: []byte("k")}}
			}
			b := ps.Open(t.Context(), p, false)
			if err := b.Send(post); err != nil {
				t.Fatal(err)
			}
			b.Close()
			late.again()
			close(armed)
			if tc.reads == 0 {
				<-closed
			}
			b = ps.Open(t.Context(), p, false)
			defer b.Close()
			err := b.Send(post)
			if classOf(t, err) != forward.OnError || b.Sent() != (forward.Progress{Sent: true, Unread: tc.unread}) {
				t.Errorf("%v, %+v; want unread %v", err, b.Sent(), tc.unread)
			}
			if n := conns.Load(); n != 1 {
				t.Errorf("sent again over %d other connections", n-1)
			}
		})
	}
}
