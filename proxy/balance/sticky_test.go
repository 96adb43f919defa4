package balance

import "testing"

func routed(s Server, route string) Server {
	s.Route = route
	return s
}

func drained(s Server) Server {
	s.Drain = true
	return s
}

func TestRoute(t *testing.T) {
	a, b := server("a", 1), server("b", 1)
	a.Addr = "127.0.0.1:18001"
	spec := Spec{Servers: []Server{a, routed(b, "east")}}
	l := newLab(t, spec)
	const digested = "4fe29bfd9c8f409267d4e1249c1c9c4d"
	for i, want := range []string{digested, "east"} {
		if got := l.g.peers[i].Route(); got != want {
			t.Errorf("route %s, want %s", got, want)
		}
	}
	l.swap(Spec{Servers: []Server{routed(a, "west"), b}})
	if got := l.g.peers[0].Route(); got != "west" {
		t.Errorf("after the route was set: %s", got)
	}
	if got := l.g.peers[1].Route(); got != digest("b:80") {
		t.Errorf("after the route was taken away: %s", got)
	}
}

// TestPinned is who is given to a session bound to b, and to whom the method turns otherwise.
func TestPinned(t *testing.T) {
	full := routed(server("b", 1), "r")
	full.MaxConns = 1
	a, b := routed(server("a", 1), "q"), routed(server("b", 1), "r")
	for _, tc := range []struct {
		name    string
		servers []Server
		session string
		want    string
	}{
		{"its peer", []Server{a, b}, "r", "b"},
		{"drained, it still takes its sessions", []Server{a, drained(b)}, "r", "b"},
		{"down", []Server{a, down(b)}, "r", "a"},
		{"unknown", []Server{a, b}, "z", "a"},
		{"none", []Server{a, b}, "", "a"},
		{"a backup server while main ones serve", []Server{a, backup(b)}, "r", "a"},
		{"a backup server when nobody else does", []Server{down(a), backup(server("x", 5)), backup(b)}, "r", "b"},
		{"the first of two with the route", []Server{a, b, routed(server("c", 1), "r")}, "r", "b"},
		{"the second, the first is down", []Server{a, down(b), routed(server("c", 1), "r")}, "r", "c"},
		{"a single peer, drained", []Server{drained(b)}, "r", "b"},
		{"a single peer, drained, of others", []Server{drained(b)}, "q", ""},
	} {
		for _, method := range []string{"", "least_conn", "random"} {
			t.Run(tc.name+"/"+method, func(t *testing.T) {
				l := newLab(t, Spec{Servers: tc.servers, Sticky: StickySpec{Kind: "cookie"}, Method: MethodSpec{Name: method}})
				got := ""
				if p, id := l.open(of(tc.session)); id != "" {
					got = id
					p.End(Succeeded)
				}
				drawn := method == "random" && tc.want == "a" && len(tc.servers) == 2 && got == "b"
				if got != tc.want && !drawn {
					t.Errorf("%q, want %q", got, tc.want)
				}
			})
		}
	}
	l := newLab(t, Spec{Servers: []Server{a, full}, Sticky: StickySpec{Kind: "route"}})
	_, first := l.open(of("r"))
	_, second := l.open(of("r"))
	if first+second != "ba" {
		t.Errorf("the second finds b full: %s", first+second)
	}
}

// TestPinnedIsAskedAtEachTry, of the part of the group that the request is in.
func TestPinnedIsAskedAtEachTry(t *testing.T) {
	l := newLab(t, Spec{Sticky: StickySpec{Kind: "cookie"}, Servers: []Server{server("a", 1),
		backup(server("x", 9)), backup(routed(server("y", 1), "r"))}})
	p, first := l.open(of("r"))
	p.End(Broken)
	second := pickID(p)
	p.End(Broken)
	if ids := first + second + pickID(p); ids != "ayx" {
		t.Errorf("%s, want a, then y by its session, then x", ids)
	}
}

// TestPinnedPays under round robin, with a limit to the debt, and under nothing else.
func TestPinnedPays(t *testing.T) {
	servers := []Server{routed(server("a", 2), "r"), server("b", 3)}
	spec := Spec{Sticky: StickySpec{Kind: "cookie"}, Servers: servers}
	l := newLab(t, spec)
	debts := []int{-3, -3, -3} // a is at 2 - 5; at minus b's weight it pays no more
	for i, want := range debts {
		if l.pick(of("r")) != "a" || l.g.peers[0].current != want {
			t.Errorf("turn %d: debt %d, want %d", i, l.g.peers[0].current, want)
		}
	}
	spec.Method.Name = "least_conn"
	l = newLab(t, spec)
	l.pick(of("r"))
	if l.g.peers[0].current != 0 || l.g.peers[1].current != 0 {
		t.Errorf("a pinned pick of least_conn moved weights: %+v", l.g.Snapshot())
	}
}
