package balance

import (
	"crypto/md5"
	"encoding/hex"
)

// defaultSessionTimeout is for sticky learn, in milliseconds.
const defaultSessionTimeout = 600_000

// pins finds the peers that sessions are bound to. It belongs to one group; the learned sessions go on to the next.
type pins struct {
	main, backup seats
	sessions     *sessions // learn; else nil
	timeout      int64     // learn: ms
	limit        int       // learn
	onHeader     bool      // learn
}

// seats are the peers of one part of a group by what sessions know of them.
type seats struct {
	byRoute map[string]int32 // cookie, route: the first one of each route
	next    []int32          // of each peer: the next one of the same route, or nowhere
	last    []int32          // of each peer that is the first one of its route: the last one
	byPeer  map[*Peer]int32  // learn
}

// newPins binds sessions to peers, which stand in the order of servers, as spec says; nil for a spec that binds none.
// Old is what the upstream's group before had.
func newPins(spec StickySpec, servers []Server, peers []*Peer, old *pins) *pins {
	if spec.Kind == "" {
		return nil
	}
	s := &pins{}
	if spec.Kind == "learn" {
		s.learnBy(spec, old)
	}
	for i, server := range servers {
		part := &s.main
		if server.Key.Backup {
			part = &s.backup
		}
		if s.sessions != nil {
			part.seat(peers[i])
		} else {
			part.name(server.route())
		}
	}
	return s
}

func (s *pins) learnBy(spec StickySpec, old *pins) {
	s.timeout, s.limit, s.onHeader = spec.Timeout.Milliseconds(), spec.Limit, spec.OnHeader
	if s.timeout <= 0 {
		s.timeout = defaultSessionTimeout
	}
	if s.limit <= 0 {
		s.limit = defaultSessions
	}
	if old != nil && old.sessions != nil {
		s.sessions = old.sessions
	} else {
		s.sessions = newSessions()
	}
}

// seat adds a peer that sessions are learned of.
func (s *seats) seat(p *Peer) {
	if s.byPeer == nil {
		s.byPeer = map[*Peer]int32{}
	}
	s.byPeer[p] = int32(len(s.byPeer))
}

// name adds a peer by its route. Several may share one.
func (s *seats) name(route string) {
	if s.byRoute == nil {
		s.byRoute = map[string]int32{}
	}
	i := int32(len(s.next))
	s.next, s.last = append(s.next, nowhere), append(s.last, i)
	first, shared := s.byRoute[route]
	if !shared {
		s.byRoute[route] = i
		return
	}
	s.next[s.last[first]], s.last[first] = i, i
}

// find gives the peer of the round that the request's session is bound to and that may be given, or -1. Of several
// with one route it is the first.
func (s *pins) find(r *Round) int {
	session := r.Ask().Session
	if len(session) == 0 {
		return -1
	}
	part := &s.main
	if r.Backup() {
		part = &s.backup
	}
	if s.sessions != nil {
		p := s.sessions.peer(s.sessions.key(session), r.Millis(), s.timeout)
		if i, here := part.byPeer[p]; here && r.Pinned(int(i)) == Eligible {
			return int(i)
		}
		return -1
	}
	i, known := part.byRoute[string(session)]
	for ; known && i != nowhere; i = part.next[i] {
		if r.Pinned(int(i)) == Eligible {
			return int(i)
		}
	}
	return -1
}

// route is what a session knows the server by.
func (s Server) route() string {
	if s.Route != "" {
		return s.Route
	}
	return digest(s.Addr)
}

// digest is the hexadecimal MD5 of an address: it tells a client nothing about the inside, and the same on every host.
func digest(addr string) string {
	sum := md5.Sum([]byte(addr))
	return hex.EncodeToString(sum[:])
}

// Route is what a session knows the peer by: its declared route, or a digest of its address. It is the value of the
// cookie that binds a session to the peer.
func (p *Peer) Route() string {
	if route := p.route.Load(); route != nil {
		return *route
	}
	route := digest(p.addr)
	p.route.CompareAndSwap(nil, &route)
	return route
}
