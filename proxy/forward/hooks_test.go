package forward

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// site tells in the stage's story what an exchange asks of its Hooks.
type site struct {
	stage     *stage
	intercept bool
}

func (s *site) Ask(g *balance.Group) *balance.Ask { s.stage.tell("ask %s", g.Name()); return nil }

func (s *site) Head(g *balance.Group, status int, fields []Field) ([]Field, bool) {
	s.stage.tell("shown %s %d", g.Name(), status)
	return fields, !s.intercept
}

func (s *site) Session(*balance.Group) []byte  { return nil }
func (s *site) Trailer(fields []Field) []Field { s.stage.tell("trailer"); return nil }

// TestHooks: with them nothing is said to the client that they did not let through.
func TestHooks(t *testing.T) {
	for _, tc := range []struct {
		name      string
		stops     []string
		plays     map[string]string
		intercept bool
		want      string
		out       string // answered, intercepted, status, cause
		trail     string
	}{
		{"delivered", []string{"u: a b"}, map[string]string{"a": "close"}, false,
			"ask u, a, b, shown u 200, head 200, trailer, from b, end", "true false 200 ", "u/a 502, u/b 200"},
		{"intercepted", []string{"u: a b"}, nil, true,
			"ask u, a, shown u 200", "false true 200 ", "u/a 200"},
		{"all fail", []string{"u: a b"}, map[string]string{"a": "refuse", "b": "close"}, false,
			"ask u, a, b", "false false 502 error", "u/a 502, u/b 502"},
		{"nobody", []string{"u: ~a ~b"}, nil, false, "ask u", "false false 502 no_peer", "u! 502"},
		{"gone and then nobody", []string{"u: a b"}, map[string]string{"a": "gone", "b": "gone"}, false, "ask u", "false false 502 no_peer", "u! 502"},
		{"unread is one try", []string{"u: a b"}, map[string]string{"a": "stale"}, false,
			"ask u, a, a, shown u 200, head 200, trailer, from a, end", "true false 200 ", "u/a 200"},
		{"a kept connection that ended is a try", []string{"u: a b"}, map[string]string{"a": "ended"}, false,
			"ask u, a, b, shown u 200, head 200, trailer, from b, end", "true false 200 ", "u/a 502, u/b 200"},
		{"of the only peer, too", []string{"u: a"}, map[string]string{"a": "ended once"}, false,
			"ask u, a, a, shown u 200, head 200, trailer, from a, end", "true false 200 ", "u/a 502, u/a 200"},
		{"stops", []string{"u: a", "v: b"}, map[string]string{"a": "close"}, false,
			"ask u, a, ask v, b, shown v 200, head 200, trailer, from b, end", "true false 200 ", "u/a 502, v/b 200"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &stage{plays: tc.plays, fresh: map[string]int{}}
			s.all = groups(t, tc.stops...)
			policy := DerivedPolicy()
			var trail Trail
			x := &Exchange{Name: "u", Request: &Request{Method: []byte("GET")}, Client: s, Opener: s, Policy: &policy, Walk: walkOf(t, s.all, ""),
				Clock: func() int64 { return 1_800_000_000e9 }, Hooks: &site{s, tc.intercept}, Trail: &trail}
			out := x.Run(t.Context())
			if got := strings.Join(s.story, ", "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if got := fmt.Sprint(out.Answered, " ", out.Intercepted, " ", out.Status, " ", out.Cause); got != tc.out {
				t.Errorf("%s, want %s", got, tc.out)
			}
			if got := trailText(trail); got != tc.trail {
				t.Errorf("trail %s, want %s", got, tc.trail)
			}
			if s.open() != 0 {
				t.Error("an attempt is still open")
			}
			for _, p := range s.all[0].Snapshot() {
				if strings.HasPrefix(s.plays["a"], "ended") && p.Fails != 0 {
					t.Errorf("a kept connection that ended is a failure of %s", p.ID)
				}
			}
		})
	}
}

func trailText(trail Trail) string {
	var out []string
	for _, t := range trail {
		switch {
		case t.Upstream == "":
			out = append(out, "-")
		case t.Peer == nil:
			out = append(out, fmt.Sprintf("%s! %d", t.Upstream, t.Status))
		default:
			out = append(out, fmt.Sprintf("%s/%s %d", t.Upstream, t.Peer.ID(), t.Status))
		}
	}
	return strings.Join(out, ", ")
}

// TestTrailTimes: each try has its own, whatever came of it.
func TestTrailTimes(t *testing.T) {
	now := int64(1_800_000_000e9)
	clock := func() int64 { return now }
	s := &stage{plays: map[string]string{"a": "close"}, fresh: map[string]int{}, tick: func(d time.Duration) { now += int64(d) }}
	s.all = groups(t, "u: a b")
	policy := DerivedPolicy()
	var trail Trail
	x := &Exchange{Name: "u", Request: &Request{Method: []byte("GET")}, Client: s, Opener: s, Policy: &policy, Walk: walkOf(t, s.all, ""), Clock: clock, Trail: &trail}
	x.Run(t.Context())
	trail.Divide()
	if len(trail) != 3 || trailText(trail) != "u/a 502, u/b 200, -" {
		t.Fatalf("%s", trailText(trail))
	}
	// In a scene a send takes 1 ms, of which half is for the connection, a head 10 ms, the body 100 ms.
	for i, want := range []Try{
		{Connect: 500 * time.Microsecond, Header: Unknown, Response: time.Millisecond, Out: 7},
		{Connect: 500 * time.Microsecond, Header: 11 * time.Millisecond, Response: 111 * time.Millisecond, Out: 7, Length: int64(len("from b"))},
	} {
		got := trail[i]
		if got.Connect != want.Connect || got.Header != want.Header || got.Response != want.Response || got.Out != want.Out || got.Length != want.Length {
			t.Errorf("try %d: %+v, want %+v", i, got, want)
		}
	}
}

func TestDivideNothing(t *testing.T) {
	var trail Trail
	if trail.Divide(); len(trail) != 0 {
		t.Error("a separator of nothing")
	}
}

// TestEachBackendIsReleasedOnce: with Hooks the last one is kept until they are done with its fields.
func TestEachBackendIsReleasedOnce(t *testing.T) {
	for _, hooks := range []bool{false, true} {
		s := &stage{plays: map[string]string{"a": "close"}, fresh: map[string]int{}}
		s.all = groups(t, "u: a b")
		policy := DerivedPolicy()
		x := &Exchange{Name: "u", Request: &Request{Method: []byte("GET")}, Client: s, Opener: s, Policy: &policy, Walk: walkOf(t, s.all, ""),
			Clock: func() int64 { return 1_800_000_000e9 }}
		if hooks {
			x.Hooks = &site{stage: s}
		}
		x.Run(t.Context())
		if want := map[bool]int{false: 2, true: 1}[hooks]; s.released != want {
			t.Errorf("hooks %v: %d released after Run, want %d", hooks, s.released, want)
		}
		x.Release()
		x.Release()
		if s.released != 2 {
			t.Errorf("hooks %v: %d released, want both", hooks, s.released)
		}
	}
}
