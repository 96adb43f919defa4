package http1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/upstrand/upstrand/proxy/forward"
)

// sockets is a client's connection as seen from here, and what arrives at its other end.
func sockets(t *testing.T) (here *net.TCPConn, there *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there1, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here1, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = there1.Close(); _ = here1.Close() })
	return here1.(*net.TCPConn), there1.(*net.TCPConn)
}

// begun is an attempt whose answer's head has come, with nothing of the body in memory.
func begun(t *testing.T, read time.Duration, answer func(c net.Conn)) (b forward.Backend, rest []byte, pool *Pool) {
	t.Helper()
	addr := upstream(t, func(_ *http.Request, c net.Conn) { answer(c) })
	ps := NewPools(Settings{Read: read}, nil)
	t.Cleanup(ps.Close)
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	b = ps.Open(t.Context(), p, false)
	if _, _, err := exchanged(b, get()); err != nil {
		t.Fatal(err)
	}
	a := b.(*attempt)
	for a.r < a.w {
		buf := make([]byte, 4096)
		n, err := b.Body().Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		rest = append(rest, buf[:n]...)
	}
	return b, rest, p.Link.(*Pool)
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8 ^ i)
	}
	return b
}

func TestSplice(t *testing.T) {
	body := pattern(3 << 20)
	b, first, pool := begun(t, time.Minute, func(c net.Conn) {
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body))
		for rest := body; len(rest) > 0; rest = rest[min(len(rest), 100_000):] {
			_, _ = c.Write(rest[:min(len(rest), 100_000)])
		}
	})
	here, there := sockets(t)
	got := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(there)
		got <- all
	}()
	_, _ = here.Write(first)
	told := int64(0)
	moved, err := b.Body().(forward.Spliced).Splice(here, 16<<10, func(n int64, err error) error { told += n; return err })
	if err != nil || moved != told || moved != int64(len(body)-len(first)-16<<10) {
		t.Fatalf("%d moved, %d told, %v", moved, told, err)
	}
	if n := pool.open(); n != 1 || pool.shelf.count != 0 {
		t.Error("the attempt has ended too soon")
	}
	last, err := io.ReadAll(readerOf{b.Body()})
	if err != nil || len(last) != 16<<10 {
		t.Errorf("%d bytes were left, %v", len(last), err)
	}
	_, _ = here.Write(last)
	_ = here.Close()
	if all := <-got; !bytes.Equal(all, body) {
		t.Errorf("%d bytes arrived, or others than were sent", len(all))
	}
	b.Close()
	if pool.shelf.count != 1 {
		t.Error("the connection is not kept")
	}
}

// TestSpliceThatEnds: by whose doing is told.
func TestSpliceThatEnds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer func(c net.Conn)
		gone   bool // the client
		class  forward.Class
	}{
		{"the peer closes", func(c net.Conn) { _, _ = c.Write(pattern(1 << 20)); _ = c.Close() }, false, forward.OnError},
		{"the peer stalls", func(c net.Conn) {
			_, _ = c.Write(pattern(1 << 20))
			time.Sleep(2 * time.Second)
		}, false, forward.OnTimeout},
		{"the client is gone", func(c net.Conn) { _, _ = c.Write(pattern(8 << 20)) }, true, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			read := time.Minute
			if tc.class == forward.OnTimeout {
				read = 300 * time.Millisecond
			}
			b, _, pool := begun(t, read, func(c net.Conn) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n")
				tc.answer(c)
			})
			here, there := sockets(t)
			if tc.gone {
				_ = there.Close()
			} else {
				go func() { _, _ = io.Copy(io.Discard, there) }()
			}
			var failed error
			_, err := b.Body().(forward.Spliced).Splice(here, 0, func(_ int64, err error) error { failed = err; return err })
			if tc.gone {
				if err == nil || !errors.Is(err, failed) || !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%v; writing: %v", err, failed)
				}
			} else if err == nil || classOf(t, err) != tc.class || failed != nil {
				t.Errorf("%v, want %v; writing: %v", err, tc.class, failed)
			}
			b.Close()
			if n := pool.open(); n != 0 {
				t.Errorf("%d connections are open", n)
			}
		})
	}
}

// unspliceable is a socket that the host does not splice from.
type unspliceable struct {
	syscall.RawConn
	fd int
}

func (u unspliceable) Read(f func(fd uintptr) bool) error { f(uintptr(u.fd)); return nil }

// TestAHostThatDoesNotSplice: the body goes by memory.
func TestAHostThatDoesNotSplice(t *testing.T) {
	b, first, _ := begun(t, time.Minute, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n")
		_, _ = c.Write(pattern(200_000))
	})
	defer b.Close()
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	here, _ := sockets(t)
	c := b.(*attempt).conn
	raw := c.raw
	c.raw = unspliceable{raw, fd}
	moved, err := b.Body().(forward.Spliced).Splice(here, 16<<10, func(int64, error) error { t.Error("something moved"); return nil })
	c.raw = raw
	if moved != 0 || err != nil {
		t.Errorf("%d, %v", moved, err)
	}
	if rest, err := io.ReadAll(readerOf{b.Body()}); err != nil || !bytes.Equal(append(first, rest...), pattern(200_000)) {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
}
