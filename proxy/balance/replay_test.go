package balance_test

import (
	"context"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// TestVectors replays what a real nginx did, on a virtual clock, over the picks of this package and the decisions of
// the forwarding core. Backends are behaviours, a hanging one moves the clock by the read timeout.
func TestVectors(t *testing.T) {
	var skipped []string
	ran := 0
	for _, v := range loadVectors(t) {
		t.Run(v.theme+"/"+v.Name, func(t *testing.T) {
			if why := v.skipReason(); why != "" {
				skipped = append(skipped, v.theme+"/"+v.Name+": "+why)
				t.Skip(why)
			}
			ran++
			if rule := randomRules[v.Name]; rule != nil && !v.Deterministic {
				rule(t, v)
				return
			}
			newReplay(t, v, 1).run()
		})
	}
	t.Logf("%d cases replayed, %d skipped:\n%s", ran, len(skipped), strings.Join(skipped, "\n"))
}

// replay is a world for one case: a clock, groups, behaviours of backends.
type replay struct {
	t           *testing.T
	v           *vector
	now         atomic.Int64
	upstreams   map[string]*vectorUpstream
	groups      map[string]*balance.Group
	locations   []location
	mode        map[string]string
	readTimeout time.Duration
	open        map[string]*journey
}

func newReplay(t *testing.T, v *vector, seed uint64) *replay {
	r := &replay{t: t, v: v, groups: map[string]*balance.Group{}, upstreams: map[string]*vectorUpstream{}, mode: map[string]string{},
		readTimeout: 500 * time.Millisecond, open: map[string]*journey{}, locations: v.locations(t)}
	if v.ReadTimeout != "" {
		d, err := time.ParseDuration(v.ReadTimeout)
		if err != nil {
			t.Fatal(err)
		}
		r.readTimeout = d
	}
	r.now.Store(time.Unix(1_800_000_000, 123_000_000).UnixNano())
	env := balance.Env{Clock: r.clock, Rand: rand.New(rand.NewPCG(seed, 7)).Uint64}
	for i := range v.Upstreams {
		u := &v.Upstreams[i]
		g, err := balance.NewGroup(u.Name, env, u.spec(t, v))
		if err != nil {
			t.Fatal(err)
		}
		r.upstreams[u.Name], r.groups[u.Name] = u, g
	}
	return r
}

func (r *replay) clock() int64 { return r.now.Load() }

func (r *replay) run() {
	for i := range r.v.Steps {
		s := &r.v.Steps[i]
		asks := r.prepare(s)
		if s.Expect.Counts != nil {
			r.count(i, s, asks)
			continue
		}
		for k, q := range asks {
			j := r.send(s, k, q)
			r.compare(i, k, s, j)
		}
	}
	r.end()
}

// end lets all held requests go.
func (r *replay) end() {
	for name := range r.open {
		r.release(name)
	}
}

// prepare does what a step does before its requests, and gives these.
func (r *replay) prepare(s *vectorStep) []ask {
	if s.Align {
		second := r.now.Load()/int64(time.Second) + 1
		r.now.Store(second*int64(time.Second) + int64(60*time.Millisecond))
	}
	r.now.Add(int64(s.Wait * float64(time.Second)))
	if s.Reload {
		r.reload()
	}
	for name, mode := range s.Set {
		r.mode[name] = mode
	}
	for _, name := range s.Release {
		r.release(name)
	}
	return s.requests()
}

// reload reads the same configuration again: nothing changes.
func (r *replay) reload() {
	for name, g := range r.groups {
		c, err := g.Prepare(r.upstreams[name].spec(r.t, r.v))
		if err != nil || c != nil {
			r.t.Fatalf("the same upstream is no change: %v, %v", c, err)
		}
	}
}

// send starts request k of a step and waits until it has ended or is held.
func (r *replay) send(s *vectorStep, k int, q ask) *journey {
	j := r.start(q, len(s.Open) > 0)
	select {
	case <-j.done:
	case <-j.held:
		r.open[s.Open[k]] = j
	}
	return j
}

func (r *replay) compare(step, k int, s *vectorStep, j *journey) {
	r.t.Helper()
	status := "held"
	select {
	case <-j.done:
		status = strconv.Itoa(j.status)
	default:
	}
	if want := s.wantStatus(k); status != want {
		r.t.Errorf("step %d request %d: status %s, nginx gave %s", step, k, status, want)
	}
	if want := s.Expect.Peers[k]; !reflect.DeepEqual(j.peers, want) {
		r.t.Fatalf("step %d request %d: peers %v, nginx chose %v", step, k, j.peers, want)
	}
	if want := s.wantUpstreamStatus(k); want != nil && status != "held" && !reflect.DeepEqual(j.statuses, want) {
		r.t.Errorf("step %d request %d: attempts ended with %v, nginx logged %v", step, k, j.statuses, want)
	}
	if cookies := s.Expect.Headers["Set-Cookie"]; cookies != nil {
		got := r.cookie(j)
		want := ""
		if len(cookies[k]) > 0 {
			want, _, _ = strings.Cut(cookies[k][0], ";") // the attributes are not this package's
		}
		if got != want {
			r.t.Errorf("step %d request %d: cookie %q, nginx set %q", step, k, got, want)
		}
	}
}

// cookie is the sticky cookie of the answer: that of the last peer tried.
func (r *replay) cookie(j *journey) string {
	words := r.upstreams[r.locate(j.ask.path).upstream].sticky()
	if words == nil || words[0] != "cookie" || j.last == nil {
		return ""
	}
	return words[1] + "=" + j.last.Route()
}

func (r *replay) release(name string) {
	j := r.open[name]
	delete(r.open, name)
	close(j.release)
	<-j.done
}

func (r *replay) locate(path string) *location {
	best := -1
	for i, l := range r.locations {
		if strings.HasPrefix(path, l.path) && (best < 0 || len(l.path) > len(r.locations[best].path)) {
			best = i
		}
	}
	return &r.locations[best]
}

func (r *replay) start(q ask, hold bool) *journey {
	l := r.locate(q.path)
	j := &journey{r: r, ask: q, hold: hold, held: make(chan struct{}), release: make(chan struct{}), done: make(chan struct{})}
	x := &forward.Exchange{
		Request: &forward.Request{Method: []byte(q.method), Target: []byte(q.path)},
		Client:  j, Opener: j, Hooks: hooks{j}, Policy: &l.policy, Clock: r.clock,
		Group: r.groups[l.upstream],
	}
	go func() {
		defer close(j.done)
		out := x.Run(context.Background())
		if !out.Answered {
			j.status = out.Status
		}
		if out.Reason != balance.Eligible {
			j.peers = append(j.peers, "!"+l.upstream)
			j.statuses = append(j.statuses, 502)
			j.status = 502
		}
	}()
	return j
}
