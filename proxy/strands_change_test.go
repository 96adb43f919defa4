package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// shifting is a proxy whose published upstreams come and go while requests walk them. An upstream's servers have addresses
// of its own: 10.0.U.N.
type shifting struct {
	t       *testing.T
	p       *Proxy
	mu      sync.Mutex
	rnd     *rand.Rand
	now     atomic.Int64
	version int64
	alone   bool // one request at a time: an attempt may change the topology
}

func newShifting(t *testing.T, seed uint64, alone bool) *shifting {
	t.Helper()
	s := &shifting{t: t, rnd: rand.New(rand.NewPCG(seed, 7)), alone: alone}
	s.now.Store(1_800_000_000e9)
	p, err := New(Config{Clock: s.now.Load, Rand: s.random, Opener: func(site.Wire) forward.Opener { return s }})
	if err != nil {
		t.Fatal(err)
	}
	s.p = p
	w := &world{t: t, p: p}
	w.mustLoad(true, `server { listen 8080; location / { add_header X-Path $upstrand_path; proxy_next_upstream error; proxy_pass http://$upstrand_s; } }`)
	s.change()
	return s
}

func (s *shifting) close() { _ = s.p.Shutdown(context.Background()) }

// chance is a number below n.
func (s *shifting) chance(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.IntN(n)
}

// random is the proxy's source: the same seed is the same schedule.
func (s *shifting) random() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.Uint64()
}

// change publishes other upstreams a to h, with none to three servers each; s goes through a to d, then e to h.
func (s *shifting) change() {
	c := &topology.Config{}
	for u := range 8 {
		if s.chance(3) == 0 {
			continue
		}
		up := topology.Upstream{Name: string(rune('a' + u)), Origin: topology.Declared, Rank: u + 1}
		for n := range s.chance(4) {
			up.Directives = append(up.Directives, topology.Directive{"server", fmt.Sprintf("10.0.%d.%d:80", u, 2*n+s.chance(2)), "max_fails=0"})
		}
		c.Upstreams = append(c.Upstreams, up)
	}
	order := topology.Directive{"order", "per_request"}
	if s.chance(2) == 0 {
		order = append(order, "start_random")
	}
	c.Upstrands = []topology.Upstrand{{Name: "s", Origin: topology.Declared, Rank: 20, Directives: []topology.Directive{
		{"upstream", "~^[abcd]$", fmt.Sprintf("blacklist_interval=%d", s.chance(2))}, {"upstream", "~^[efgh]$", "backup"}, order,
		{"next_upstream_statuses", "error", "5xx"}, {"next_upstream_timeout", "1s"},
	}}}
	version := atomic.AddInt64(&s.version, 1)
	if err := s.p.Apply(&topology.Topology{Version: version, Epoch: 1, Config: c}); err != nil {
		s.t.Error(err)
	}
}

// journey is one request and its client.
type journey struct {
	began  int64
	asked  []string // addresses
	stop   string   // upstream of the last attempt
	status int
	heads  int
	body   strings.Builder
	ended  bool
	wrong  []string
}

type journeyKey struct{}

func (s *shifting) Open(ctx context.Context, p *balance.Peer, _ bool) forward.Backend {
	j := ctx.Value(journeyKey{}).(*journey)
	for _, a := range j.asked {
		if a == p.Addr() {
			j.wrong = append(j.wrong, fmt.Sprintf("%s is asked again: %v", a, j.asked))
		}
	}
	j.asked = append(j.asked, p.Addr())
	upstream := p.Addr()[:strings.LastIndexByte(p.Addr(), '.')]
	switch waited := s.now.Load() - j.began; {
	case j.stop == "":
		j.began = s.now.Load()
	case upstream != j.stop && waited >= int64(time.Second) && s.alone:
		j.wrong = append(j.wrong, fmt.Sprintf("a stop after %v", time.Duration(waited)))
	}
	j.stop = upstream
	return &shiftingPeer{s: s, addr: p.Addr()}
}

type shiftingPeer struct {
	s    *shifting
	addr string
}

func (b *shiftingPeer) Send(*forward.Request) error {
	if b.s.alone && b.s.chance(3) == 0 {
		b.s.change()
	}
	b.s.now.Add(int64(b.s.chance(400)) * int64(time.Millisecond))
	if b.s.chance(3) == 0 {
		return &forward.Error{Class: forward.OnError, Err: errors.New("closed")}
	}
	return nil
}

func (b *shiftingPeer) Head() (int, []forward.Field, error) {
	return []int{200, 500, 503, 404}[b.s.chance(4)], nil, nil
}

func (b *shiftingPeer) Body() forward.Source {
	return &shiftingBody{strings.NewReader("from " + b.addr)}
}

func (b *shiftingPeer) Sent() forward.Progress              { return forward.Progress{Connected: true, Sent: true} }
func (b *shiftingPeer) Tunnel() (io.ReadWriteCloser, error) { return nil, errors.New("no tunnel") }
func (b *shiftingPeer) Close()                              {}

type shiftingBody struct{ *strings.Reader }

func (*shiftingBody) Trailer() []forward.Field { return nil }
func (*shiftingBody) Rewind() error            { return errors.New("an answer") }
func (*shiftingBody) Rewindable() bool         { return false }

func (j *journey) Inform(int, []forward.Field) error { return nil }
func (j *journey) Head(status int, _ []forward.Field, _ int64) error {
	j.status = status
	j.heads++
	return nil
}
func (j *journey) Write(b []byte) error                { j.body.Write(b); return nil }
func (j *journey) End([]forward.Field) error           { j.ended = true; return nil }
func (j *journey) Abort()                              { j.wrong = append(j.wrong, "cut") }
func (j *journey) Tunnel() (io.ReadWriteCloser, error) { return nil, errors.New("no tunnel") }

// ask serves one request and checks what its client got.
func (s *shifting) ask() {
	j := &journey{began: s.now.Load()}
	r := &forward.Request{Method: []byte([]string{"GET", "POST"}[s.chance(2)]), Target: []byte("/"), Authority: []byte("t"), Proto: "HTTP/1.1",
		Remote: netip.MustParseAddr("127.0.0.1"), Local: netip.MustParseAddrPort("127.0.0.1:8080")}
	s.p.Handle(context.WithValue(context.Background(), journeyKey{}, j), r, j)
	body := j.body.String()
	switch {
	case j.heads != 1 || !j.ended:
		j.wrong = append(j.wrong, fmt.Sprintf("%d answers, ended %v", j.heads, j.ended))
	case strings.HasPrefix(body, "from ") && (len(j.asked) == 0 || body != "from "+j.asked[len(j.asked)-1]):
		j.wrong = append(j.wrong, fmt.Sprintf("%q is not the last one's of %v", body, j.asked))
	case !strings.HasPrefix(body, "from ") && j.status != 502:
		j.wrong = append(j.wrong, fmt.Sprintf("%d %q", j.status, body))
	}
	for _, w := range j.wrong {
		s.t.Error(w)
	}
}

// TestWalksWhileUpstreamsChange: upstreams appear, vanish and are renamed in the middle of walks, by schedules of chance. A
// walk ends, asks nobody twice, begins no stop when its time is up, and its client gets one whole answer.
func TestWalksWhileUpstreamsChange(t *testing.T) {
	seeds := uint64(1000)
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		s := newShifting(t, seed, true)
		for range 5 {
			s.ask()
		}
		s.close()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestWalksAndChangesSideBySide does the same with all at once, for the race detector.
func TestWalksAndChangesSideBySide(t *testing.T) {
	s := newShifting(t, 1, false)
	defer s.close()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				s.ask()
			}
		})
	}
	for range 60 {
		s.change()
	}
	all.Wait()
}
