package balance

import (
	"sync/atomic"
	"time"
)

// Key names a peer within its upstream, across versions of the topology.
type Key struct {
	Backup  bool
	ID      string // instance id, or the server text as declared
	Addr    string // resolved address of a declared server; empty for an instance, which keeps its place when it moves
	Ordinal int    // place among peers that are otherwise equal
}

// Server is what a topology says of one peer. Servers are compared with ==: equal ones change nothing.
type Server struct {
	Key         Key
	Addr        string // ip:port
	Scheme      string // empty: http
	Incarnation int64  // start of the process; a new one starts with clean counters
	Weight      int    // below 1 counts as 1
	MaxConns    int    // open attempts at once; 0: no limit
	MaxFails    int    // failures that disable; 0: never
	FailTimeout time.Duration
	Down, Drain bool
}

func (s Server) weight() int { return max(s.Weight, 1) }

// sameProcess reports whether s and o are one process at one address, so that its connections and failures go on.
func (s Server) sameProcess(o Server) bool {
	return s.Addr == o.Addr && s.Scheme == o.Scheme && s.Incarnation == o.Incarnation
}

// Peer is one process at one address in one upstream, with its live state.
type Peer struct {
	addr, scheme string
	incarnation  int64
	key          Key
	gone         atomic.Bool // written under the upstream's mutex, read anywhere

	// Link is for the owner of the group to hang its connections on. It is set before the peer is first published and
	// never changed.
	Link any

	// The rest is guarded by the upstream's mutex.
	weight, maxConns, maxFails int
	failTimeout                int64 // whole seconds
	down, drain                bool

	current, effective int // the rotation
	fails              int
	accessed, checked  int64 // whole Unix seconds of the last failure, and of the last failure or pick after the window
	conns              int   // open attempts
}

func newPeer(s Server) *Peer {
	p := &Peer{addr: s.Addr, scheme: s.Scheme, incarnation: s.Incarnation, key: s.Key}
	p.set(s)
	p.effective = p.weight
	return p
}

// Addr is the peer's ip:port.
func (p *Peer) Addr() string { return p.addr }

// Scheme is http or https.
func (p *Peer) Scheme() string {
	if p.scheme == "" {
		return "http"
	}
	return p.scheme
}

// Incarnation tells which start of the process this is; 0 when unknown.
func (p *Peer) Incarnation() int64 { return p.incarnation }

// ID is the instance id, or the server text as declared.
func (p *Peer) ID() string { return p.key.ID }

// Gone reports whether the peer has left the topology. Nothing new may be sent to it, not even a request that was
// given it before: its address may belong to somebody else by now.
func (p *Peer) Gone() bool { return p.gone.Load() }

// set takes over a server's parameters as they stand; the weight is for rescale.
func (p *Peer) set(s Server) {
	p.weight, p.maxConns, p.maxFails = s.weight(), s.MaxConns, s.MaxFails
	p.failTimeout = wholeSeconds(s.FailTimeout)
	p.down, p.drain = s.Down, s.Drain
}

// rescale carries a rotation from weight old to the peer's weight, so that a change is in force at once and gives
// nobody a run of picks.
func (p *Peer) rescale(old, current, effective int) {
	if effective == old {
		p.effective = p.weight
	} else {
		p.effective = min(effective, p.weight)
	}
	p.current = current * p.weight / old
}

// why tells whether the peer may be given at second now.
func (p *Peer) why(now int64) Reason {
	switch {
	case p.gone.Load():
		return Gone
	case p.down:
		return Down
	case p.drain:
		return Draining
	case p.maxFails > 0 && p.fails >= p.maxFails && now-p.checked <= p.failTimeout:
		return Failed
	case p.maxConns > 0 && p.conns >= p.maxConns:
		return Full
	}
	return Eligible
}

// begin opens an attempt. The first pick after a window moves checked, which makes it the only probe.
func (p *Peer) begin(now int64) {
	if now-p.checked > p.failTimeout {
		p.checked = now
	}
	p.conns++
}

func (p *Peer) failed(now int64) {
	p.fails++
	p.accessed, p.checked = now, now
	if p.maxFails > 0 {
		p.effective = max(p.effective-p.weight/p.maxFails, 0)
	}
}

// succeeded clears the failures only when the attempt was picked after the window of the last one.
func (p *Peer) succeeded() {
	if p.accessed < p.checked {
		p.fails = 0
	}
}
