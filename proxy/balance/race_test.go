package balance

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// TestConcurrentPicksAndSwaps is for the race detector, with every method, sessions, recording and old tables; and it
// counts: attempts all end, tries are bounded, the joiner of a swap that is in force is there and nobody who left is.
func TestConcurrentPicksAndSwaps(t *testing.T) {
	for _, m := range everyMethod {
		for _, sticky := range []StickySpec{{}, {Kind: "cookie"}, {Kind: "learn", OnHeader: true}} {
			t.Run(m.String()+" "+sticky.Kind, func(t *testing.T) {
				s := &storm{t: t, spec: Spec{Method: m, Sticky: sticky}}
				s.blow()
			})
		}
	}
}

// storm is goroutines that pick while the upstream changes. Versions is how often it has changed: a peer whose id names
// a version was there from that one on, and is gone since the next but one.
type storm struct {
	t        *testing.T
	spec     Spec
	current  atomic.Pointer[Group]
	versions atomic.Int64
	peers    sync.Map // every *Peer ever given
}

func (s *storm) servers(version int) []Server {
	a := server("a", 1+version%7)
	a.Incarnation = int64(version / 10)
	joiner := server(fmt.Sprint(version), 2)
	if version%3 == 0 {
		joiner = slow(joiner)
	}
	return []Server{a, server("keep", 1), server(fmt.Sprint(version-1), 2), joiner, backup(server("spare", 1))}
}

func (s *storm) blow() {
	s.spec.Servers = s.servers(0)
	s.current.Store(group(s.t, s.spec, Env{}))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() { s.picks(i, stop) })
	}
	for version := 1; version < 40; version++ {
		s.spec.Servers = s.servers(version)
		g := s.current.Load()
		g.Record(version % 4)
		c, err := g.Prepare(s.spec)
		if err != nil {
			s.t.Error(err)
			break
		}
		Swap([]*Change{c}, func() { s.current.Store(c.Next) })
		s.versions.Store(int64(version))
		_ = append(g.Picks(), c.Next.Picks()...)
	}
	close(stop)
	wg.Wait()
	s.peers.Range(func(key, _ any) bool {
		if p := key.(*Peer); p.conns != 0 || p.times.unanswered != 0 || p.flags&(isTried|isFull) != 0 {
			s.t.Errorf("%s is left with %d attempts, %d unanswered, flags %b", p.ID(), p.conns, p.times.unanswered, p.flags)
		}
		return true
	})
}

func (s *storm) picks(i int, stop chan struct{}) {
	all := asks()
	var old Pass
	for n := i * 80; ; n++ {
		select {
		case <-stop:
			s.drain(&old)
			return
		default:
		}
		ask := all[n%len(all)]
		p := s.current.Load().Begin(NoLimit, ask)
		if n%5 == 0 {
			s.drain(&old) // one that began some versions ago
			old = p
			continue
		}
		s.through(&p, n)
	}
}

func (s *storm) drain(p *Pass) {
	if p.group != nil {
		s.through(p, 1)
	}
}

func (s *storm) through(p *Pass, n int) {
	for tries := 0; p.Tries() > 0; tries++ {
		before := s.versions.Load()
		peer, _ := p.Pick()
		if peer == nil {
			return
		}
		s.peers.Store(peer, nil)
		if version, err := strconv.Atoi(peer.ID()); err == nil && int64(version)+1 < before {
			s.t.Errorf("%s was given when version %d was in force", peer.ID(), before)
		}
		if tries > len(p.group.peers) {
			s.t.Errorf("%d tries among %d peers", tries, len(p.group.peers))
			return
		}
		if n%2 == 0 {
			p.Learn([]byte("session"))
			p.Header()
		}
		p.End([]Result{Succeeded, Broken}[(n+tries)%2])
		if n%7 == 0 {
			_ = p.group.Snapshot()
		}
	}
}
