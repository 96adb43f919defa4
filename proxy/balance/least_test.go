package balance

import (
	"testing"
	"time"
)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// TestLeastConnTies: peers that are equally busy share by their weights, and only their weights move.
func TestLeastConnTies(t *testing.T) {
	l := newLab(t, Spec{Method: MethodSpec{Name: "least_conn"}, Servers: []Server{server("a", 2), server("b", 1), server("c", 1)}})
	if ids := l.each(8); ids != "abcaabca" {
		t.Errorf("idle, it is round robin: %s", ids)
	}
	held, id := l.open(nil)
	if id != "a" {
		t.Fatal(id)
	}
	before := l.g.Snapshot()
	if ids := l.each(4); ids != "bcbc" {
		t.Errorf("while a is busy: %s", ids)
	}
	after := l.g.Snapshot()
	if before[0].Current != after[0].Current || before[1].Current != after[1].Current {
		t.Errorf("b and c went around twice, a took no part: %+v -> %+v", before, after)
	}
	held.End(Succeeded)
}

// TestLeastConnWeighsConns: one attempt at weight 1 counts as two at weight 2.
func TestLeastConnWeighsConns(t *testing.T) {
	l := newLab(t, Spec{Method: MethodSpec{Name: "least_conn"}, Servers: []Server{server("a", 3), server("b", 1)}})
	ids := ""
	for range 12 {
		_, id := l.open(nil)
		ids += id
	}
	s := l.g.Snapshot()
	if s[0].Conns != 9 || s[1].Conns != 3 {
		t.Errorf("%s: %d and %d open, want 3:1", ids, s[0].Conns, s[1].Conns)
	}
}

func TestAverage(t *testing.T) {
	for _, tc := range []struct{ avg, sample, want int64 }{
		{0, 37, 37},      // the first sample as it is
		{37, 37, 37},     //
		{100, 0, 95},     // a twentieth of the way
		{100, 110, 101},  // 100.5 is rounded up
		{100, 109, 100},  // 100.45 down
		{1, 0, 1},        // 0.95 rounds up: an average does not come to 0
		{30, 430, 50},    //
		{0, 0, 0},        // nothing measured is nothing known
		{5000, 60, 4753}, //
	} {
		if got := average(tc.avg, tc.sample); got != tc.want {
			t.Errorf("%d towards %d: %d, want %d", tc.avg, tc.sample, got, tc.want)
		}
	}
}

// fast and slow are servers that never wear off in these tests.
func fastAndSlow() []Server {
	a, b := server("a", 1), server("b", 1)
	a.FailTimeout, b.FailTimeout = time.Hour, time.Hour
	return []Server{a, b}
}

// TestLeastTimePrefersTheFaster, by the time that it was told to look at, and not before both are known.
func TestLeastTimePrefersTheFaster(t *testing.T) {
	for _, tc := range []struct {
		name     string
		lastByte bool
		want     string
	}{{"head", false, "abaaa"}, {"whole answer", true, "abbbb"}} {
		l := newLab(t, Spec{Method: MethodSpec{Name: "least_time", LastByte: tc.lastByte}, Servers: fastAndSlow()})
		ids := ""
		for range 5 {
			p, id := l.open(nil)
			head, body := ms(30), ms(200)
			if id == "b" {
				head, body = ms(90), ms(10)
			}
			l.wait(head)
			p.Header()
			l.wait(body)
			p.End(Succeeded)
			ids += id
		}
		if ids != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, ids, tc.want)
		}
	}
}

// TestLeastTimeCountsWhatClientsGot: failures, and answers that were left for another attempt, are no samples.
func TestLeastTimeCountsWhatClientsGot(t *testing.T) {
	l := newLab(t, Spec{Method: MethodSpec{Name: "least_time"}, Servers: fastAndSlow()})
	p, _ := l.open(nil)
	l.wait(ms(300))
	p.End(Succeeded) // without Header: left
	q, _ := l.open(nil)
	l.wait(ms(300))
	q.End(Undone)
	for _, peer := range l.g.peers {
		if peer.times != (times{}) {
			t.Errorf("%s: %+v", peer.ID(), peer.times)
		}
	}
}

func TestEstimate(t *testing.T) {
	for _, tc := range []struct {
		name         string
		times        times
		idle, window int64
		inflight     bool
		want         int
	}{
		{"unknown", times{}, 0, 10, false, 20},
		{"just below the grain", times{header: 19}, 0, 10, false, 20},
		{"on it", times{header: 20}, 0, 10, false, 40},
		{"longest", times{header: 5000}, 0, 10, false, 5020},
		{"beyond", times{header: 5001}, 0, 10, false, 5000},
		{"idle for the window", times{header: 200}, 10, 10, false, 220},
		{"longer", times{header: 200}, 11, 10, false, 120},
		{"twice", times{header: 200}, 22, 10, false, 60},
		{"for ages", times{header: 5000}, 1 << 40, 0, false, 20},
		{"in flight, not looked at", times{header: 30, unanswered: 1, openedAt: 9_500}, 0, 10, false, 40},
		{"in flight for 500 ms", times{header: 30, unanswered: 1, openedAt: 9_500}, 0, 10, true, 520},
		{"two, for 300 and 100 ms", times{header: 30, unanswered: 2, openedAt: 9_700 + 9_900}, 0, 10, true, 220},
		{"in flight, seen before", times{inflight: 100, unanswered: 1, openedAt: 9_500}, 0, 10, true, 140},
		{"in flight for less than usual", times{header: 300, unanswered: 1, openedAt: 9_990}, 0, 10, true, 320},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &Peer{times: tc.times}
			p.window = tc.window
			now := moment{second: tc.idle, milli: 10_000}
			if got := (leastTime{inflight: tc.inflight}).estimate(p, now); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// TestInFlightIsCounted until the head or the last byte, by what the method looks at, and never left over.
func TestInFlightIsCounted(t *testing.T) {
	for _, lastByte := range []bool{false, true} {
		l := newLab(t, Spec{Method: MethodSpec{Name: "least_time", LastByte: lastByte, Inflight: true}, Servers: fastAndSlow()})
		a := &l.g.peers[0].times
		p, _ := l.open(nil)
		l.wait(ms(40))
		if a.unanswered != 1 || a.age(l.now/1e6) != 40 {
			t.Errorf("open: %+v", *a)
		}
		p.Header()
		if counted := a.unanswered == 1; counted != lastByte {
			t.Errorf("last byte %v, after the head: %+v", lastByte, *a)
		}
		p.End(Succeeded)
		q, _ := l.open(nil)
		q.End(Broken)
		for _, peer := range l.g.peers {
			if peer.times.unanswered != 0 || peer.times.openedAt != 0 {
				t.Errorf("left over: %+v", peer.times)
			}
		}
	}
}

// TestAveragesSurviveASwap with their peer, and not its successor.
func TestAveragesSurviveASwap(t *testing.T) {
	spec := Spec{Method: MethodSpec{Name: "least_time"}, Servers: fastAndSlow()}
	l := newLab(t, spec)
	l.answer(nil, ms(70), ms(80))
	l.answer(nil, 0, 0) // b
	l.g.peers[1].times.header = 1000
	l.answer(nil, ms(90), ms(120))
	spec.Servers = append(fastAndSlow(), server("c", 1))
	l.swap(spec)
	if got := l.g.peers[0].times; got.header != 71 || got.response != 82 {
		t.Errorf("after a join: %+v", got)
	}
	spec.Servers = fastAndSlow()
	spec.Servers[0].Incarnation++
	l.swap(spec)
	if got := l.g.peers[0].times; got != (times{}) {
		t.Errorf("a new process: %+v", got)
	}
}
