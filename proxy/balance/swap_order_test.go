package balance

import (
	"strings"
	"testing"
)

// with gives a server another weight.
func with(s Server, weight int) Server {
	s.Weight = weight
	return s
}

// at gives it another address.
func at(s Server, addr string) Server {
	s.Addr = addr
	return s
}

// again is another process of the instance.
func again(s Server) Server {
	s.Incarnation++
	return s
}

// forgiving may fail twice per window; a failure costs half its weight.
func forgiving(s Server) Server {
	s.MaxFails = 2
	return s
}

// twin is the second server at one address.
func twin(s Server) Server {
	s.Key.Ordinal = 1
	return s
}

// TestOrderOverSwaps is the order of picks before and after a change of the topology. Upper case is an attempt that
// fails and is not tried again.
func TestOrderOverSwaps(t *testing.T) {
	a, b, c, d := server("a", 1), server("b", 1), server("c", 1), server("d", 1)
	for _, tc := range []struct {
		name    string
		servers []Server
		before  string
		next    []Server
		after   string
	}{
		// The rotation at the swap stands behind each: current weights of a, b, … as they become.
		{"10:1 to 1:1 at the start of a cycle", []Server{with(a, 10), b}, "", []Server{a, b}, "abababab"},                                       // 0 0
		{"10:1 to 1:1 in mid cycle", []Server{with(a, 10), b}, "aaa", []Server{a, b}, "bbababab"},                                               // -3 3: 0 3
		{"10:1 to 1:1 before b's turn", []Server{with(a, 10), b}, "aaaaa", []Server{a, b}, "bbbabababa"},                                        // -5 5: 0 5
		{"1:1 to 10:1 after a's turn", []Server{a, b}, "a", []Server{with(a, 10), b}, "baaaaaaaaaabaaaaaa"},                                     // -1 1: -10 1
		{"100:100 to 1:1 in mid cycle", []Server{with(a, 100), with(b, 100)}, "aba", []Server{a, b}, "babababa"},                                // -100 100: -1 1
		{"1:1 to 100:100 in mid cycle", []Server{a, b}, "aba", []Server{with(a, 100), with(b, 100)}, "babababa"},                                // -1 1: -100 100
		{"10:1 to 1:1 after failures", []Server{forgiving(with(a, 10)), b}, "A", []Server{forgiving(a), b}, "babababa"},                         // ew 5: 1
		{"10:1 to 20:1 after failures", []Server{forgiving(with(a, 10)), b}, "A", []Server{forgiving(with(a, 20)), b}, "aabaaaaaaaaaaaaaabaaa"}, // ew 5 stays
		{"a joiner is last and moves no tie", []Server{a, b}, "a", []Server{a, b, c}, "bcabcabc"},                                               // -1 1 0
		{"a leaver takes its place with it", []Server{a, b, c}, "ab", []Server{a, c}, "ccacac"},                                                 // -1 . 2
		{"a moved instance keeps its place", []Server{with(a, 5), b, c}, "aab", []Server{at(with(a, 5), "new:80"), b, c}, "acaaaab"},            // as if nothing happened
		{"so does one started again", []Server{with(a, 5), b, c}, "aab", []Server{again(with(a, 5)), b, c}, "acaaaab"},
		{"moved and heavier", []Server{a, b}, "a", []Server{at(with(a, 2), "new:80"), b}, "baabaaba"}, // -2 1
		{"one of two at an address leaves", []Server{a, twin(a), b}, "aa", []Server{a, b}, "bbabab"},  // -1 . 2
		{"a second one at the address", []Server{a, b}, "a", []Server{a, b, twin(a)}, "baabaaba"},     // joins as last
		{"order of declaration changes", []Server{a, b, c, d}, "a", []Server{d, c, b, a}, "dcbdcbad"}, // ties go to the new order
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t, Spec{Servers: tc.servers})
			if got := l.run(tc.before); got != tc.before {
				t.Fatalf("before: %s, want %s", got, tc.before)
			}
			l.swap(Spec{Servers: tc.next})
			if got := l.run(tc.after); got != tc.after {
				t.Errorf("after: %s, want %s", got, tc.after)
			}
		})
	}
}

// run makes a request for each letter, failing the attempt when it is upper case, and gives who was picked.
func (l *lab) run(script string) string {
	var got strings.Builder
	for _, letter := range script {
		p, id := l.open(nil)
		if letter < 'a' {
			p.End(Broken)
			id = strings.ToUpper(id)
		} else {
			p.End(Succeeded)
		}
		got.WriteString(id)
	}
	return got.String()
}

// TestOneInstanceInMainAndBackup is two peers: each has its own rotation, failures and attempts, and one may leave.
func TestOneInstanceInMainAndBackup(t *testing.T) {
	a, b := server("a", 1), server("b", 1)
	both := Spec{Servers: []Server{a, b, backup(a)}}
	l := newLab(t, both)
	if got := l.run("aBA"); got != "aBA" {
		t.Fatalf("while main serves: %s", got)
	}
	p, id := l.open(nil)
	if id != "a" || !p.Peer().Backup() {
		t.Fatalf("main has failed, its backup has not: %q", id)
	}
	l.swap(Spec{Servers: []Server{b, backup(a)}})
	if l.g.peers[1] != p.Peer() || l.g.peers[1].conns != 1 {
		t.Error("a left main; the backup one is still itself")
	}
	l.swap(both)
	p.End(Succeeded)
	if s := l.g.Snapshot(); s[0].Fails != 0 || s[0].Conns != 0 || s[1].Fails != 1 || s[2].Conns != 0 {
		t.Errorf("a is new in main, b is not: %+v", s)
	}
}

// TestGoneInEveryOldTable: requests that began before any of several swaps are never given who has left since.
func TestGoneInEveryOldTable(t *testing.T) {
	for _, m := range append(everyMethod, MethodSpec{Name: "fewest"}) {
		t.Run(m.String(), func(t *testing.T) {
			servers := []Server{server("a", 3), server("b", 1), server("c", 2), backup(server("d", 1)), backup(server("e", 1))}
			l := newLab(t, Spec{Servers: servers, Method: m})
			tables := []*Group{l.g}
			var open []*Pass
			for len(servers) > 1 {
				for _, g := range tables {
					p := g.Begin(NoLimit, from("10.0.0.7"))
					p.Pick()
					open = append(open, &p)
				}
				servers = append([]Server{}, servers[:len(servers)-1]...)
				l.swap(Spec{Servers: servers, Method: m})
				tables = append(tables, l.g)
			}
			for _, p := range open {
				for p.End(Broken); ; p.End(Broken) {
					peer, _ := p.Pick()
					if peer == nil {
						break
					}
					if peer.ID() != "a" {
						t.Fatalf("%s has left, and was given", peer.ID())
					}
				}
			}
			for _, g := range tables {
				for _, p := range g.peers {
					if p.conns != 0 {
						t.Errorf("%s has %d attempts open", p.ID(), p.conns)
					}
				}
			}
		})
	}
}
