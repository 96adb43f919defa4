package http1

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestTheLimitIsKeptTo: what patience adds to the wait for an answer is not added to its limit, which counts from before the
// peer had the request.
func TestTheLimitIsKeptTo(t *testing.T) {
	const limit = 2 * patience
	read := make(chan int64, 1)
	addr := listen(t, func(c net.Conn) {
		readRequest(c)
		read <- moment()
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
	if from, had := a.wait.from, <-read; from > had || a.conn.deadline != from+int64(limit) {
		t.Errorf("it counted from %v after the peer had it, for %v", time.Duration(from-had), time.Duration(a.conn.deadline-from))
	}
}

// TestReady: a read that is said not to wait has something to give, or the end.
func TestReady(t *testing.T) {
	for at, want := range map[string]bool{
		"": false, "5\r\n": false, "5;a=b\r\nh": true, "5\r\nhello\r\n0\r\n\r\n": true,
		"0": false, "0\r\n": false, "0\r\n\r": false, "0\r\nA: b\r\n": false, "0\r\n\r\n": true, "0\r\nA: b\r\n\r\n": true,
	} {
		a := &attempt{course: course{framing: byChunks, buf: []byte(at), w: len(at)}}
		if a.Ready() != want {
			t.Errorf("%q: %v, want %v", at, !want, want)
		}
	}
}

// TestAnswerBeforeTheLastPiece: what a peer says while a large body is still being written is told before the wait, and read all the
// same.
func TestAnswerBeforeTheLastPiece(t *testing.T) {
	if !waitFirst {
		t.Skip("nothing is waited for before it is read")
	}
	addr := listen(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 413 X\r\nContent-Length: 0\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	ps := NewPools(Settings{Read: patience / 2}, nil) // as long as nobody else ends the wait
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	pieces := 0
	ps.crossing = func() {
		if pieces++; pieces == 2 {
			arrived(t, onlyConn(p.Link.(*Pool)))
			time.Sleep(20 * time.Millisecond) // the runtime learns of it
		}
	}
	b := ps.Open(t.Context(), p, false)
	defer b.Close()
	status, _, err := exchanged(b, post(body(strings.Repeat("x", 2*largeSize)), 2*largeSize))
	if status != 413 || err != nil || pieces < 2 {
		t.Errorf("%d, %v; %d pieces", status, err, pieces)
	}
}
