package http2

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"
)

// TestUnreadAtTheEnd: a connection that its peer had closed before a request was written proves that nobody looked at it; one
// that is closed afterwards does not, and neither does a reset.
func TestUnreadAtTheEnd(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs TCP_INFO")
	}
	for name, tc := range map[string]struct {
		play func(w *watched, peer net.Conn, send func())
		want bool
	}{
		"closed before": {func(_ *watched, peer net.Conn, send func()) {
			_ = peer.Close()
			time.Sleep(30 * time.Millisecond) // for the FIN to come
			send()
		}, true},
		"read, then closed": {func(_ *watched, peer net.Conn, send func()) {
			send()
			_, _ = io.ReadFull(peer, make([]byte, 7))
			_ = peer.Close()
		}, false},
		"not read, then reset": {func(_ *watched, peer net.Conn, send func()) {
			send()
			time.Sleep(30 * time.Millisecond)
			_ = peer.Close()
		}, false},
		"reset before": {func(_ *watched, peer net.Conn, send func()) {
			_ = peer.(*net.TCPConn).SetLinger(0)
			_ = peer.Close()
			time.Sleep(30 * time.Millisecond)
			send()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			peer, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer peer.Close()
			w := &watched{Conn: c}
			_, _ = io.WriteString(w, "earlier")
			_, _ = io.ReadFull(peer, make([]byte, 7))
			before := w.wrote.Load()
			tc.play(w, peer, func() { _, _ = io.WriteString(w, "request") })
			_, _ = io.Copy(io.Discard, w)
			if got := w.unread(before); got != tc.want {
				t.Errorf("%v; %d bytes before, %d acknowledged, cut %v", got, before, w.acked.Load(), w.cut.Load())
			}
		})
	}
}
