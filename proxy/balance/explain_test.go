package balance

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// brief is an explanation in one line: the rule, who won, and of each candidate what became of it.
func brief(e *Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s:", e.Code, e.Winner)
	for i := range e.Candidates {
		c := &e.Candidates[i]
		what := string(c.Passed)
		if c.Won {
			what = "won"
		}
		if c.Reason != Eligible {
			what = c.Reason.String()
		}
		fmt.Fprintf(&b, " %s %s %d>%d %d>%d", c.ID, what, c.CurrentBefore, c.CurrentAfter, c.EffectiveBefore, c.EffectiveAfter)
	}
	return b.String()
}

func (l *lab) explain(p *Pass) *Explanation {
	e := &Explanation{}
	p.Explain(e)
	p.Pick()
	return e
}

// TestExplain tells every rule and every reason.
func TestExplain(t *testing.T) {
	a, b, c := server("a", 1), server("b", 1), server("c", 1)
	drain, full := c, c
	drain.Drain, full.MaxConns = true, 1
	for _, tc := range []struct {
		name  string
		spec  Spec
		first func(l *lab)
		ask   *Ask
		want  string
		why   string
	}{
		{"weight", Spec{Servers: []Server{with(a, 5), b}}, nil, nil,
			"weight a: a won 0>-1 5>5 b weight 0>1 1>1",
			"0 + 5 = 5 is the greatest current weight among all that could be given; next is b with 1"},
		{"order", Spec{Servers: []Server{a, b}}, nil, nil,
			"weight a: a won 0>-1 1>1 b order 0>1 1>1",
			"0 + 1 = 1 is the greatest current weight among all that could be given, as is that of b, which stands after it"},
		{"down, draining and full", Spec{Servers: []Server{down(a), b, drain, {Key: Key{ID: "d"}, MaxConns: 1}}},
			func(l *lab) { l.run("b"); l.open(nil) }, nil,
			"weight b: a down 0>0 1>1 b won 0>0 1>1 c draining 0>0 1>1 d full 0>0 1>1",
			"nobody else among all that could be given"},
		{"failed", Spec{Servers: []Server{a, b}}, func(l *lab) { l.run("A") }, nil,
			"weight b: a failed -1>-1 0>0 b won 1>1 1>1",
			"nobody else among all that could be given"},
		{"debt", Spec{Servers: []Server{forgiving(with(a, 10)), b}}, func(l *lab) { l.run("A") }, nil,
			"weight a: a won -1>-2 5>6 b weight 1>2 1>1",
			"-1 + 5 = 4 is the greatest current weight among all that could be given; next is b with 2"},
		{"backup", Spec{Servers: []Server{a, backup(b)}}, func(l *lab) { l.run("A") }, nil,
			"weight b: a failed 0>0 0>0 b won 0>0 1>1",
			"nobody else among all that could be given"},
		{"backup unasked", Spec{Servers: []Server{a, backup(b)}}, nil, nil,
			"weight a: a won 0>0 1>1",
			"nobody else among all that could be given"},
		{"single", Spec{Servers: []Server{a}}, nil, nil, "single a: a won 0>0 1>1",
			"the only peer of the upstream is always given"},
		{"nobody", Spec{Servers: []Server{a, b}}, func(l *lab) { l.run("AB") }, nil,
			"nobody : a failed -1>-1 0>0 b failed 1>1 0>0", "nobody can be given: failed"},
		{"method", Spec{Servers: []Server{a, b}, Method: MethodSpec{Name: "least_conn"}}, func(l *lab) { l.open(nil) }, nil,
			"method b: a method -1>-1 1>1 b won 1>1 1>1", "least_conn likes it best: 0, the next best is 1"},
		{"tie", Spec{Servers: []Server{a, b, c}, Method: MethodSpec{Name: "least_conn"}}, func(l *lab) { l.open(nil) }, nil,
			"tie b: a method -2>-2 1>1 b won 1>0 1>1 c order 1>2 1>1",
			"1 + 1 = 2 is the greatest current weight among those that least_conn likes best, as is that of c, which stands after it"},
		{"hash", Spec{Servers: []Server{a, b}, Method: MethodSpec{Name: "hash"}}, nil, keyed("k"),
			"method a: a won 0>0 1>1 b method 0>0 1>1", "hash leads to it"},
		{"session", Spec{Servers: []Server{a, b}, Sticky: StickySpec{Kind: "cookie"}}, nil, of(digest("b:80")),
			"session b: a session 0>1 1>1 b won 0>-1 1>1", "the session is bound to it; it pays for the turn"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t, tc.spec)
			if tc.first != nil {
				tc.first(l)
			}
			p := l.g.Begin(NoLimit, tc.ask)
			e := l.explain(&p)
			if got := brief(e); got != tc.want {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
			if e.Why != tc.why {
				t.Errorf("%s\nwant %s", e.Why, tc.why)
			}
		})
	}
}

// TestExplainRetry: who was tried is told apart from who has failed, also when it is both, and in the backup part.
func TestExplainRetry(t *testing.T) {
	l := newLab(t, Spec{Servers: []Server{server("a", 1), server("b", 1), backup(server("c", 1)), backup(server("d", 1))}})
	p := l.g.Begin(NoLimit, nil)
	var got []string
	for range 5 {
		e := l.explain(&p)
		got = append(got, fmt.Sprint(e.Try, " ", e.Part, " ", brief(e)))
		p.End(Broken)
	}
	for i, want := range []string{
		"1 main weight a: a won 0>-1 1>1 b order 0>1 1>1",
		"2 main weight b: a tried -1>-1 0>0 b won 1>1 1>1",
		"3 backup weight c: a tried -1>-1 0>0 b tried 1>1 0>0 c won 0>-1 1>1 d order 0>1 1>1",
		"4 backup weight d: c tried -1>-1 0>0 d won 1>1 1>1",
		"5 backup nobody : c tried -1>-1 0>0 d tried 1>1 0>0",
	} {
		if got[i] != want {
			t.Errorf("%s\nwant %s", got[i], want)
		}
	}
}

// TestExplainChangesNothing: picks that are recorded are those that would have been made.
func TestExplainChangesNothing(t *testing.T) {
	all := asks()
	for _, m := range everyMethod {
		plain, told := newLab(t, Spec{Servers: many(9), Method: m}), newLab(t, Spec{Servers: many(9), Method: m})
		told.g.Record(3)
		var one, two string
		for i := range 200 {
			one += plain.pick(all[i])
			two += told.pick(all[i])
		}
		if one != two {
			t.Errorf("%s: %s\nrecorded: %s", m, one, two)
		}
	}
}

// TestRecordKeepsTheLast picks of the upstream over swaps, and forgets them when it ends.
func TestRecordKeepsTheLast(t *testing.T) {
	a, b := server("a", 1), server("b", 1)
	l := newLab(t, Spec{Servers: []Server{a, b}})
	winners := func() (ids string) {
		for _, e := range l.g.Picks() {
			ids += e.Winner
		}
		return ids
	}
	l.run("a")
	l.g.Record(3)
	l.run("ba")
	l.swap(Spec{Servers: []Server{a, b, server("c", 1)}})
	l.run("bcab")
	if got := winners(); got != "cab" {
		t.Errorf("the last three: %s", got)
	}
	l.g.Record(2)
	if got := winners(); got != "ab" {
		t.Errorf("the last two of them: %s", got)
	}
	l.run("cab")
	if got := winners(); got != "ab" {
		t.Errorf("the last two: %s", got)
	}
	l.g.Record(0)
	l.run("c")
	if l.g.Picks() != nil {
		t.Error("nothing is recorded")
	}
}

// TestWatch sees every pick, and what it is given stays.
func TestWatch(t *testing.T) {
	var seen []*Explanation
	g := group(t, Spec{Servers: []Server{server("a", 1), server("b", 1)}}, Env{Clock: still(), Watch: func(e *Explanation) { seen = append(seen, e) }})
	picks(t, g, 3)
	if len(seen) != 3 || seen[0].Winner+seen[1].Winner+seen[2].Winner != "aba" || seen[0].Candidates[0].CurrentAfter != -1 {
		t.Errorf("%+v", seen)
	}
}

// TestExplanationJSON is what the debug page says.
func TestExplanationJSON(t *testing.T) {
	l := newLab(t, Spec{Servers: []Server{server("a", 1), server("b", 2)}, Method: MethodSpec{Name: "least_conn"}})
	l.run("BA")
	l.wait(time.Second)
	p := l.g.Begin(NoLimit, nil)
	got, err := json.MarshalIndent(l.explain(&p), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"time": "2027-01-15T08:00:01Z"`, `"method": "least_conn"`, `"code": "nobody"`, `"reason": "failed"`,
		`"failed_until": 1800000010`, `"current_weight_before": `, `"debt": 2`,
	} {
		if !strings.Contains(string(got), part) {
			t.Errorf("no %s in\n%s", part, got)
		}
	}
}

// TestWinnerHasTheLeastKey: what is told of a comparison is what was compared.
func TestWinnerHasTheLeastKey(t *testing.T) {
	for _, m := range []MethodSpec{{Name: "least_conn"}, {Name: "least_time"}, {Name: "least_time", LastByte: true, Inflight: true}} {
		rng := rand.New(rand.NewPCG(7, 7))
		l := newLab(t, Spec{Servers: many(6), Method: m})
		var open []*Pass
		for n := range 3000 {
			l.wait(time.Duration(rng.IntN(40)) * time.Millisecond)
			if rng.IntN(200) == 0 {
				l.wait(15 * time.Second)
			}
			if k := rng.IntN(8); k < len(open) {
				open[k].Header()
				l.wait(time.Duration(rng.IntN(200)) * time.Millisecond)
				open[k].End(Result(rng.IntN(3)))
				open = slices.Delete(open, k, k+1)
				continue
			}
			p := l.g.Begin(NoLimit, nil)
			e := l.explain(&p)
			open = append(open, &p)
			least, won := math.Inf(1), math.NaN()
			for _, c := range e.Candidates {
				if c.Reason == Eligible {
					least = min(least, *c.Key)
				}
				if c.Won {
					won = *c.Key
				}
			}
			if e.Code != Nobody && math.Abs(won-least) > 1e-9 {
				t.Fatalf("%s, step %d: %g won, the least is %g", m, n, won, least)
			}
		}
	}
}
