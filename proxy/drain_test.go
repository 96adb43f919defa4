package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/http1"
)

// upgraded is a backend that changes to a protocol and gives back what comes; at the end it says what it was sent last.
func upgraded(t *testing.T, protocol string, last chan<- []byte) string {
	return rawBackend(t, func(_ int, c net.Conn) {
		in := bufio.NewReader(c)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
		var all []byte
		buf := make([]byte, 1024)
		for {
			n, err := in.Read(buf)
			all = append(all, buf[:n]...)
			_, _ = c.Write(buf[:n])
			if err != nil {
				if last != nil {
					last <- all
				}
				return
			}
		}
	})
}

// upgrade is a client's side of a tunnel.
func upgrade(t *testing.T, addr, path, protocol string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("%+v, %v", resp, err)
	}
	return c, in
}

// maskedText is a frame as a client sends it.
var maskedText = []byte{0x81, 0x83, 1, 2, 3, 4, 'a' ^ 1, 'b' ^ 2, 'c' ^ 3}

// TestTunnelsThatHaveToEnd: a WebSocket gets its close frame on both sides, at the deadline of a peer that left and at that
// of the proxy's own end; what is known of no other protocol's goodbye, so it is cut.
func TestTunnelsThatHaveToEnd(t *testing.T) {
	const drain = 100 * time.Millisecond
	leaves := func(w *world) { w.set("s"); w.apply() }
	ends := func(w *world) {
		ctx, cancel := context.WithTimeout(context.Background(), drain)
		go func() {
			defer cancel()
			if err := w.p.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				w.t.Errorf("shutdown: %v", err)
			}
		}()
	}
	for name, tc := range map[string]struct {
		protocol string
		cause    func(*world)
		goodbye  bool
	}{
		"a WebSocket whose peer left":         {"websocket", leaves, true},
		"a WebSocket at the proxy's end":      {"WebSocket", ends, true},
		"another protocol whose peer left":    {"echo", leaves, false},
		"another protocol at the proxy's end": {"echo", ends, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Peers = http1.Settings{Drain: drain} })
			last := make(chan []byte, 1)
			w.set("s", instance("a", upgraded(t, tc.protocol, last)))
			w.apply()
			c, in := upgrade(t, w.addr, "/s", tc.protocol)
			echo := func() {
				t.Helper()
				_, _ = c.Write(maskedText)
				got := make([]byte, len(maskedText))
				if _, err := io.ReadFull(in, got); err != nil || !bytes.Equal(got, maskedText) {
					t.Fatalf("% x, %v", got, err)
				}
			}
			echo()
			began := time.Now()
			tc.cause(w)
			echo() // it goes on until the deadline
			rest, _ := io.ReadAll(in)
			if took := time.Since(began); took < drain {
				t.Errorf("it ended after %v", took)
			}
			want := []byte(nil)
			if tc.goodbye {
				want = []byte{0x88, 2, 0x03, 0xe9}
			}
			if !bytes.Equal(rest, want) {
				t.Errorf("the client got % x, want % x", rest, want)
			}
			sent := (<-last)[2*len(maskedText):]
			if !tc.goodbye {
				if len(sent) > 0 {
					t.Errorf("the peer got % x", sent)
				}
			} else if len(sent) < 8 || sent[0] != 0x88 || sent[1] != 0x82 || sent[6]^sent[2] != 0x03 || sent[7]^sent[3] != 0xe9 {
				t.Errorf("the peer got % x, want a masked close frame with 1001", sent)
			}
		})
	}
}
