package balance

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestMethodsAllocateNothing per pick, retries, answers and session lookups included.
func TestMethodsAllocateNothing(t *testing.T) {
	methods := map[string]MethodSpec{"least_conn": {Name: "least_conn"}, "least_time": {Name: "least_time", Inflight: true}}
	for name, m := range hashes {
		methods[name] = m
	}
	for name, m := range methods {
		for _, kind := range []string{"", "cookie", "learn"} {
			servers := many(20)
			servers[3].Down = true // rounds beyond the first happen
			l := newLab(t, Spec{Method: m, Servers: servers, Sticky: StickySpec{Kind: kind, Timeout: time.Minute}})
			ask := &Ask{Client: netip.MustParseAddr("192.0.2.7"), Key: []byte("a key"), Session: []byte(l.g.peers[5].Route())}
			made := []byte("a session")
			once := func() {
				p := l.g.Begin(NoLimit, ask)
				for range 3 {
					p.Pick()
					p.Learn(made)
					p.Header()
					p.End(Succeeded)
				}
			}
			once() // scratch is made at the first pick
			if n := testing.AllocsPerRun(100, once); n != 0 {
				t.Errorf("%s, sticky %q: %v allocations in three picks", name, kind, n)
			}
		}
	}
}

func TestUnknownMethod(t *testing.T) {
	_, err := NewGroup("u", Env{}, Spec{Method: MethodSpec{Name: "fairest"}})
	for _, part := range []string{`method "fairest" is unknown; allowed: none for round robin, `, ", least_conn, least_time, random"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %s", err, part)
		}
	}
}
