package balance

import (
	"math"
	"sync/atomic"
)

// Peer is one process at one address in one upstream, with its live state.
type Peer struct {
	cell        // first, so that what a pick looks at is one cache line
	times times // acts for methods that want it

	addr, scheme string
	incarnation  int64
	key          Key
	route        atomic.Pointer[string] // of sticky, as declared or once it is known
	gone         atomic.Bool            // written under the upstream's mutex, read anywhere

	// Link is for the owner of the group to hang its connections on. It is set before the peer is first published and
	// never changed.
	Link any

	// The rest is guarded by the upstream's mutex.
	weight    int   // as declared
	accessed  int64 // whole Unix seconds of the last failure
	slowStart int64 // milliseconds
	rampFrom  int64 // Unix milliseconds, while isRamping
}

// cell is the part of a peer that every pick reads and most write. The upstream's mutex guards it.
type cell struct {
	current   int   // the rotation, in units
	effective int   // likewise: what a turn adds, at most full
	full      int   // likewise: the whole weight
	checked   int64 // whole Unix seconds of the last failure, or of the last pick after the window
	window    int64 // fail_timeout in whole seconds
	conns     int32 // open attempts
	maxConns  int32
	fails     int32
	maxFails  int32
	flags     flags // none set: may be given, with its effective weight
}

// flags say what a pick must look at more closely.
type flags uint8

const (
	isGone     flags = 1 << iota
	isDown           // declared down
	isDraining       // declared draining
	isFailing        // max_fails reached: passed over while in the window
	isFull           // max_conns reached
	isTried          // in the request whose pick is under way, and only as long
	isRamping        // its share is still growing
)

func newPeer(s Server, unit int) *Peer {
	p := &Peer{}
	p.init(s, unit)
	return p
}

func (p *Peer) init(s Server, unit int) {
	p.addr, p.scheme, p.incarnation, p.key = s.Addr, s.Scheme, s.Incarnation, s.Key
	p.set(s, unit)
	p.effective = p.full
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

// Backup reports whether the peer stands among the backup ones.
func (p *Peer) Backup() bool { return p.key.Backup }

// Gone reports whether the peer has left the topology. Nothing new may be sent to it, not even a request that was
// given it before: its address may belong to somebody else by now.
func (p *Peer) Gone() bool { return p.gone.Load() }

func (p *Peer) leave() {
	p.gone.Store(true)
	p.flags |= isGone
}

// set takes over a server's parameters as they stand; the rotation is for rescale. Unit is what a weight of one counts.
func (p *Peer) set(s Server, unit int) {
	p.weight = s.weight()
	p.full = p.weight * unit
	p.maxConns, p.maxFails = within32(s.MaxConns), within32(s.MaxFails)
	p.window = wholeSeconds(s.FailTimeout)
	p.slowStart = s.SlowStart.Milliseconds()
	if s.Route == "" {
		p.route.Store(nil)
	} else {
		route := s.Route
		p.route.Store(&route) // at once: whoever reads it meanwhile must not take the digest for it
	}
	p.put(isDown, s.Down)
	p.put(isDraining, s.Drain)
	p.put(isFull, p.maxConns > 0 && p.conns >= p.maxConns)
	p.put(isFailing, p.maxFails > 0 && p.fails >= p.maxFails)
	if p.slowStart == 0 {
		p.flags &^= isRamping
	}
}

func (p *Peer) put(f flags, on bool) {
	if on {
		p.flags |= f
	} else {
		p.flags &^= f
	}
}

// rescale carries a rotation over from a full weight of old, so that a change is in force at once and gives nobody a
// run of picks.
func (p *Peer) rescale(old, current, effective int) {
	if effective == old {
		p.effective = p.full
	} else {
		p.effective = min(effective, p.full)
	}
	p.current = scaled(current, p.full, old)
}

// why tells whether the peer may be given at second now.
func (p *Peer) why(now int64) Reason {
	if p.flags == 0 {
		return Eligible
	}
	return p.flags.why(p, now)
}

func (f flags) why(p *Peer, now int64) Reason {
	switch {
	case f&isGone != 0:
		return Gone
	case f&isDown != 0:
		return Down
	case f&isDraining != 0:
		return Draining
	case f&isFailing != 0 && now-p.checked <= p.window:
		return Failed
	case f&isFull != 0:
		return Full
	case f&isTried != 0:
		return Tried
	}
	return Eligible
}

// begin opens an attempt. The first pick after a window moves checked, which makes it the only probe.
func (p *Peer) begin(now int64) {
	if now-p.checked > p.window {
		p.checked = now
	}
	p.enter()
}

func (p *Peer) enter() {
	p.conns++
	if p.conns == p.maxConns {
		p.flags |= isFull
	}
}

func (p *Peer) exit() {
	p.conns--
	if p.conns < p.maxConns {
		p.flags &^= isFull
	}
}

func (p *Peer) failed(now int64, unit int) {
	if p.fails < math.MaxInt32 { // with max_fails=0 they may add up for months
		p.fails++
	}
	p.accessed, p.checked = now, now
	if p.maxFails == 0 {
		return
	}
	p.effective = max(p.effective-p.weight/int(p.maxFails)*unit, 0)
	if p.fails >= p.maxFails {
		p.flags |= isFailing
		p.rampAfter(now)
	}
}

// succeeded clears the failures only when the attempt was picked after the window of the last one. Nearly always there are
// none, and then it looks at no more than a pick does.
func (p *Peer) succeeded() {
	if p.fails > 0 && p.accessed < p.checked {
		p.cleared()
	}
}

func (p *Peer) cleared() {
	p.fails = 0
	p.flags &^= isFailing
}
