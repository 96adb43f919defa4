package upstrand

import "time"

// plan is a Spec ready for walking. It is immutable but for what its stops hold, which outlives it.
type plan struct {
	spec  Spec
	lists [2][]*stop // normal, backup
}

// stop is a member with what is remembered of it.
type stop struct {
	Member
	interval int64 // of the blacklist, in seconds
	kept     *kept
}

// kept is what is remembered of an upstream in a list. State.mu guards it.
type kept struct {
	stamped bool
	stamp   int64 // the second of the last listed status
	counts  Counts
}

type key struct {
	name   string
	backup bool
}

// planned makes a plan, taking over what the old one remembers of members that stay.
func planned(spec Spec, old *plan) *plan {
	p := &plan{spec: spec}
	have := map[key]*kept{}
	if old != nil {
		for _, list := range old.lists {
			for _, s := range list {
				have[key{s.Name, s.Backup}] = s.kept
			}
		}
	}
	for _, m := range spec.Members {
		k := have[key{m.Name, m.Backup}]
		if k == nil {
			k = &kept{}
		}
		s := &stop{Member: m, interval: int64((m.Blacklist + time.Second - 1) / time.Second), kept: k}
		p.lists[m.list()] = append(p.lists[m.list()], s)
	}
	return p
}

func (p *plan) size() int { return len(p.lists[0]) + len(p.lists[1]) }

// blocked tells whether the upstream is blacklisted in this second. State.mu is held.
func (s *stop) blocked(second int64) bool {
	return s.interval > 0 && s.kept.stamped && second-s.kept.stamp < s.interval
}

// until is the first second in which the upstream is free again; 0: it is not blacklisted. State.mu is held.
func (s *stop) until(second int64) int64 {
	if !s.blocked(second) {
		return 0
	}
	return s.kept.stamp + s.interval
}

// allBlocked tells whether no upstream of any list is free. State.mu is held.
func (p *plan) allBlocked(second int64) bool {
	for _, list := range p.lists {
		for _, s := range list {
			if !s.blocked(second) {
				return false
			}
		}
	}
	return true
}

// clear takes the stamps of all upstreams away, or of the named one; it tells how many there were. State.mu is held.
func (p *plan) clear(name string) (cleared int) {
	for _, list := range p.lists {
		for _, s := range list {
			if s.kept.stamped && (name == "" || s.Name == name) {
				s.kept.stamped = false
				cleared++
			}
		}
	}
	return cleared
}

// has tells whether an upstream is a member.
func (p *plan) has(name string) bool {
	for _, list := range p.lists {
		for _, s := range list {
			if s.Name == name {
				return true
			}
		}
	}
	return false
}

func second(now int64) int64 { return now / int64(time.Second) }
