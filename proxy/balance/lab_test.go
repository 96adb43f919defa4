package balance

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// lab is a group on a clock that the test moves.
type lab struct {
	t   testing.TB
	g   *Group
	now int64
}

func newLab(t testing.TB, spec Spec) *lab {
	t.Helper()
	l := &lab{t: t, now: time.Unix(1_800_000_000, 0).UnixNano()}
	g, err := NewGroup("u", Env{Clock: func() int64 { return l.now }, Rand: rand.New(rand.NewPCG(1, 2)).Uint64}, spec)
	if err != nil {
		t.Fatal(err)
	}
	l.g = g
	return l
}

func (l *lab) wait(d time.Duration) { l.now += int64(d) }

// swap puts a changed spec in force.
func (l *lab) swap(spec Spec) {
	l.t.Helper()
	c, err := l.g.Prepare(spec)
	if err != nil {
		l.t.Fatal(err)
	}
	if c != nil {
		Swap([]*Change{c}, func() {})
		l.g = c.Next
	}
}

// open begins a request and leaves its attempt open; the id is empty when nobody could be given.
func (l *lab) open(ask *Ask) (*Pass, string) {
	p := l.g.Begin(NoLimit, ask)
	return &p, pickID(&p)
}

func pickID(p *Pass) string {
	if peer, _ := p.Pick(); peer != nil {
		return peer.ID()
	}
	return ""
}

// answer makes a request whose answer takes so long to its head and to its end.
func (l *lab) answer(ask *Ask, head, whole time.Duration) string {
	p, id := l.open(ask)
	l.wait(head)
	p.Header()
	l.wait(whole - head)
	p.End(Succeeded)
	return id
}

// pick makes a request that is answered at once.
func (l *lab) pick(ask *Ask) string { return l.answer(ask, 0, 0) }

// each makes requests and gives the ids in a row.
func (l *lab) each(n int) (ids string) {
	for range n {
		ids += l.pick(nil)
	}
	return ids
}

func keyed(key string) *Ask { return &Ask{Key: []byte(key)} }

func from(client string) *Ask { return &Ask{Client: netip.MustParseAddr(client)} }

func of(session string) *Ask { return &Ask{Session: []byte(session)} }

// backup is the server as a backup one.
func backup(s Server) Server {
	s.Key.Backup = true
	return s
}

func down(s Server) Server {
	s.Down = true
	return s
}
