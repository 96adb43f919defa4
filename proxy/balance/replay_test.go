package balance_test

import (
	"context"
	"errors"
	"io"
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
	for theme, vs := range loadVectors(t) {
		t.Run(theme, func(t *testing.T) {
			skipped := 0
			for i := range vs {
				v := &vs[i]
				t.Run(v.Name, func(t *testing.T) {
					if why := v.skipReason(); why != "" {
						skipped++
						t.Skip(why)
					}
					newReplay(t, v).run()
				})
			}
			t.Logf("%s: %d cases, %d skipped, each with its reason above", theme, len(vs), skipped)
		})
	}
}

// replay is a world for one case: a clock, groups, behaviours of backends.
type replay struct {
	t           *testing.T
	v           *vector
	now         atomic.Int64
	groups      map[string]*balance.Group
	locations   []location
	mode        map[string]string
	readTimeout time.Duration
	open        map[string]*journey
}

func newReplay(t *testing.T, v *vector) *replay {
	r := &replay{t: t, v: v, groups: map[string]*balance.Group{}, mode: map[string]string{},
		readTimeout: 500 * time.Millisecond, open: map[string]*journey{}, locations: v.locations(t)}
	if v.ReadTimeout != "" {
		d, err := time.ParseDuration(v.ReadTimeout)
		if err != nil {
			t.Fatal(err)
		}
		r.readTimeout = d
	}
	r.now.Store(time.Unix(1_800_000_000, 123_000_000).UnixNano())
	for i := range v.Upstreams {
		r.groups[v.Upstreams[i].Name] = v.Upstreams[i].group(t, r.clock)
	}
	return r
}

func (r *replay) clock() int64 { return r.now.Load() }

func (r *replay) run() {
	for i := range r.v.Steps {
		r.step(i, &r.v.Steps[i])
	}
	for name := range r.open {
		r.release(name)
	}
}

func (r *replay) step(n int, s *vectorStep) {
	if s.Align {
		second := r.now.Load()/int64(time.Second) + 1
		r.now.Store(second*int64(time.Second) + int64(60*time.Millisecond))
	}
	r.now.Add(int64(s.Wait * float64(time.Second)))
	for name, mode := range s.Set {
		r.mode[name] = mode
	}
	for _, name := range s.Release {
		r.release(name)
	}
	for i, q := range s.requests() {
		j := r.start(q.method, q.path, len(s.Open) > 0)
		status := "held"
		select {
		case <-j.done:
			status = strconv.Itoa(j.status)
		case <-j.held:
			r.open[s.Open[i]] = j
		}
		if want := s.wantStatus(i); status != want {
			r.t.Errorf("step %d request %d: status %s, nginx gave %s", n, i, status, want)
		}
		if want := s.Expect.Peers[i]; !reflect.DeepEqual(j.peers, want) {
			r.t.Fatalf("step %d request %d: peers %v, nginx chose %v", n, i, j.peers, want)
		}
		if want := s.wantUpstreamStatus(i); status != "held" && !reflect.DeepEqual(j.statuses, want) {
			r.t.Errorf("step %d request %d: attempts ended with %v, nginx logged %v", n, i, j.statuses, want)
		}
	}
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

// journey is one request; it is the exchange's opener and client at once.
type journey struct {
	r        *replay
	hold     bool
	peers    []string
	statuses []int
	status   int
	held     chan struct{}
	release  chan struct{}
	done     chan struct{}
}

func (r *replay) start(method, path string, hold bool) *journey {
	l := r.locate(path)
	j := &journey{r: r, hold: hold, held: make(chan struct{}), release: make(chan struct{}), done: make(chan struct{})}
	x := &forward.Exchange{
		Request: &forward.Request{Method: []byte(method), Target: []byte(path)},
		Client:  j, Opener: j, Policy: &l.policy, Clock: r.clock,
		Stops: []*balance.Group{r.groups[l.upstream]},
	}
	go func() {
		defer close(j.done)
		out := x.Run(context.Background())
		if out.Reason != balance.Eligible {
			j.peers = append(j.peers, "!"+l.upstream)
			j.statuses = append(j.statuses, 502)
			// A published route without any peer answers 503; nginx, and a stop of an upstrand, 502.
			j.status = 502
		}
	}()
	return j
}

func (j *journey) Open(_ context.Context, p *balance.Peer, _ bool) forward.Backend {
	j.peers = append(j.peers, p.ID())
	mode := j.r.mode[p.ID()]
	return &behaviour{j: j, mode: mode}
}

func (j *journey) Inform(int, []forward.Field) error { return nil }

func (j *journey) Head(status int, _ []forward.Field, _ int64) error {
	j.status = status
	return nil
}
func (j *journey) Write([]byte) error                  { return nil }
func (j *journey) End([]forward.Field) error           { return nil }
func (j *journey) Abort()                              {}
func (j *journey) Tunnel() (io.ReadWriteCloser, error) { return nil, errors.New("no tunnel here") }

// behaviour is an attempt at a backend that behaves in one of the vectors' ways.
type behaviour struct {
	j    *journey
	mode string
}

func (b *behaviour) fail(c forward.Class, status int) error {
	b.j.statuses = append(b.j.statuses, status)
	return &forward.Error{Class: c, Err: errors.New(b.mode)}
}

func (b *behaviour) Send(*forward.Request) error {
	if b.mode == "refuse" {
		return b.fail(forward.OnError, 502)
	}
	return nil
}

func (b *behaviour) Head() (int, []forward.Field, error) {
	status := 200
	switch {
	case b.mode == "close":
		return 0, nil, b.fail(forward.OnError, 502)
	case b.mode == "badheader":
		return 0, nil, b.fail(forward.OnInvalidHeader, 502)
	case b.mode == "hang":
		b.j.r.now.Add(int64(b.j.r.readTimeout))
		return 0, nil, b.fail(forward.OnTimeout, 504)
	case strings.HasPrefix(b.mode, "status:"):
		status, _ = strconv.Atoi(b.mode[len("status:"):])
	case b.mode != "" && b.mode != "ok" && b.mode != "partial":
		panic("behaviour " + b.mode)
	case b.j.hold:
		close(b.j.held)
		<-b.j.release
	}
	b.j.statuses = append(b.j.statuses, status)
	return status, nil, nil
}

func (b *behaviour) Body() forward.Source { return b }

func (b *behaviour) Read([]byte) (int, error) {
	if b.mode == "partial" {
		return 0, io.ErrUnexpectedEOF
	}
	return 0, io.EOF
}
func (b *behaviour) Trailer() []forward.Field            { return nil }
func (b *behaviour) Rewind() error                       { return errors.New("an answer") }
func (b *behaviour) Rewindable() bool                    { return false }
func (b *behaviour) Sent() forward.Progress              { return forward.Progress{Sent: b.mode != "refuse"} }
func (b *behaviour) Tunnel() (io.ReadWriteCloser, error) { return nil, errors.New("no tunnel here") }
func (b *behaviour) Close()                              {}
