package balance

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"
)

func TestSplitText(t *testing.T) {
	for text, want := range map[string][2]string{
		"127.0.0.1:80": {"127.0.0.1", "80"},
		"127.0.0.1":    {"127.0.0.1", ""},
		"localhost:1a": {"localhost:1a", ""},
		"[::1]:8080":   {"[::1]", "8080"},
		"[::1]":        {"[::1]", ""},
		"::1":          {":", "1"},
		"8080":         {"8080", ""},
		"unix:/a.sock": {"unix:/a.sock", ""},
		"a:":           {"a", ""},
		"":             {"", ""},
	} {
		if host, port := splitText(text); host != want[0] || port != want[1] {
			t.Errorf("%q: %q and %q", text, host, port)
		}
	}
}

// TestRing compares a ring with what its definition says, computed plainly.
func TestRing(t *testing.T) {
	servers := []Server{{Text: "a:1", Weight: 3}, {Text: "b:2"}, {Text: "a:1"}, {Addr: "10.0.0.1:80"}}
	want := map[uint32]int32{}
	for i, s := range servers {
		host, port := splitText(s.ringText())
		var last [4]byte
		for range 160 * max(s.Weight, 1) {
			hash := crc32.ChecksumIEEE(append([]byte(host+"\x00"+port), last[:]...))
			if _, taken := want[hash]; !taken {
				want[hash] = int32(i)
			}
			binary.LittleEndian.PutUint32(last[:], hash)
		}
	}
	r := newRing(servers)
	if !slices.IsSorted(r.points) || len(r.points) != len(want) || len(r.owner) != len(want) {
		t.Fatalf("%d points and %d owners in order, want %d", len(r.points), len(r.owner), len(want))
	}
	for i, p := range r.points {
		if owner, known := want[p]; !known || owner != r.owner[i] {
			t.Fatalf("point %d is of %d, want %d (%v)", p, r.owner[i], owner, known)
		}
		if at := r.find(p); at != i {
			t.Fatalf("point %d found at %d, is at %d", p, at, i)
		}
	}
	if last := r.points[len(r.points)-1]; r.find(last+1) != 0 {
		t.Error("behind the last point comes the first")
	}
	if want := []int32{2, -1, -1, -1}; !slices.Equal(r.next, want) {
		t.Errorf("the next ones of the same text: %v, want %v", r.next, want)
	}
}

// TestFirstDeclaredOwnsAPoint: two texts can meet in a point. The sort must keep the order in which they came.
func TestFirstDeclaredOwnsAPoint(t *testing.T) {
	points := make([]uint64, 0, 3000)
	for i := range uint64(3000) {
		points = append(points, (i*7919%100)<<41|i)
	}
	sorted := sortPoints(slices.Clone(points))
	slices.SortStableFunc(points, func(a, b uint64) int { return int(a>>32) - int(b>>32) })
	if !slices.Equal(sorted, points) {
		t.Error("not sorted by the upper half, or equal ones out of their order")
	}
}

// TestEqualTextsShareAPoint by round robin, and nobody else's weight moves.
func TestEqualTextsShareAPoint(t *testing.T) {
	a1, a2 := server("a", 2), server("a", 1)
	a2.Key.Ordinal = 1
	a1.Text, a2.Text = "a:80", "a:80"
	l := newLab(t, Spec{Method: hashes["consistent"], Servers: []Server{a1, server("b", 1), a2}})
	shared := ""
	for i := 0; shared == ""; i++ {
		key := fmt.Sprint("k", i)
		if l.pick(keyed(key)) == "a" {
			shared = key
		}
	}
	before := l.g.Snapshot()
	conns := [3]int{}
	for range 6 {
		p, id := l.open(keyed(shared))
		if id != "a" {
			t.Fatal(id)
		}
		for i, s := range l.g.Snapshot() {
			conns[i] += s.Conns
		}
		p.End(Succeeded)
	}
	if conns != [3]int{4, 0, 2} {
		t.Errorf("shares of 2:1 are %v", conns)
	}
	if after := l.g.Snapshot(); before[1].Current != after[1].Current || before[0].Current != after[0].Current {
		t.Errorf("two whole turns: %+v -> %+v", before, after)
	}
}

// TestRingStays when nothing of it changed, and is another one when something did.
func TestRingStays(t *testing.T) {
	servers := []Server{server("a", 1), server("b", 1)}
	spec := Spec{Method: hashes["consistent"], Servers: servers}
	l := newLab(t, spec)
	ring := l.g.method.(*ketama).ring
	spec.Servers = []Server{down(servers[0]), servers[1]}
	l.swap(spec)
	if l.g.method.(*ketama).ring != ring {
		t.Error("a server that is down keeps its points")
	}
	spec.Servers = []Server{servers[0], server("b", 2)}
	l.swap(spec)
	if got := len(l.g.method.(*ketama).ring.points); got != 480 {
		t.Errorf("%d points after a weight of 1 became 2", got)
	}
	spec.Servers = []Server{servers[1], servers[0]}
	l.swap(spec)
	if m := l.g.method.(*ketama); m.main[0].Key.ID != "b" {
		t.Error("the ring must point at the places of its own group")
	}
}

// BenchmarkRing makes a ring of a thousand servers, as each join and leave among them does.
func BenchmarkRing(b *testing.B) {
	servers := make([]Server, 1000)
	for i := range servers {
		servers[i] = server(fmt.Sprintf("10.0.%d.%d", i/250, i%250), 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		newRing(servers)
	}
}
