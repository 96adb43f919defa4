package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSessionsAgainstALog compares the table with a plain list of what was done, over random steps.
func TestSessionsAgainstALog(t *testing.T) {
	const limit, timeout = 20, 50
	type entry struct {
		id   string
		peer *Peer
		at   int64
	}
	r := rand.New(rand.NewPCG(9, 10))
	peers := []*Peer{{}, {}, {}}
	s := newSessions()
	var log []entry // oldest first
	now := int64(0)
	for step := range 20_000 {
		now += r.Int64N(3)
		id := fmt.Sprint(r.IntN(40))
		switch r.IntN(3) {
		case 0:
			p := peers[r.IntN(len(peers))]
			s.put(s.key([]byte(id)), p, now, limit)
			log = slices.DeleteFunc(log, func(e entry) bool { return e.id == id })
			log = append(log, entry{id, p, now})
			log = log[max(0, len(log)-limit):]
		case 1:
			s.expire(now, timeout)
			for range 2 {
				if len(log) > 0 && now-log[0].at >= timeout {
					log = log[1:]
				}
			}
		default:
			var want *Peer
			if i := slices.IndexFunc(log, func(e entry) bool { return e.id == id && now-e.at < timeout }); i >= 0 {
				want = log[i].peer
			}
			if got := s.peer(s.key([]byte(id)), now, timeout); got != want {
				t.Fatalf("step %d: session %s is at %p, want %p", step, id, got, want)
			}
		}
		if len(s.at) != len(log) || len(s.all) > limit {
			t.Fatalf("step %d: %d sessions in %d places, want %d", step, len(s.at), len(s.all), len(log))
		}
	}
}
