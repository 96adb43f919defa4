package upstrand

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Env is what a State asks of the world.
type Env struct {
	Rand func() uint64 // safe for concurrent use; nil: math/rand/v2
	// AllBlocked is told when all upstreams are blacklisted and are therefore taken off the list; nil: nobody is. It is
	// called without locks held.
	AllBlocked func(name string)
}

// State is what an upstrand remembers on this node, shared by all connections. It is safe for concurrent use, and lives
// as long as there is an upstrand of its name.
type State struct {
	name string
	env  Env
	plan atomic.Pointer[plan] // written with mu held

	record atomic.Pointer[recorder] // nil: walks are not recorded

	mu     sync.Mutex
	cursor [2]int  // where the next request starts in each list
	begun  [2]bool // the cursor has had its random beginning
	counts Totals
}

// NewState makes the state of a new upstrand, which has no members before the first Swap.
func NewState(name string, env Env) *State {
	if env.Rand == nil {
		env.Rand = rand.Uint64
	}
	s := &State{name: name, env: env}
	s.plan.Store(&plan{})
	return s
}

// Name is the upstrand's.
func (s *State) Name() string { return s.name }

// Swap puts another Spec in force. What is remembered of members that stay is kept. The next request starts at the
// upstream that was its turn, or when that left, at the first that stays of those behind it. Walks that have begun go on
// with what is there now.
func (s *State) Swap(spec Spec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.plan.Load()
	next := planned(spec, old)
	for i := range s.cursor {
		s.cursor[i] = moved(old.lists[i], next.lists[i], s.cursor[i])
	}
	s.plan.Store(next)
}

// moved is the cursor's place in a list that replaces another.
func moved(old, next []*stop, at int) int {
	for i := range old {
		name := old[(at+i)%len(old)].Name
		for j, s := range next {
			if s.Name == name {
				return j
			}
		}
	}
	return 0
}

// Reset takes an upstream off the blacklist; with an empty name all of them, and the next request starts at the first
// upstream. It reports how many were blacklisted, and false when there is no such upstream.
func (s *State) Reset(upstream string) (cleared int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.plan.Load()
	if upstream != "" {
		return p.clear(upstream), p.has(upstream)
	}
	s.cursor = [2]int{}
	return p.clear(""), true
}

// starts is where a request starts in each list, and moves the cursor. Only the first list that has upstreams rotates.
// The mutex is held.
func (s *State) starts(p *plan) (at [2]int) {
	rotating := 0
	if len(p.lists[0]) == 0 {
		rotating = 1
	}
	for i, list := range p.lists {
		n := len(list)
		if n == 0 {
			continue
		}
		switch {
		case p.spec.PerRequest && p.spec.StartRandom:
			at[i] = s.random(n)
			continue
		case p.spec.PerRequest:
			continue
		case p.spec.StartRandom && !s.begun[i]:
			s.begun[i] = true
			s.cursor[i] = s.random(n)
		}
		at[i] = s.cursor[i] % n
		if i == rotating {
			s.cursor[i] = (at[i] + 1) % n
		}
	}
	return at
}

// random is a number below n, each as likely as the others as far as that matters for a handful of upstreams.
func (s *State) random(n int) int { return int(s.env.Rand() % uint64(n)) }
