package balance

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// hashes are the methods that map onto the main servers.
var hashes = map[string]MethodSpec{
	"ip_hash":    {Name: "ip_hash"},
	"hash":       {Name: "hash"},
	"consistent": {Name: "hash", Consistent: true},
	"random":     {Name: "random"},
	"random two": {Name: "random", Two: true},
}

func someAsk(r *rand.Rand) *Ask {
	ask := keyed(fmt.Sprint("k", r.Uint32()))
	ask.Client = netip.AddrFrom4([4]byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), 1})
	return ask
}

// TestSameAskSamePeer, whatever happened between, for those that are no matter of chance.
func TestSameAskSamePeer(t *testing.T) {
	for _, name := range []string{"ip_hash", "hash", "consistent"} {
		l := newLab(t, Spec{Method: hashes[name], Servers: []Server{server("a", 3), server("b", 2), server("c", 1)}})
		r := rand.New(rand.NewPCG(3, 4))
		count := map[string]int{}
		for range 300 {
			ask := someAsk(r)
			first := l.pick(ask)
			l.each(r.IntN(3))
			if again := l.pick(ask); again != first {
				t.Fatalf("%s: %s, then %s", name, first, again)
			}
			count[first]++
		}
		if len(count) != 3 || count["a"] < count["c"] {
			t.Errorf("%s: the shares are not those of 3:2:1: %v", name, count)
		}
	}
}

// TestPatienceEnds: when nobody that a method maps to can be given, round robin decides, up to the backup servers, and
// for the rest of the request.
func TestPatienceEnds(t *testing.T) {
	for name, spec := range hashes {
		l := newLab(t, Spec{Method: spec, Servers: []Server{down(server("a", 1)), down(server("b", 1)),
			backup(server("x", 1)), backup(server("y", 1))}})
		ask := someAsk(rand.New(rand.NewPCG(1, 1)))
		p, id := l.open(ask)
		p.End(Broken)
		if ids := id + pickID(p); ids != "xy" {
			t.Errorf("%s: the backup servers in their order, not %q", name, ids)
		}
		p.End(Broken)
		if id := pickID(p); id != "" {
			t.Errorf("%s: all were tried, and %s came", name, id)
		}
	}
}

// TestPatienceIsForTheWholeRequest: rejected candidates of earlier tries count too, and what comes after patience is
// round robin over those who are left.
func TestPatienceIsForTheWholeRequest(t *testing.T) {
	r := &Round{peers: make([]*Peer, 2), memo: Memo{Tries: patience - 1}}
	if r.unfit() || r.memo.giveUp() || r.unfit() || !r.memo.giveUp() || !r.unfit() {
		t.Errorf("patience ends at the rejection after %d: %+v", patience, r.memo)
	}
}

// TestOneMainServerIsRoundRobin: with a backup server beside it there is nothing to map.
func TestOneMainServerIsRoundRobin(t *testing.T) {
	for name, spec := range hashes {
		l := newLab(t, Spec{Method: spec, Servers: []Server{server("a", 1), backup(server("x", 1))}})
		if ids := l.each(2); ids != "aa" {
			t.Errorf("%s: %s", name, ids)
		}
	}
}

// TestRetriesGoOn: a request comes to every peer once, however it is mapped.
func TestRetriesGoOn(t *testing.T) {
	for name, spec := range hashes {
		l := newLab(t, Spec{Method: spec, Servers: many(12)})
		r := rand.New(rand.NewPCG(5, 6))
		for range 30 {
			p, id := l.open(someAsk(r))
			seen := map[string]bool{}
			for ; id != ""; id = pickID(p) {
				if seen[id] {
					t.Fatalf("%s: %s twice", name, id)
				}
				seen[id] = true
				p.End(Undone) // nobody is disabled for the next request
			}
			if len(seen) != 12 {
				t.Fatalf("%s: only %d of 12 peers were tried", name, len(seen))
			}
		}
	}
}

func TestClientNetwork(t *testing.T) {
	var one, other [16]byte
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.255", true},
		{"192.0.2.1", "192.0.3.1", false},
		{"192.0.2.1", "::ffff:192.0.2.9", true},
		{"2001:db8::1", "2001:db8::2", false},
		{"0.0.0.7", "", true}, // a client without an address
	} {
		b := &Ask{}
		if tc.b != "" {
			b = from(tc.b)
		}
		if same := string(clientNetwork(from(tc.a), &one)) == string(clientNetwork(b, &other)); same != tc.same {
			t.Errorf("%s and %q count alike: %v", tc.a, tc.b, same)
		}
	}
}

// TestRanges compares the lookup with walking down the list.
func TestRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		servers := make([]Server, 1+r.IntN(9))
		var walk []int
		for i := range servers {
			servers[i].Weight = r.IntN(5) // 0 counts as 1
			for range servers[i].weight() {
				walk = append(walk, i)
			}
		}
		ranges := newRanges(servers)
		if ranges.total != uint64(len(walk)) {
			t.Fatalf("total %d of %d", ranges.total, len(walk))
		}
		for x, want := range walk {
			if got := ranges.at(uint64(x)); got != want {
				t.Fatalf("%d of %v lies in %d, want %d", x, ranges.ends, got, want)
			}
		}
	}
}

// TestHashRounds checks the sums against values that were computed by another program (Python's zlib).
func TestHashRounds(t *testing.T) {
	m := (&keyHash{}).Build(many(3)).(*keyHash)
	for _, tc := range []struct {
		n    uint32
		key  string
		want uint32
	}{{0, "a", 26807}, {1, "a", 15665}, {12, "k70943", 15840}} {
		if got := m.round(tc.n, []byte(tc.key)); got != tc.want {
			t.Errorf("round %d of %s: %d, want %d", tc.n, tc.key, got, tc.want)
		}
	}
}
