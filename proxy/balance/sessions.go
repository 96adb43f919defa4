package balance

import "hash/maphash"

// defaultSessions is how many learned sessions an upstream keeps unless told otherwise.
const defaultSessions = 1 << 16

// sessions maps the sessions that were learned to the peers that serve them. It outlives tables, and the upstream's
// mutex guards it. What it takes is bounded: the session that was refreshed longest ago makes room, and of a session's
// id, which is as long as its maker pleases, only a hash is kept. A peer that left has no sessions: nobody finds its
// place any more, and its entries go as those that nobody refreshes.
type sessions struct {
	seeds          [2]maphash.Seed
	at             map[sessionKey]int32
	all            []session // by place; the ends of its list are in newest and oldest
	free           int32     // head of the list of free places, linked by older
	newest, oldest int32
}

// sessionKey stands for a session's id. Two hashes with secret seeds: nobody can make two ids meet.
type sessionKey [2]uint64

type session struct {
	key          sessionKey
	peer         *Peer
	refreshed    int64 // ms
	newer, older int32 // neighbours by time of refreshment; nowhere at the ends
}

const nowhere = -1

func newSessions() *sessions {
	return &sessions{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		at:    map[sessionKey]int32{}, free: nowhere, newest: nowhere, oldest: nowhere,
	}
}

// key hashes a session's id.
func (s *sessions) key(id []byte) sessionKey {
	return sessionKey{maphash.Bytes(s.seeds[0], id), maphash.Bytes(s.seeds[1], id)}
}

// peer gives who serves a session that was refreshed less than timeout before now, both in ms; nil when nobody does.
func (s *sessions) peer(k sessionKey, now, timeout int64) *Peer {
	i, known := s.at[k]
	if !known || now-s.all[i].refreshed >= timeout || s.all[i].peer.Gone() {
		return nil
	}
	return s.all[i].peer
}

// put gives a session to a peer and refreshes it. At most limit sessions stay.
func (s *sessions) put(k sessionKey, p *Peer, now int64, limit int) {
	i, known := s.at[k]
	if known {
		s.unlink(i)
	} else {
		for len(s.at) >= limit {
			s.drop(s.oldest)
		}
		i = s.place()
		s.at[k] = i
	}
	e := &s.all[i]
	e.key, e.peer, e.refreshed = k, p, now
	e.newer, e.older = nowhere, s.newest
	if s.newest == nowhere {
		s.oldest = i
	} else {
		s.all[s.newest].newer = i
	}
	s.newest = i
}

// expire drops a few of those that were not refreshed for timeout, so that a table that nobody looks into shrinks too.
func (s *sessions) expire(now, timeout int64) {
	for range 2 {
		if s.oldest == nowhere || now-s.all[s.oldest].refreshed < timeout {
			return
		}
		s.drop(s.oldest)
	}
}

// place gives a free place.
func (s *sessions) place() int32 {
	if i := s.free; i != nowhere {
		s.free = s.all[i].older
		return i
	}
	s.all = append(s.all, session{})
	return int32(len(s.all) - 1)
}

func (s *sessions) drop(i int32) {
	s.unlink(i)
	delete(s.at, s.all[i].key)
	s.all[i] = session{older: s.free}
	s.free = i
}

func (s *sessions) unlink(i int32) {
	e := &s.all[i]
	if e.newer == nowhere {
		s.newest = e.older
	} else {
		s.all[e.newer].older = e.older
	}
	if e.older == nowhere {
		s.oldest = e.newer
	} else {
		s.all[e.older].newer = e.newer
	}
}
