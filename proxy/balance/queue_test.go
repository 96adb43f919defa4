package balance

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// queueOf is a group whose peers take so many attempts each, in the time of a bubble.
func queueOf(t *testing.T, q QueueSpec, method string, most ...int) *Group {
	t.Helper()
	g, err := NewGroup("u", Env{Clock: func() int64 { return time.Now().UnixNano() }}, queueSpec(q, method, most...))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func queueSpec(q QueueSpec, method string, most ...int) Spec {
	spec := Spec{Queue: q, Method: MethodSpec{Name: method}}
	for i, n := range most {
		id := string(rune('a' + i))
		spec.Servers = append(spec.Servers, Server{Key: Key{ID: id}, Addr: id + ":1", MaxConns: n, MaxFails: 1, FailTimeout: 10 * time.Second})
	}
	return spec
}

// askers pick as an exchange does, and tells what it got and when.
type askers struct {
	t    *testing.T
	mu   sync.Mutex
	got  []string
	all  sync.WaitGroup
	from time.Time
}

func (a *askers) note(name string, peer *Peer, why Reason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := why.String()
	if peer != nil {
		id = peer.ID()
	}
	a.got = append(a.got, fmt.Sprintf("%s %s %d", name, id, time.Since(a.from)/time.Second))
}

// start asks and holds the peer for a while; it is in the queue when it returns.
func (a *askers) start(ctx context.Context, g *Group, name string, hold time.Duration) {
	a.t.Helper()
	a.all.Go(func() {
		p := g.Begin(NoLimit, nil)
		peer, why := p.Pick()
		if peer == nil && why == Full && g.Queues() {
			peer, why = p.Wait(ctx)
		}
		a.note(name, peer, why)
		if peer != nil {
			time.Sleep(hold)
			p.End(Succeeded)
		}
	})
	synctest.Wait()
}

func (a *askers) want(want string) {
	a.t.Helper()
	a.all.Wait()
	if got := fmt.Sprint(a.got); got != want {
		a.t.Errorf("%s, want %s", got, want)
	}
}

const s = time.Second

func TestQueue(t *testing.T) {
	long := QueueSpec{Most: 10, Timeout: time.Minute}
	for name, test := range map[string]func(t *testing.T, a *askers){
		"in order": func(t *testing.T, a *askers) {
			g := queueOf(t, long, "", 1)
			for _, name := range []string{"1", "2", "3", "4"} {
				a.start(t.Context(), g, name, 2*s)
			}
			if g.Waiting() != 3 {
				t.Errorf("%d wait", g.Waiting())
			}
			a.want("[1 a 0 2 a 2 3 a 4 4 a 6]")
		},
		"by whichever is free": func(t *testing.T, a *askers) {
			g := queueOf(t, long, "least_conn", 1, 1)
			a.start(t.Context(), g, "1", 5*s)
			a.start(t.Context(), g, "2", 3*s)
			for _, name := range []string{"3", "4", "5"} {
				a.start(t.Context(), g, name, 10*s)
			}
			a.want("[1 a 0 2 b 0 3 b 3 4 a 5 5 b 13]")
		},
		"a full queue": func(t *testing.T, a *askers) {
			g := queueOf(t, QueueSpec{Most: 1, Timeout: time.Minute}, "", 1)
			for _, name := range []string{"1", "2", "3"} {
				a.start(t.Context(), g, name, 2*s)
			}
			a.want("[1 a 0 3 full 0 2 a 2]")
		},
		"too long": func(t *testing.T, a *askers) {
			g := queueOf(t, QueueSpec{Most: 9, Timeout: 3 * s}, "", 1)
			a.start(t.Context(), g, "1", 5*s)
			a.start(t.Context(), g, "2", 0)
			time.Sleep(4 * s)
			a.start(t.Context(), g, "3", 0) // it does not find 2 before it any more
			a.want("[1 a 0 2 full 3 3 a 5]")
		},
		"a client that leaves": func(t *testing.T, a *askers) {
			g := queueOf(t, long, "", 1)
			ctx, cancel := context.WithTimeout(t.Context(), s)
			defer cancel()
			a.start(t.Context(), g, "1", 2*s)
			a.start(ctx, g, "2", 9*s)
			a.start(t.Context(), g, "3", s)
			a.want("[1 a 0 2 full 1 3 a 2]")
		},
		"nobody to wait for": func(t *testing.T, a *askers) {
			g := queueOf(t, long, "", 1, 1)
			p := g.Begin(NoLimit, nil)
			for range 2 {
				p.Pick()
				p.End(Broken)
			}
			a.start(t.Context(), g, "1", 0)
			a.want("[1 failed 0]")
		},
		"failed until": func(t *testing.T, a *askers) {
			g := queueOf(t, long, "", 1, 1)
			p := g.Begin(NoLimit, nil)
			p.Pick()
			p.End(Broken)
			a.start(t.Context(), g, "1", 60*s)
			a.start(t.Context(), g, "2", 0)
			a.want("[1 b 0 2 a 11]") // by time alone
		},
		"no overtaking, but by whom who was let in before": func(t *testing.T, a *askers) {
			g := queueOf(t, long, "", 1, 1)
			one, two := g.Begin(NoLimit, nil), g.Begin(NoLimit, nil)
			one.Pick()
			two.Pick()
			a.start(t.Context(), g, "1", 5*s)
			// The retry of one, which was at a, must not get a again: it waits for b, and holds nobody up.
			one.End(Broken) // 1 may not have it: it failed
			peer, why := one.Pick()
			if peer != nil || why != Full {
				t.Errorf("%v, %v", peer, why)
			}
			a.all.Go(func() {
				peer, why := one.Wait(t.Context())
				a.note("retry", peer, why)
				one.End(Succeeded)
			})
			synctest.Wait()
			time.Sleep(2 * s)
			two.End(Succeeded)
			a.want("[1 b 2 retry b 7]")
		},
		"a peer that comes": func(t *testing.T, a *askers) {
			g := queueOf(t, long, "", 1)
			a.start(t.Context(), g, "1", 60*s)
			a.start(t.Context(), g, "2", 5*s)
			c, err := g.Prepare(queueSpec(long, "", 1, 1))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(s)
			Swap([]*Change{c}, func() {})
			synctest.Wait()
			a.start(t.Context(), c.Next, "3", 0)
			a.want("[1 a 0 2 b 1 3 b 6]")
		},
		"all are others": func(t *testing.T, a *askers) {
			g := queueOf(t, long, "", 1, 1)
			a.start(t.Context(), g, "1", 60*s)
			a.start(t.Context(), g, "2", 60*s)
			a.start(t.Context(), g, "3", 0)
			restarted := queueSpec(long, "", 1, 1)
			for i := range restarted.Servers {
				restarted.Servers[i].Incarnation = 2
			}
			c, _ := g.Prepare(restarted)
			time.Sleep(s)
			Swap([]*Change{c}, func() {})
			a.want("[1 a 0 2 b 0 3 b 1]")
		},
		"the first leaves, and time alone helps": func(t *testing.T, a *askers) {
			g := queueOf(t, long, "", 1, 1)
			p := g.Begin(NoLimit, nil)
			p.Pick()
			p.End(Broken)
			a.start(t.Context(), g, "1", 60*s)
			ctx, cancel := context.WithTimeout(t.Context(), 2*s)
			defer cancel()
			a.start(ctx, g, "2", 0)
			a.start(t.Context(), g, "3", 0)
			a.want("[1 b 0 2 full 2 3 a 11]")
		},
		"more room": func(t *testing.T, a *askers) {
			g := queueOf(t, long, "", 1)
			a.start(t.Context(), g, "1", 60*s)
			a.start(t.Context(), g, "2", 0)
			c, _ := g.Prepare(queueSpec(long, "", 2))
			time.Sleep(s)
			Swap([]*Change{c}, func() {})
			a.want("[1 a 0 2 a 1]")
		},
		"all go": func(t *testing.T, a *askers) {
			g := queueOf(t, long, "", 1)
			a.start(t.Context(), g, "1", 60*s)
			a.start(t.Context(), g, "2", 0)
			stored := false
			time.Sleep(s + s/2) // not when somebody looks: nobody may want the mutex below
			Swap([]*Change{g.Removal()}, func() {
				synctest.Wait() // whoever can go on does
				stored = len(a.got) == 1
			})
			if !stored {
				t.Error("who waited goes on before there is a table to go on in")
			}
			a.want("[1 a 0 2 gone 1]")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, &askers{t: t, from: time.Now()}) })
		})
	}
}

// Many at once: never more than there is room for, everybody gets a turn, and nothing is left.
func TestQueueUnderLoad(t *testing.T) {
	g, err := NewGroup("u", Env{}, queueSpec(QueueSpec{Most: 1000, Timeout: time.Minute}, "least_conn", 2, 1, 3))
	if err != nil {
		t.Fatal(err)
	}
	var open, most, served atomic.Int64
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			for range 100 {
				p := g.Begin(NoLimit, nil)
				peer, _ := p.Pick()
				if peer == nil {
					if peer, _ = p.Wait(t.Context()); peer == nil {
						t.Error("nobody")
						return
					}
				}
				if n := open.Add(1); n > most.Load() {
					most.Store(n)
				}
				served.Add(1)
				open.Add(-1)
				p.End(Succeeded)
			}
		})
	}
	all.Wait()
	if most.Load() > 6 || served.Load() != 4000 || g.Waiting() != 0 || g.Open() != 0 {
		t.Errorf("%d at once, %d served, %d wait, %d open", most.Load(), served.Load(), g.Waiting(), g.Open())
	}
}
