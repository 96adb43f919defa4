package http1

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestTunnelFollowsTheBody: a peer that changes protocols early still gets the whole body before the first byte of the
// tunnel; when there is none to come, there is no tunnel.
func TestTunnelFollowsTheBody(t *testing.T) {
	const length = 8 << 20 // more than sockets hold
	for name, tc := range map[string]struct {
		sent  int  // bytes that the client has
		takes bool // the peer reads on
		class forward.Class
	}{
		"all":                    {length, true, 0},
		"the client fails":       {length - 1, true, forward.ClientBody},
		"the peer takes no more": {length, false, forward.OnTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			got, over := make(chan int, 1), make(chan struct{})
			defer close(over)
			addr := listen(t, func(c net.Conn) {
				in := bufio.NewReader(c)
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				time.Sleep(50 * time.Millisecond) // the body waits in the sender meanwhile
				if !tc.takes {
					<-over
					return
				}
				n, _ := io.Copy(io.Discard, io.LimitReader(in, length))
				rest := make([]byte, 4)
				if _, err := io.ReadFull(in, rest); err == nil && string(rest) == "late" {
					got <- int(n)
				}
			})
			limit := 10 * time.Second
			if !tc.takes {
				limit = 100 * time.Millisecond
			}
			ps := NewPools(Settings{Send: limit}, nil)
			defer ps.Close()
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
			b := ps.Open(t.Context(), p, false)
			defer b.Close()
			body := &text{Reader: strings.NewReader(strings.Repeat("x", tc.sent)), waits: true}
			r := post(body, length, "Connection", "Upgrade", "Upgrade", "echo")
			if err := b.Send(r); err != nil {
				t.Fatal(err)
			}
			if status, _, err := b.Head(); status != 101 || err != nil {
				t.Fatal(status, err)
			}
			rw, err := b.Tunnel()
			if tc.class != 0 {
				var e *forward.Error
				if !errors.As(err, &e) || e.Class != tc.class {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer rw.Close()
			_, _ = io.WriteString(rw, "late")
			if n := <-got; n != length {
				t.Errorf("%d bytes before the tunnel's", n)
			}
		})
	}
}
