package balance

import "time"

// PeerState is a peer's state at one moment, for people.
type PeerState struct {
	ID          string `json:"id"`
	Addr        string `json:"addr"`
	Incarnation int64  `json:"incarnation,omitempty"`
	Backup      bool   `json:"backup,omitempty"`
	Weight      int    `json:"weight"`           // as declared
	Unit        int    `json:"unit"`             // what a weight of one counts in the next three
	Effective   int    `json:"effective_weight"` // what a turn adds, outside of a ramp
	Current     int    `json:"current_weight"`
	Debt        int    `json:"debt"` // how far a turn now adds less than the whole weight
	Conns       int    `json:"conns"`
	MaxConns    int    `json:"max_conns"`
	Fails       int    `json:"fails"`
	MaxFails    int    `json:"max_fails"`
	FailTimeout string `json:"fail_timeout"`
	FailedFor   int64  `json:"seconds_since_failure,omitempty"` // 0 also when it never failed
	FailedUntil int64  `json:"failed_until,omitempty"`          // last Unix second of a failed peer's window
	RampMillis  int64  `json:"ramp_left_ms,omitempty"`          // of slow_start: until the weight is whole
	HeaderTime  int64  `json:"header_time_ms,omitempty"`        // averages, where the method keeps them
	Response    int64  `json:"response_time_ms,omitempty"`
	Reason      string `json:"reason"` // eligible, or why it is passed over now
}

// Snapshot is the state of all peers at one moment, in the order of Servers.
func (g *Group) Snapshot() []PeerState {
	now := g.env.Clock.moment()
	out := make([]PeerState, len(g.peers))
	g.shared.mu.Lock()
	defer g.shared.mu.Unlock()
	for i, p := range g.peers {
		out[i] = p.state(now, g.shared.unit)
	}
	return out
}

func (p *Peer) state(now moment, unit int) PeerState {
	s := PeerState{
		ID: p.key.ID, Addr: p.addr, Incarnation: p.incarnation, Backup: p.key.Backup,
		Weight: p.weight, Unit: unit, Effective: p.effective, Current: p.current,
		Debt:  p.full - min(p.effective, p.cap(now.milli)),
		Conns: int(p.conns), MaxConns: int(p.maxConns), Fails: int(p.fails), MaxFails: int(p.maxFails),
		FailTimeout: (time.Duration(p.window) * time.Second).String(), RampMillis: p.rampLeft(now.milli),
		HeaderTime: p.times.header, Response: p.times.response,
	}
	why := p.why(now.second)
	s.Reason = why.String()
	if p.accessed > 0 {
		s.FailedFor = now.second - p.accessed
	}
	if why == Failed {
		s.FailedUntil = p.checked + p.window
	}
	return s
}
