package forward

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// wsFrame is a frame with a payload of n bytes.
func wsFrame(op byte, n int, masked bool) []byte {
	out := []byte{0x80 | op, 0}
	switch {
	case n < 126:
		out[1] = byte(n)
	case n < 1<<16:
		out[1] = 126
		out = binary.BigEndian.AppendUint16(out, uint16(n))
	default:
		out[1] = 127
		out = binary.BigEndian.AppendUint64(out, uint64(n))
	}
	if masked {
		out[1] |= 0x80
		out = append(out, 1, 2, 3, 4)
	}
	return append(out, bytes.Repeat([]byte{0x88}, n)...) // looks like heads of close frames
}

// TestFramesAreFollowed over heads of all sizes, whatever the pieces that they come in.
func TestFramesAreFollowed(t *testing.T) {
	var all []byte
	ends := map[int]bool{0: true}
	for _, n := range []int{0, 1, 125, 126, 300, 1<<16 - 1, 1 << 16, 0, 7} {
		for _, masked := range []bool{false, true} {
			all = append(all, wsFrame(2, n, masked)...)
			ends[len(all)] = true
		}
	}
	for _, size := range []int{1, 2, 3, 7, 125, 1000, len(all)} {
		var f frames
		for at := 0; at < len(all); {
			end := min(at+size, len(all))
			n := f.next(all[at:end])
			if n < 1 || n > end-at {
				t.Fatalf("pieces of %d: at %d it took %d of %d", size, at, n, end-at)
			}
			if at += n; f.between() != ends[at] {
				t.Fatalf("pieces of %d: at %d between frames: %v", size, at, f.between())
			}
			if f.between() && f.closes {
				t.Fatalf("pieces of %d: at %d a close frame", size, at)
			}
		}
	}
	var f frames
	if f.through(wsFrame(opcodeClose, 2, true)); !f.closes || !f.between() {
		t.Error("a close frame is not seen")
	}
}

// departing is a peer's side of a tunnel that can be told to end.
type departing struct {
	net.Conn
	mu sync.Mutex
	f  func()
}

func (d *departing) OnFarewell(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.f = f
}

func (d *departing) leave() {
	d.mu.Lock()
	f := d.f
	d.mu.Unlock()
	if f != nil {
		f()
	}
}

// tunnelled is a WebSocket over pipes.
type tunnelled struct {
	client, server net.Conn
	back           *departing
	done           chan int64
}

func tunnel(t *testing.T) *tunnelled {
	t.Helper()
	client, front := net.Pipe()
	server, back := net.Pipe()
	w := &tunnelled{client: client, server: server, back: &departing{Conn: back}, done: make(chan int64, 1)}
	go func() { w.done <- webSocket(front, w.back) }()
	return w
}

func take(t *testing.T, c net.Conn, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		at := 0
		for at < n && got[at] == want[at] {
			at++
		}
		t.Fatalf("%d bytes of %d, %v; byte %d differs: % x", n, len(want), err, at, got[at:min(n, at+20)])
	}
}

var goingAway = []byte{0x88, 2, 0x03, 0xe9}

// takeMasked expects the close frame as clients send it.
func takeMasked(t *testing.T, c net.Conn) {
	t.Helper()
	var got [8]byte
	if _, err := io.ReadFull(c, got[:]); err != nil || got[0] != 0x88 || got[1] != 0x82 || got[6]^got[2] != 0x03 || got[7]^got[3] != 0xe9 {
		t.Fatalf("% x, %v", got, err)
	}
}

// TestAWebSocketSaysGoodbye in both directions, between frames, and ends when both sides have answered.
func TestAWebSocketSaysGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := tunnel(t)
		small, large := wsFrame(1, 5, true), wsFrame(2, 100_000, false)
		go func() { _, _ = w.client.Write(small) }()
		take(t, w.server, small)
		go func() { _, _ = w.server.Write(large[:60_000]) }()
		take(t, w.client, large[:60_000])
		began := time.Now()
		w.back.leave()
		w.back.leave() // no second time
		takeMasked(t, w.server)
		synctest.Wait()
		go func() { _, _ = w.server.Write(append(large[60_000:], wsFrame(1, 9, false)...)) }()
		take(t, w.client, large[60_000:])
		take(t, w.client, goingAway)
		go func() { _, _ = w.client.Write(append(wsFrame(1, 5, true), wsFrame(opcodeClose, 2, true)...)) }()
		synctest.Wait()
		select {
		case <-w.done:
			t.Fatal("over before the server has answered")
		default:
		}
		go func() { _, _ = w.server.Write(wsFrame(opcodeClose, 2, false)) }()
		if n := <-w.done; n != int64(len(large)+len(goingAway)) {
			t.Errorf("%d bytes to the client", n)
		}
		if took := time.Since(began); took >= farewellTime {
			t.Errorf("it took %v", took)
		}
		for _, c := range []net.Conn{w.client, w.server} {
			if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
				t.Errorf("behind the close frame: %.20x, %v", b, err)
			}
		}
		if w.back.f != nil {
			t.Error("the tunnel is over and still told of farewells")
		}
	})
}

// TestAStuckWebSocketIsCut: a side that is in the middle of a frame, or takes nothing, has its time and no more.
func TestAStuckWebSocketIsCut(t *testing.T) {
	for name, stick := range map[string]func(*tunnelled){
		"in a frame": func(w *tunnelled) {
			go func() { _, _ = io.Copy(io.Discard, w.server) }()
			_, _ = w.server.Write(wsFrame(2, 1000, false)[:500])
		},
		"takes nothing": func(w *tunnelled) {
			go func() { _, _ = io.Copy(io.Discard, w.client) }()
			go func() { _, _ = w.client.Write(wsFrame(2, 1000, true)) }()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := tunnel(t)
				if name == "in a frame" {
					go func() { _, _ = io.ReadFull(w.client, make([]byte, 500)) }()
				}
				stick(w)
				synctest.Wait()
				began := time.Now()
				w.back.leave()
				<-w.done
				if took := time.Since(began); took != farewellTime {
					t.Errorf("it took %v, want %v", took, farewellTime)
				}
			})
		})
	}
}

// TestASideThatClosedGetsNoOtherGoodbye: after its own close frame a side is sent none of ours behind the other's answer.
func TestASideThatClosedGetsNoOtherGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := tunnel(t)
		bye := wsFrame(opcodeClose, 2, false)
		go func() { _, _ = w.server.Write(bye) }()
		take(t, w.client, bye)
		w.back.leave()
		takeMasked(t, w.server)
		synctest.Wait()
		_ = w.server.Close()
		<-w.done
		if b, _ := io.ReadAll(w.client); len(b) > 0 {
			t.Errorf("the client got % x", b)
		}
	})
}

// TestAnEndedWebSocketEndsBoth as any tunnel.
func TestAnEndedWebSocketEndsBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := tunnel(t)
		_ = w.client.Close()
		<-w.done
		if b, err := io.ReadAll(w.server); err != nil || len(b) > 0 {
			t.Errorf("% x, %v", b, err)
		}
		w.back.leave()
	})
}
