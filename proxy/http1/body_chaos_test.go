package http1

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// letters is a body of one letter that comes in pieces, some of them late, and can be given up.
type letters struct {
	letter byte
	left   int
}

func (l *letters) Read(p []byte) (int, error) { return l.ReadUntil(p, nil) }
func (l *letters) ReadUntil(p []byte, stop <-chan struct{}) (int, error) {
	if rand.IntN(4) == 0 {
		select {
		case <-time.After(time.Duration(rand.IntN(300)+1) * time.Microsecond):
		case <-stop:
			return 0, errStopped
		}
	}
	n := min(l.left, len(p), rand.IntN(20_000)+1)
	for i := range n {
		p[i] = l.letter
	}
	if l.left -= n; l.left == 0 {
		return n, io.EOF
	}
	return n, nil
}
func (*letters) Trailer() []forward.Field { return nil }
func (*letters) Rewind() error            { return errNotHeld }
func (*letters) Rewindable() bool         { return false }

// impatient answers some requests before it read their body, and some of those it then reads on; the answer names the
// letter that the request asked for.
func impatient(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		early := rand.IntN(3)
		if early != 0 {
			got, err := io.ReadAll(r.Body)
			if err != nil || strings.Trim(string(got), r.URL.Path[1:2]) != "" {
				return // no answer: the attempt fails, and is counted
			}
		}
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n%s\r\n", r.URL.Path[1:2])
		if early == 0 && rand.IntN(2) == 0 {
			_, _ = io.CopyN(io.Discard, r.Body, int64(rand.IntN(50_000)))
		}
		_, _ = io.WriteString(c, "0\r\n\r\n")
		if early == 0 && rand.IntN(2) == 0 {
			return
		}
	}
}

// TestNobodysBodies: many requests with bodies at once to peers that may answer before they read them, by clients that
// may go. No answer is another's, no body gets bytes of another, and nothing stays behind.
func TestNobodysBodies(t *testing.T) {
	ps := NewPools(Settings{Read: 5 * time.Second, IdleMax: 4}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: listen(t, impatient)})
	var wg sync.WaitGroup
	var mu sync.Mutex
	whole := 0
	for g := range 8 {
		wg.Go(func() {
			for range 20 {
				ctx, cancel := context.WithCancel(context.Background())
				letter := byte('a' + g)
				size := rand.IntN(200_000) + 1
				r := post(&letters{letter, size}, int64(size))
				if rand.IntN(2) == 0 {
					r.Length = -1
				}
				r.Target = []byte{'/', letter}
				if rand.IntN(10) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(1000)+1)*time.Microsecond, cancel)
				}
				got, err := take(ctx, ps, p, r)
				cancel()
				if got != "" && got != string(letter) || err == nil && got == "" {
					t.Errorf("%c got %q, %v", letter, got, err)
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
	if whole < 80 {
		t.Errorf("only %d of 160 were answered", whole)
	}
	if n, kept := p.Link.(*Pool).open(), p.Link.(*Pool).shelf.count; n != kept {
		t.Errorf("%d connections are open, %d are kept", n, kept)
	}
}
