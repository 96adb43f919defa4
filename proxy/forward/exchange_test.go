package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/upstrand"
)

// stage is an opener and a client whose story is told in one line: what was sent where, and what the client got.
type stage struct {
	story  []string
	plays  map[string]string // by peer: ok, refuse, close, gone, hint, stale
	fresh  map[string]int
	closed atomic.Int32
	body   *heldBody
	wait   chan struct{} // bodies of the play "block" end with it
	all    []*balance.Group

	tick     func(time.Duration) // moves the clock; nil: time stands still
	released int
}

func (s *stage) pass(d time.Duration) {
	if s.tick != nil {
		s.tick(d)
	}
}

// open is the number of open attempts.
func (s *stage) open() int {
	n := 0
	for _, g := range s.all {
		for _, p := range g.Snapshot() {
			n += p.Conns
		}
	}
	return n
}

func (s *stage) tell(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf(format, args...))
}

func (s *stage) Open(_ context.Context, p *balance.Peer, fresh bool) Backend {
	if fresh {
		s.fresh[p.ID()]++
	}
	if s.plays[p.ID()] == "panic before" {
		panic(errScene)
	}
	return &scene{stage: s, peer: p.ID(), play: s.plays[p.ID()], fresh: fresh}
}

func (s *stage) Inform(status int, _ []Field) error { s.tell("inform %d", status); return nil }
func (s *stage) Head(status int, f []Field, _ int64) error {
	if after := Get(f, "Retry-After"); after != nil {
		s.tell("head %d retry-after %s", status, after)
		return nil
	}
	s.tell("head %d", status)
	return nil
}
func (s *stage) Write(b []byte) error {
	// The bodies here come in one piece, so this is the write that completes the answer.
	if s.open() > 0 {
		s.tell("attempt still open at")
	}
	s.tell("%s", strings.TrimSpace(string(b)))
	return nil
}
func (s *stage) End([]Field) error                   { s.tell("end"); return nil }
func (s *stage) Abort()                              { s.tell("abort") }
func (s *stage) Tunnel() (io.ReadWriteCloser, error) { return nil, errors.New("no tunnel") }

type scene struct {
	stage *stage
	peer  string
	play  string
	fresh bool
	hints int
}

var errScene = errors.New("scene")

func (b *scene) Send(r *Request) error {
	body := ""
	if r.Body != nil {
		all, _ := io.ReadAll(r.Body)
		body = "<" + string(all) + ">"
	}
	if b.play == "gone" {
		return &Error{PeerGone, errScene}
	}
	if b.play == "panic" {
		panic(errScene)
	}
	if b.play == "no socket" {
		return &Error{NoSocket, errScene}
	}
	b.stage.tell("%s%s", b.peer, body)
	b.stage.pass(time.Millisecond)
	if b.play == "ended once" {
		delete(b.stage.plays, b.peer)
	}
	switch {
	case b.play == "refuse", b.play == "close", b.play == "ended", b.play == "ended once", b.play == "stale" && !b.fresh:
		return &Error{OnError, errScene}
	}
	return nil
}

func (b *scene) Head() (int, []Field, error) {
	if b.play == "hint" && b.hints == 0 {
		b.hints++
		return 103, nil, nil
	}
	if b.play == "hint then close" {
		if b.hints++; b.hints == 1 {
			return 103, nil, nil
		}
		return 0, nil, &Error{OnError, errScene}
	}
	b.stage.pass(10 * time.Millisecond)
	return 200, nil, nil
}

func (b *scene) Sent() Progress {
	return Progress{Sent: b.play != "refuse", Unread: b.play == "stale" && !b.fresh, Kept: strings.HasPrefix(b.play, "ended"),
		Connected: b.play != "refuse", Connect: 500 * time.Microsecond, Out: 7}
}
func (b *scene) Release() { b.stage.released++ }
func (b *scene) Body() Source {
	b.stage.pass(100 * time.Millisecond)
	if b.play == "block" {
		<-b.stage.wait
	}
	body := &heldBody{text: "from " + b.peer}
	if b.play == "at hand" {
		return wholeBody{body}
	}
	return body
}
func (b *scene) Tunnel() (io.ReadWriteCloser, error) { return nil, errScene }
func (b *scene) Close()                              { b.stage.closed.Add(1) }

// heldBody is a body that can be read again unless lost.
type heldBody struct {
	text string
	at   int
	lost bool
}

func (h *heldBody) Read(p []byte) (int, error) {
	n := copy(p, h.text[h.at:])
	if h.at += n; h.at == len(h.text) {
		return n, io.EOF
	}
	return n, nil
}
func (h *heldBody) Trailer() []Field { return nil }
func (h *heldBody) Rewindable() bool { return !h.lost }
func (h *heldBody) Rewind() error {
	if h.lost {
		return errors.New("lost")
	}
	h.at = 0
	return nil
}

// wholeBody is one that is given in one piece.
type wholeBody struct{ *heldBody }

func (w wholeBody) Read([]byte) (int, error) { panic("read though all was at hand") }
func (w wholeBody) AtHand() ([]byte, bool)   { return []byte(w.text), true }

// groups makes upstreams of "name: peer peer"; a peer that begins with ~ is draining.
func groups(t *testing.T, lines ...string) []*balance.Group {
	t.Helper()
	var out []*balance.Group
	for _, l := range lines {
		name, ids, _ := strings.Cut(l, ":")
		var servers []balance.Server
		for _, id := range strings.Fields(ids) {
			id, drain := strings.CutPrefix(id, "~")
			servers = append(servers, balance.Server{Key: balance.Key{ID: id}, MaxFails: 1, FailTimeout: 10 * time.Second, Drain: drain})
		}
		g, err := balance.NewGroup(name, balance.Env{Clock: func() int64 { return 1_800_000_000e9 }}, balance.Spec{Servers: servers})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

// walkOf leads through upstreams as a derived upstrand does; a single one is no upstrand.
func walkOf(t *testing.T, all []*balance.Group, method string) Walk {
	t.Helper()
	next, _, _ := upstrand.ParseStatuses([]string{"error", "timeout"})
	spec := upstrand.Spec{PerRequest: true, SentIsFinal: true, Next: next, Timeout: DerivedPolicy().Within}
	for _, g := range all {
		spec.Members = append(spec.Members, upstrand.Member{Name: g.Name(), Group: g})
	}
	state := upstrand.NewState("strand", upstrand.Env{})
	state.Swap(spec)
	w := state.Begin(upstrand.Ask{Method: []byte(method)}, 1_800_000_000e9)
	return &w
}

func TestExchange(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stops  []string
		plays  map[string]string
		method string
		body   string
		lost   bool
		budget bool // none left
		renew  string
		want   string
		cause  string
	}{
		{name: "first answers", stops: []string{"u: a b"}, want: "a, head 200, from a, end"},
		{name: "all of the answer is at hand", stops: []string{"u: a b"}, plays: map[string]string{"a": "at hand"}, want: "a, head 200, from a, end"},
		{name: "next peer", stops: []string{"u: a b"}, plays: map[string]string{"a": "close"}, want: "a, b, head 200, from b, end"},
		{name: "body again", stops: []string{"u: a b"}, plays: map[string]string{"a": "close"}, body: "x", want: "a<x>, b<x>, head 200, from b, end"},
		{name: "body lost", stops: []string{"u: a b"}, plays: map[string]string{"a": "close"}, body: "x", lost: true,
			want: "a<x>, head 502, 502 u: connection failed after 1 try, end", cause: "error"},
		{name: "own tries of each stop, then the next", stops: []string{"u: a b", "v: c d"}, plays: map[string]string{"a": "close", "b": "refuse", "c": "close"},
			want: "a, b, c, d, head 200, from d, end"},
		{name: "three tries a stop", stops: []string{"u: a b c d", "v: e f"}, plays: map[string]string{"a": "close", "b": "close", "c": "close"},
			want: "a, b, c, e, head 200, from e, end"},
		{name: "an empty stop is passed", stops: []string{"u:", "v: c"}, want: "c, head 200, from c, end"},
		{name: "nobody at all", stops: []string{"u:", "v:"}, want: "head 503 retry-after 7, 503 u: no live instance, end", cause: "no_peer"},
		{name: "nobody but draining ones", stops: []string{"u: ~a ~b", "v:"}, want: "head 503 retry-after 7, 503 u: only draining instances are left, end", cause: "no_peer"},
		{name: "all fail", stops: []string{"u: a b"}, plays: map[string]string{"a": "close", "b": "close"},
			want: "a, b, head 502, 502 u: connection failed after 2 tries, end", cause: "error"},
		{name: "POST sent does not go to the next stop", stops: []string{"u: a", "v: b"}, plays: map[string]string{"a": "close"}, method: "POST",
			want: "a, head 502, 502 u: connection failed after 1 try, end", cause: "error"},
		{name: "POST refused goes to the next stop", stops: []string{"u: a", "v: b"}, plays: map[string]string{"a": "refuse"}, method: "POST",
			want: "a, b, head 200, from b, end"},
		{name: "unread POST goes to the same peer", stops: []string{"u: a b"}, plays: map[string]string{"a": "stale"}, method: "POST", body: "x",
			want: "a<x>, a<x>, head 200, from a, end"},
		{name: "gone peer is as if it had not been", stops: []string{"u: a b"}, plays: map[string]string{"a": "gone"}, method: "POST", body: "x",
			want: "b<x>, head 200, from b, end"},
		{name: "no socket of ours: nobody else is asked", stops: []string{"u: a b", "v: c"}, plays: map[string]string{"a": "no socket"},
			want: "head 503, 503 u: this proxy has no file descriptor or memory for a connection after 1 try, end", cause: "no_socket"},
		{name: "no budget", stops: []string{"u: a b"}, plays: map[string]string{"a": "close"}, budget: true,
			want: "a, head 502, 502 u: connection failed after 1 try, end", cause: "error"},
		{name: "a gone peer costs no budget", stops: []string{"u: a b"}, plays: map[string]string{"a": "gone"}, budget: true, want: "b, head 200, from b, end"},
		{name: "hints wait while another try is possible", stops: []string{"u: a b"}, plays: map[string]string{"a": "hint then close", "b": "hint"},
			want: "a, b, inform 103, head 200, from b, end"},
		{name: "hints of the last try go on at once", stops: []string{"u: a"}, plays: map[string]string{"a": "hint then close"},
			want: "a, inform 103, head 502, 502 u: connection failed after 1 try, end", cause: "error"},
		{name: "nobody left in an old table", stops: []string{"u:"}, renew: "u: n", want: "n, head 200, from n, end"},
		{name: "nobody in the new one either", stops: []string{"u:"}, renew: "u:", want: "head 503 retry-after 7, 503 u: no live instance, end", cause: "no_peer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &stage{plays: tc.plays, fresh: map[string]int{}}
			policy := DerivedPolicy()
			r := &Request{Method: []byte("GET")}
			if tc.method != "" {
				r.Method = []byte(tc.method)
			}
			if tc.body != "" {
				s.body = &heldBody{text: tc.body, lost: tc.lost}
				r.Body = s.body
			}
			clock := func() int64 { return 1_800_000_000e9 }
			s.all = groups(t, tc.stops...)
			x := &Exchange{Name: "u", Request: r, Client: s, Opener: s, Policy: &policy, Clock: clock, Walk: walkOf(t, s.all, tc.method), RetryAfter: 7 * time.Second}
			if tc.budget {
				x.Budget = NewBudget(clock, 0, 0, time.Microsecond)
			}
			if tc.renew != "" {
				x.Renew = func() (*balance.Group, Walk, bool) { return groups(t, tc.renew)[0], nil, true }
			}
			out := x.Run(t.Context())
			if got := strings.Join(s.story, ", "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if out.Cause != tc.cause {
				t.Errorf("cause %q, want %q", out.Cause, tc.cause)
			}
			if n := s.open(); n != 0 {
				t.Errorf("%d attempts are still open", n)
			}
		})
	}
}

// retrying is a GET whose first peer fails, with a budget.
func retrying(t *testing.T, b *Budget, plays map[string]string) (*Exchange, *stage) {
	t.Helper()
	policy := DerivedPolicy()
	s := &stage{plays: plays, fresh: map[string]int{}, wait: make(chan struct{}), all: groups(t, "u: a b")}
	return &Exchange{Name: "u", Request: &Request{Method: []byte("GET")}, Client: s, Opener: s, Policy: &policy,
		Clock: func() int64 { return 1_800_000_000e9 }, Walk: walkOf(t, s.all, ""), Budget: b}, s
}

// TestBudgetIsFreeOnceAnswered: a retry whose answer takes for ever keeps no other one waiting.
func TestBudgetIsFreeOnceAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(func() int64 { return 1_800_000_000e9 }, 0, 1, 500*time.Millisecond)
		long, s := retrying(t, b, map[string]string{"a": "close", "b": "block"})
		done := make(chan struct{})
		go func() { defer close(done); long.Run(t.Context()) }()
		synctest.Wait()
		other, told := retrying(t, b, map[string]string{"a": "close"})
		other.Run(t.Context())
		if got, want := strings.Join(told.story, ", "), "a, b, head 200, from b, end"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		close(s.wait)
		<-done
		if len(b.slots) != 0 {
			t.Error("the slot was not given back")
		}
	})
}

// TestFailedAttemptEndsBeforeTheWait for the budget, and once only.
func TestFailedAttemptEndsBeforeTheWait(t *testing.T) {
	for _, freed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := NewBudget(func() int64 { return 1_800_000_000e9 }, 0, 1, 500*time.Millisecond)
			b.Take(t.Context())
			x, s := retrying(t, b, map[string]string{"a": "close"})
			done := make(chan struct{})
			go func() { defer close(done); x.Run(t.Context()) }()
			synctest.Wait()
			if s.open() != 0 || s.closed.Load() == 0 {
				t.Errorf("%d attempts are open, %d backends closed", s.open(), s.closed.Load())
			}
			want := "a, head 502, 502 u: connection failed after 1 try, end"
			if freed {
				want = "a, b, head 200, from b, end"
				b.Release()
			}
			<-done
			if got := strings.Join(s.story, ", "); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if p := s.all[0].Snapshot(); p[0].Fails != 1 || p[0].Conns+p[1].Conns != 0 {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestClearAfterPanic: what a panic left open is ended by Clear, once, and what the attempt before it has left is released.
func TestClearAfterPanic(t *testing.T) {
	for play, released := range map[string]int{"panic": 2, "panic before": 1} {
		for _, hooks := range []bool{false, true} {
			b := NewBudget(func() int64 { return 1_800_000_000e9 }, 0, 1, time.Microsecond)
			x, s := retrying(t, b, map[string]string{"a": "close", "b": play})
			if hooks {
				x.Hooks = &site{stage: s}
			}
			func() {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
					x.Clear()
					x.Clear()
				}()
				x.Run(t.Context())
			}()
			if s.open() != 0 || s.released != released || len(b.slots) != 0 {
				t.Errorf("%s, hooks %v: %d attempts are open, %d backends released, %d slots held", play, hooks, s.open(), s.released, len(b.slots))
			}
			if p := s.all[0].Snapshot(); p[1].Fails != 0 {
				t.Errorf("a panic of ours is a failure of the peer: %+v", p[1])
			}
		}
	}
}
