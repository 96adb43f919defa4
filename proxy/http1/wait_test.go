package http1

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestTheLimitIsKeptTo: what patience adds to the wait for an answer is not added to its limit, which counts from before the
// peer had the request.
func TestTheLimitIsKeptTo(t *testing.T) {
	const limit = 2 * patience
	read := make(chan time.Time, 1)
	addr := listen(t, func(c net.Conn) {
		readRequest(c)
		read <- time.Now()
		_, _ = io.Copy(io.Discard, c)
	})
	ps := NewPools(Settings{Read: limit}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := ps.Open(ctx, p, false)
	defer b.Close()
	if _, _, err := exchanged(b, get()); classOf(t, err) != forward.OnTimeout {
		t.Fatal(err)
	}
	a := b.(*attempt)
	if from, had := a.wait.from, <-read; from.After(had) || !a.conn.deadline.Equal(from.Add(limit)) {
		t.Errorf("it counted from %v after the peer had it, for %v", from.Sub(had), a.conn.deadline.Sub(from))
	}
}

// TestReady: a read that is said not to wait has something to give, or the end.
func TestReady(t *testing.T) {
	for at, want := range map[string]bool{
		"": false, "5\r\n": false, "5;a=b\r\nh": true, "5\r\nhello\r\n0\r\n\r\n": true,
		"0": false, "0\r\n": false, "0\r\n\r": false, "0\r\nA: b\r\n": false, "0\r\n\r\n": true, "0\r\nA: b\r\n\r\n": true,
	} {
		a := &attempt{framing: byChunks, buf: []byte(at), w: len(at)}
		if a.Ready() != want {
			t.Errorf("%q: %v, want %v", at, !want, want)
		}
	}
}
