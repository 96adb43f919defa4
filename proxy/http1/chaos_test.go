package http1

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// wholes are answers with the bytes of their bodies; the last field says whether a close tells their end.
var wholes = []struct {
	name, answer, body string
	byClose            bool
}{
	{"length", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nA: b\r\n\r\nhello world", "hello world", false},
	{"chunked", "HTTP/1.1 103 X\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n06\r\n world\r\n0\r\nA: b\r\n\r\n", "hello world", false},
	{"until close", "HTTP/1.1 200 OK\r\nA: b\r\n\r\nhello world", "hello world", true},
	{"no body", "HTTP/1.1 204 X\r\nA: b\r\n\r\n", "", false},
}

// take makes an attempt and reads all of its answer.
func take(ctx context.Context, o forward.Opener, p *balance.Peer, r *forward.Request) (string, error) {
	b := o.Open(ctx, p, false)
	defer b.(*attempt).Release()
	defer b.Close()
	if _, _, err := exchanged(b, r); err != nil {
		return "", err
	}
	body, err := io.ReadAll(readerOf{b.Body()})
	return string(body), err
}

// TestPeerClosesAtEveryByte: what was cut is never taken for whole, what is whole is never refused, and what came before
// the cut is what the peer said.
func TestPeerClosesAtEveryByte(t *testing.T) {
	for _, tc := range wholes {
		for _, reset := range []bool{false, true} {
			for at := range len(tc.answer) + 1 {
				ps := NewPools(Settings{Read: 5 * time.Second}, nil)
				addr := listen(t, func(c net.Conn) {
					readRequest(c)
					_, _ = io.WriteString(c, tc.answer[:at])
					if reset && at < len(tc.answer) {
						_ = c.(*net.TCPConn).SetLinger(0)
					}
				})
				p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
				body, err := take(t.Context(), ps, p, get())
				head := strings.LastIndex(tc.answer, "A: b\r\n\r\n") + len("A: b\r\n\r\n")
				whole := at == len(tc.answer) || tc.byClose && at >= head && !reset
				if (err == nil) != whole || !strings.HasPrefix(tc.body, body) || whole && !tc.byClose && body != tc.body {
					t.Errorf("%s cut at %d (reset %v): %q, %v", tc.name, at, reset, body, err)
				}
				if err != nil && classOf(t, err) != forward.OnError {
					t.Errorf("%s cut at %d: %v", tc.name, at, err)
				}
				ps.Close()
			}
		}
	}
}

// TestPeerStallsAtEveryByte: silence is a timeout wherever it begins.
func TestPeerStallsAtEveryByte(t *testing.T) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, tc := range wholes {
		for at := range len(tc.answer) {
			ps := NewPools(Settings{Read: 50 * time.Millisecond}, nil)
			addr := listen(t, func(c net.Conn) {
				readRequest(c)
				_, _ = io.WriteString(c, tc.answer[:at])
				_, _ = io.Copy(io.Discard, c)
			})
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
			wg.Go(func() {
				defer ps.Close()
				body, err := take(context.Background(), ps, p, get())
				var class forward.Class
				if e, ok := err.(*forward.Error); ok {
					class = e.Class
				}
				if class != forward.OnTimeout || !strings.HasPrefix(tc.body, body) {
					t.Errorf("%s stalled at %d: %q, %v", tc.name, at, body, err)
				}
			})
		}
	}
}

// TestNobodysBytes: many requests at once to peers that answer in pieces, close at random, send too much, or say things
// between the answers. Each attempt gets the answer to its own request, whole, or an error.
func TestNobodysBytes(t *testing.T) {
	ps := NewPools(Settings{Read: 5 * time.Second, IdleMax: 4}, nil)
	defer ps.Close()
	addr := listen(t, func(c net.Conn) {
		for {
			head := readRequest(c)
			_, target, _ := strings.Cut(head, " ")
			target, _, _ = strings.Cut(target, " ")
			if target == "" {
				return
			}
			answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(target), target)
			if rand.IntN(2) == 0 {
				answer = fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(target), target)
			}
			cut := len(answer)
			switch rand.IntN(8) {
			case 0:
				cut = rand.IntN(len(answer))
			case 1:
				answer += "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
				cut = len(answer)
			}
			half := rand.IntN(min(cut, 40) + 1) // what is too much comes with the end of the answer: later nobody can tell
			if _, err := io.WriteString(c, answer[:half]); err != nil {
				return
			}
			_, _ = io.WriteString(c, answer[half:cut])
			if cut < len(answer) || rand.IntN(10) == 0 {
				return
			}
		}
	})
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	var wg sync.WaitGroup
	var mu sync.Mutex
	whole := 0
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				r := get()
				r.Target = fmt.Appendf(nil, "/%d/%d", g, i)
				if rand.IntN(20) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(1000))*time.Microsecond+1, cancel)
				}
				body, err := take(ctx, ps, p, r)
				cancel()
				if err == nil && body != string(r.Target) || !strings.HasPrefix(string(r.Target), body) {
					t.Errorf("%s got %q, %v", r.Target, body, err)
				}
				if err == nil {
					mu.Lock()
					whole++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if whole < 800 {
		t.Errorf("only %d of 1600 were answered", whole)
	}
}

// TestNoWakeIsLost: many short exchanges at once, with answers that come before, while and after they are waited for, in
// one piece and in several. A wake that was lost would be a timeout.
func TestNoWakeIsLost(t *testing.T) {
	ps := NewPools(Settings{Read: 10 * time.Second}, nil)
	defer ps.Close()
	addr := listen(t, func(c net.Conn) {
		for i := 0; readRequest(c) != ""; i++ {
			if i%5 == 0 {
				time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			}
			answer := "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
			cut := len(answer)
			if i%3 == 0 {
				cut = rand.IntN(len(answer))
			}
			_, _ = io.WriteString(c, answer[:cut])
			if cut < len(answer) {
				_, _ = io.WriteString(c, answer[cut:])
			}
		}
	})
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for range exchanges {
				if body, err := take(ctx, ps, p, get()); body != "hello" || err != nil {
					t.Errorf("%q, %v", body, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

const exchanges = 200
