package heartbeat

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// network is a way to a broker that can die silently: connections made before the cut stay dead, as when a router
// forgot them, new ones hang until it is healed.
type network struct {
	to      string
	mu      sync.Mutex
	dead    chan struct{} // closed for the connections of before a cut
	cut     bool
	dials   atomic.Int32
	forward sync.WaitGroup
	quit    context.Context
}

func newNetwork(t *testing.T, to string) *network {
	quit, cancel := context.WithCancel(context.Background())
	n := &network{to: to, dead: make(chan struct{}), quit: quit}
	t.Cleanup(func() { cancel(); n.forward.Wait() })
	return n
}

func (n *network) set(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
	if cut {
		close(n.dead)
		n.dead = make(chan struct{})
	}
}

func (n *network) dial(ctx context.Context, netw, _ string) (net.Conn, error) {
	n.dials.Add(1)
	n.mu.Lock()
	cut, dead := n.cut, n.dead
	n.mu.Unlock()
	if cut {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	far, err := net.Dial("tcp", n.to)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	mid, err := l.Accept()
	if err != nil {
		return nil, err
	}
	n.pipe(far, mid, dead)
	n.pipe(mid, far, dead)
	return near, nil
}

// pipe forwards until the connection is dead; then it reads on and says nothing.
func (n *network) pipe(to, from net.Conn, dead <-chan struct{}) {
	stop := context.AfterFunc(n.quit, func() { from.Close() })
	n.forward.Go(func() {
		defer stop()
		buf := make([]byte, 4096)
		for {
			k, err := from.Read(buf)
			select {
			case <-dead:
				if err == nil {
					continue
				}
				<-n.quit.Done() // not even the end gets through
			default:
			}
			if _, werr := to.Write(buf[:k]); err != nil || werr != nil {
				to.Close()
				if err == nil || errors.Is(err, io.EOF) {
					from.Close()
				}
				return
			}
		}
	})
}
