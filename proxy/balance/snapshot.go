package balance

import "time"

// PeerState is a peer's state at one moment, for people.
type PeerState struct {
	ID          string `json:"id"`
	Addr        string `json:"addr"`
	Incarnation int64  `json:"incarnation,omitempty"`
	Backup      bool   `json:"backup,omitempty"`
	Weight      int    `json:"weight"`
	Effective   int    `json:"effective_weight"`
	Current     int    `json:"current_weight"`
	Conns       int    `json:"conns"`
	MaxConns    int    `json:"max_conns"`
	Fails       int    `json:"fails"`
	MaxFails    int    `json:"max_fails"`
	FailTimeout string `json:"fail_timeout"`
	FailedFor   int64  `json:"seconds_since_failure,omitempty"` // 0 also when it never failed
	Reason      string `json:"reason"`                          // eligible, or why it is passed over now
}

// Snapshot is the state of all peers at one moment, in the order of Servers.
func (g *Group) Snapshot() []PeerState {
	now := g.clock.second()
	out := make([]PeerState, len(g.peers))
	g.shared.mu.Lock()
	defer g.shared.mu.Unlock()
	for i, p := range g.peers {
		out[i] = PeerState{
			ID: p.key.ID, Addr: p.addr, Incarnation: p.incarnation, Backup: p.key.Backup,
			Weight: p.weight, Effective: p.effective, Current: p.current,
			Conns: p.conns, MaxConns: p.maxConns, Fails: p.fails, MaxFails: p.maxFails,
			FailTimeout: (time.Duration(p.failTimeout) * time.Second).String(), Reason: p.why(now).String(),
		}
		if p.accessed > 0 {
			out[i].FailedFor = now - p.accessed
		}
	}
	return out
}
