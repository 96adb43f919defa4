package http1

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// echoing is a peer that changes protocols for everybody and gives back what it gets.
func echoing(t *testing.T) string {
	return listen(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		if _, err := http.ReadRequest(in); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_, _ = io.Copy(c, in)
		}
	})
}

func tunnelTo(t *testing.T, ps *Pools, p *balance.Peer) io.ReadWriteCloser {
	t.Helper()
	b := ps.Open(t.Context(), p, false)
	t.Cleanup(b.Close)
	r := get()
	r.Fields = []forward.Field{{Name: []byte("Connection"), Value: []byte("Upgrade")}, {Name: []byte("Upgrade"), Value: []byte("echo")}}
	if status, _, err := exchanged(b, r); status != 101 || err != nil {
		t.Fatal(status, err)
	}
	rw, err := b.Tunnel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rw.Close() })
	return rw
}

// ended reports whether the tunnel was cut within a second.
func ended(rw io.Reader) bool {
	got := make(chan struct{})
	go func() { _, _ = io.ReadAll(rw); close(got) }()
	select {
	case <-got:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// TestFarewell: at the drain deadline of a peer that left, a tunnel that can end in good order is asked to and stays, any
// other one is cut.
func TestFarewell(t *testing.T) {
	const drain = 50 * time.Millisecond
	ps := NewPools(Settings{Drain: drain}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: echoing(t)})
	orderly, other, back := tunnelTo(t, ps, p), tunnelTo(t, ps, p), tunnelTo(t, ps, p)
	asked := make(chan time.Time, 2)
	orderly.(forward.Departer).OnFarewell(func() { asked <- time.Now() })
	back.(forward.Departer).OnFarewell(func() { t.Error("it was taken back") })
	back.(forward.Departer).OnFarewell(nil)
	began := time.Now()
	ps.Release(p.Link.(*Pool))
	if took := (<-asked).Sub(began); took < drain {
		t.Errorf("asked after %v", took)
	}
	if !ended(other) || !ended(back) {
		t.Error("one that knows no good order is still open")
	}
	if ended(orderly) {
		t.Error("the orderly one was cut at once")
	}
	if len(asked) != 0 || ps.Busy() != 1 {
		t.Errorf("asked %d times more, %d connections", len(asked), ps.Busy())
	}
	for range 5 {
		if ended(orderly) {
			return
		}
	}
	t.Error("one that does not end is never cut")
}

// TestFarewellOfAll asks all tunnels, also those that are entered afterwards, and closes nothing.
func TestFarewellOfAll(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: echoing(t)})
	if ps.Farewell() {
		t.Error("there is nobody")
	}
	one, late := tunnelTo(t, ps, p), tunnelTo(t, ps, p)
	var asked atomic.Int32
	count := func() { asked.Add(1) }
	one.(forward.Departer).OnFarewell(count)
	if !ps.Farewell() || asked.Load() != 1 {
		t.Errorf("asked %d", asked.Load())
	}
	late.(forward.Departer).OnFarewell(count)
	if !ps.Farewell() || asked.Load() != 2 {
		t.Errorf("asked %d, want each once", asked.Load())
	}
	if _, err := io.WriteString(one, "x"); err != nil {
		t.Error(err)
	}
	if n, err := io.ReadFull(one, make([]byte, 1)); n != 1 || err != nil {
		t.Error(err)
	}
}
