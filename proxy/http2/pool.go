package http2

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// Pool is the connections to one process.
type Pool struct {
	owner   *Pools
	key     Key
	kept    *kept
	holders int // guarded by owner.mu
	gone    atomic.Bool

	mu    sync.Mutex
	conns []*conn       // that are open; the one opened last at the end
	dials map[via]*dial // that are under way
}

// HTTP2 makes a Pool a peer's Link by itself.
func (p *Pool) HTTP2() *Pool { return p }

// dial is a connection that is being opened. Whoever needs one like it waits for it.
type dial struct {
	done chan struct{}
	err  error
}

var (
	errGone    = errors.New("the peer left the topology")
	errDrained = errors.New("the peer left the topology, and its time to end its answers is over")
	errTaken   = errors.New("the peer takes no request on a new connection")
)

// take gives a connection with room for one more request, which is reserved, and tells whether it carried others
// before. With fresh it is a new one.
func (p *Pool) take(ctx context.Context, v via, o *opener, fresh bool) (c *conn, kept bool, err error) {
	for !fresh {
		p.mu.Lock()
		if c := p.reserve(v); c != nil {
			kept := c.carried > 1
			p.mu.Unlock()
			return c, kept, nil
		}
		going := p.dials[v]
		if going == nil {
			going = &dial{done: make(chan struct{})}
			if p.dials == nil {
				p.dials = map[via]*dial{}
			}
			p.dials[v] = going
			p.mu.Unlock()
			return p.open1(ctx, v, o, going)
		}
		p.mu.Unlock()
		select {
		case <-going.done:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
		if going.err != nil && ctx.Err() == nil && !errors.Is(going.err, context.Canceled) {
			return nil, false, going.err // the same would happen to us
		}
	}
	return p.open1(ctx, v, o, nil)
}

// open1 opens a connection and reserves it for one request; others may wait for it.
func (p *Pool) open1(ctx context.Context, v via, o *opener, going *dial) (*conn, bool, error) {
	c, err := p.dial(ctx, v, o.wire.Connect)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && !c.reserve() {
		err = errTaken
	}
	if going != nil {
		delete(p.dials, v)
		going.err = err
		close(going.done)
	}
	return c, false, err
}

// reserve finds a connection with room. The mutex is held.
func (p *Pool) reserve(v via) *conn {
	for i := len(p.conns) - 1; i >= 0; i-- {
		if c := p.conns[i]; c.via == v && c.usable() && c.reserve() {
			return c
		}
	}
	return nil
}

func (p *Pool) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *Pool) all() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.conns)
}

// leave lets no request begin any more and closes what is unused.
func (p *Pool) leave() {
	p.gone.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.retire()
	}
}

// farewell resets what still runs.
func (p *Pool) farewell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		for a := range c.users {
			a.cancel(errDrained)
		}
	}
}

func (p *Pool) closeAll() {
	for _, c := range p.all() {
		c.close()
	}
}
