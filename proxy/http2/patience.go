package http2

import (
	"sync"
	"time"
)

// patience ends what takes too long. Its timer goes on while things begin and end, and looks when it fires whether it fired
// too soon.
type patience struct {
	fire func()

	mu    sync.Mutex
	timer *time.Timer
	until time.Time // zero: nothing is waited for
	over  bool      // and nothing will be
}

// begin waits for at most that long from now on.
func (p *patience) begin(limit time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.until = time.Now().Add(limit)
	if p.timer == nil {
		p.timer = time.AfterFunc(limit, p.look)
	}
}

// again starts anew what is waited for, if anything is.
func (p *patience) again(limit time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.until.IsZero() {
		p.until = time.Now().Add(limit)
	}
}

// end: what was waited for came.
func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Time{}
	if p.over && p.timer != nil {
		p.timer.Stop()
	}
}

// close is the last end.
func (p *patience) close() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.end()
}

func (p *patience) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until.IsZero() {
		p.timer = nil
		return
	}
	if left := time.Until(p.until); left > 0 {
		p.timer.Reset(left)
		return
	}
	p.until, p.timer = time.Time{}, nil
	go p.fire()
}
