package balance

import (
	"fmt"
	"testing"
)

const (
	stableKeys = 2000
	// movedAtMost is how much more than the ideal may move. A single server's share of a ring is off by up to a quarter, so
	// it holds for the mean over many joiners.
	movedAtMost = 1.1
	joiners     = 10
)

// named is a server that a ring can tell from others.
func named(i, weight int) Server {
	return server(fmt.Sprintf("10.1.%d.%d", i/200, i%200), weight)
}

// placement is where each key goes.
func placement(l *lab) []string {
	where := make([]string, stableKeys)
	ask := &Ask{}
	for i := range where {
		ask.Key = fmt.Append(ask.Key[:0], "user-", i)
		p := l.g.Begin(NoLimit, ask)
		peer, _ := p.Pick()
		where[i] = peer.ID()
		p.End(Succeeded)
	}
	return where
}

// moved counts the keys that are elsewhere, and those among them that neither came from nor went to id.
func moved(before, after []string, id string) (all, needless int) {
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		all++
		if before[i] != id && after[i] != id {
			needless++
		}
	}
	return all, needless
}

// TestConsistentHashIsStable: who joins or leaves takes no more keys along than its share, and nobody else's key moves.
func TestConsistentHashIsStable(t *testing.T) {
	for _, tc := range []struct{ servers, weight, joining int }{{3, 1, 1}, {10, 1, 1}, {10, 1, 3}, {10, 4, 4}, {25, 2, 1}} {
		t.Run(fmt.Sprintf("%d of %d, one of %d", tc.servers, tc.weight, tc.joining), func(t *testing.T) {
			spec := Spec{Method: hashes["consistent"]}
			for i := range tc.servers {
				spec.Servers = append(spec.Servers, named(i, tc.weight))
			}
			l := newLab(t, spec)
			before := placement(l)
			total := 0
			for k := range joiners {
				more := spec
				joiner := named(1000+k, tc.joining)
				more.Servers = append(spec.Servers[:len(spec.Servers):len(spec.Servers)], joiner)
				l.swap(more)
				joined := placement(l)
				all, needless := moved(before, joined, joiner.Key.ID)
				if needless != 0 {
					t.Fatalf("%d keys moved that have nothing to do with the joiner", needless)
				}
				total += all
				l.swap(spec)
				if k > 0 {
					continue
				}
				if back, _ := moved(before, placement(l), ""); back != 0 {
					t.Fatalf("%d keys did not come back when it left", back)
				}
			}
			ideal := float64(stableKeys*tc.joining) / float64(tc.servers*tc.weight+tc.joining)
			if mean := float64(total) / joiners; mean > movedAtMost*ideal || mean < ideal/movedAtMost {
				t.Errorf("%.1f keys moved, the ideal is %.1f", mean, ideal)
			}
		})
	}
}

// TestDownKeepsItsPoints: while a server is down, failed or full, only its own keys are elsewhere.
func TestDownKeepsItsPoints(t *testing.T) {
	for _, name := range []string{"consistent", "hash"} {
		const servers = 5
		spec := Spec{Method: hashes[name]}
		for i := range servers {
			spec.Servers = append(spec.Servers, named(i, 1))
		}
		l := newLab(t, spec)
		before := placement(l)
		for i := range spec.Servers {
			one := spec
			one.Servers = append([]Server(nil), spec.Servers...)
			one.Servers[i].Down = true
			l.swap(one)
			if _, needless := moved(before, placement(l), one.Servers[i].Key.ID); needless != 0 {
				t.Errorf("%s: %d keys of others moved", name, needless)
			}
		}
	}
}

// TestPlainHashIsNotStable is what the consistent one is for; it shows that these tests can tell the difference.
func TestPlainHashIsNotStable(t *testing.T) {
	spec := Spec{Method: hashes["hash"]}
	for i := range 10 {
		spec.Servers = append(spec.Servers, named(i, 1))
	}
	l := newLab(t, spec)
	before := placement(l)
	spec.Servers = append(spec.Servers, named(1000, 1))
	l.swap(spec)
	if all, needless := moved(before, placement(l), spec.Servers[10].Key.ID); all < stableKeys/2 || needless == 0 {
		t.Errorf("only %d keys moved, %d of others", all, needless)
	}
}
