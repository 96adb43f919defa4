package upstrand

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// strand is a state with a clock, whose upstreams come to what the test says.
type strand struct {
	t     *testing.T
	state *State
	spec  Spec
	now   int64
	plays map[string]string // by upstream: a status, error, timeout; sent- before it: the request had left; 200 without
	took  time.Duration     // a stop takes
	told  []string
	all   int // times that everything was blacklisted
	rand  uint64
}

const startOfTime = int64(1_800_000_000e9)

// strandOf makes an upstrand of "a b/60 | c": normal | backup upstreams, with what stays blacklisted for how many seconds.
func strandOf(t *testing.T, members, statuses string) *strand {
	t.Helper()
	s := &strand{t: t, now: startOfTime, plays: map[string]string{}}
	s.state = NewState("s", Env{Rand: func() uint64 { s.rand++; return s.rand }, AllBlocked: func(string) { s.all++ }})
	s.spec = specOf(t, members, statuses)
	s.state.Swap(s.spec)
	return s
}

func specOf(t *testing.T, members, statuses string) Spec {
	t.Helper()
	var spec Spec
	normal, backup, _ := strings.Cut(members, "|")
	for i, list := range []string{normal, backup} {
		for word := range strings.FieldsSeq(list) {
			name, seconds, _ := strings.Cut(word, "/")
			interval := 0
			if seconds != "" {
				if _, err := fmt.Sscan(seconds, &interval); err != nil {
					t.Fatal(err)
				}
			}
			spec.Members = append(spec.Members, Member{Name: name, Backup: i == 1, Blacklist: time.Duration(interval) * time.Second})
		}
	}
	next, bad, ok := ParseStatuses(strings.Fields(statuses))
	if !ok {
		t.Fatalf("status %q", bad)
	}
	spec.Next = next
	return spec
}

func resultOf(play string) Result {
	r := Result{Status: 200, Sent: true, Held: true}
	play, unsent := strings.CutPrefix(play, "unsent-")
	play, lost := strings.CutPrefix(play, "lost-")
	r.Sent, r.Held = !unsent, !lost
	switch play {
	case "":
	case "error":
		r.Status, r.Own = 502, true
	case "timeout":
		r.Status, r.Own = 504, true
	default:
		_, _ = fmt.Sscan(play, &r.Status)
	}
	return r
}

// walk makes one, and gives its way and end: a b: answered.
func (s *strand) walk(method string) string {
	s.t.Helper()
	w := s.state.Begin(Ask{Method: []byte(method), Tell: func(step Step) { s.told = append(s.told, step.String()) }}, s.now)
	return s.finish(&w)
}

func (s *strand) finish(w *Walk) string {
	s.t.Helper()
	var way []string
	for len(way) < 100 {
		w.Enter(s.now)
		name := "nobody"
		if at := w.At(); at != nil {
			name = at.Name
		}
		way = append(way, name)
		s.now += int64(s.took)
		before := s.state.View(s.now).Totals.Finals
		more := w.More()
		if w.After(resultOf(s.plays[name]), s.now) {
			if !more {
				s.t.Errorf("%v goes on, which More denied", way)
			}
			continue
		}
		after := s.state.View(s.now).Totals.Finals
		for i := range after {
			if after[i] != before[i] {
				return strings.Join(way, " ") + ": " + Final(i).String()
			}
		}
		return strings.Join(way, " ") + ": not counted"
	}
	s.t.Fatal("the walk does not end")
	return ""
}

func TestWalk(t *testing.T) {
	const usual = "error timeout 5xx"
	for _, tc := range []struct {
		name     string
		members  string
		statuses string
		change   func(*Spec)
		plays    map[string]string
		took     time.Duration
		method   string
		want     []string // walks one after another
	}{
		{name: "rotates", members: "a b c", statuses: usual, want: []string{"a: answered", "b: answered", "c: answered", "a: answered"}},
		{name: "per request", members: "a b", statuses: usual, change: func(s *Spec) { s.PerRequest = true }, want: []string{"a: answered", "a: answered"}},
		{name: "begins at random", members: "a b c | d", statuses: usual, change: func(s *Spec) { s.StartRandom = true }, want: []string{"b: answered", "c: answered", "a: answered"}},
		{name: "each at random", members: "a b c", statuses: usual, change: func(s *Spec) { s.StartRandom, s.PerRequest = true, true },
			want: []string{"b: answered", "c: answered", "a: answered", "b: answered"}},
		{name: "only backup", members: "| d e", statuses: usual, want: []string{"d: answered", "e: answered", "d: answered"}},
		{name: "goes on", members: "a b c", statuses: usual, plays: map[string]string{"a": "503", "b": "error"},
			want: []string{"a b c: answered", "b c: answered", "c: answered"}},
		{name: "backup last, and from its first", members: "a b | d e", statuses: usual, plays: map[string]string{"a": "503", "b": "500", "d": "error"},
			want: []string{"a b d e: answered", "b a d e: answered"}},
		{name: "all fail", members: "a b | d", statuses: usual, plays: map[string]string{"a": "503", "b": "500", "d": "502"},
			want: []string{"a b d: last_stop", "b a d: last_stop"}},
		{name: "nothing listed", members: "a b", plays: map[string]string{"a": "error"}, want: []string{"a: answered"}},
		{name: "an error is no 502 of a backend", members: "a b c", statuses: "error", plays: map[string]string{"a": "502", "b": "error"},
			want: []string{"a: answered", "b c: answered"}},
		{name: "a timeout is no 504 of a backend", members: "a b c", statuses: "timeout", plays: map[string]string{"a": "504", "b": "timeout"},
			want: []string{"a: answered", "b c: answered"}},
		{name: "a number is both", members: "a b c", statuses: "502", plays: map[string]string{"a": "502", "b": "error"}, want: []string{"a b c: answered", "b c: answered"}},
		{name: "200 may be listed", members: "a b", statuses: "200", want: []string{"a b: last_stop", "b a: last_stop"}},
		{name: "204 and 4xx", members: "a b c", statuses: "204 4xx", plays: map[string]string{"a": "204", "b": "404"}, want: []string{"a b c: answered"}},
		{name: "POST answered", members: "a b", statuses: usual, plays: map[string]string{"a": "503"}, method: "POST", want: []string{"a: not_repeatable"}},
		{name: "POST not answered", members: "a b", statuses: usual, plays: map[string]string{"a": "error"}, method: "POST", want: []string{"a b: answered"}},
		{name: "PATCH and LOCK", members: "a b", statuses: usual, plays: map[string]string{"a": "503"}, method: "PATCH", want: []string{"a: not_repeatable"}},
		{name: "PUT", members: "a b", statuses: usual, plays: map[string]string{"a": "503"}, method: "PUT", want: []string{"a b: answered"}},
		{name: "non_idempotent", members: "a b", statuses: usual, change: func(s *Spec) { s.NonIdempotent = true }, plays: map[string]string{"a": "503"}, method: "POST",
			want: []string{"a b: answered"}},
		{name: "derived: what was sent stays", members: "a b", statuses: usual, change: func(s *Spec) { s.SentIsFinal = true },
			plays: map[string]string{"a": "error"}, method: "POST", want: []string{"a: not_repeatable"}},
		{name: "derived: a refused connect", members: "a b", statuses: usual, change: func(s *Spec) { s.SentIsFinal = true },
			plays: map[string]string{"a": "unsent-error"}, method: "POST", want: []string{"a b: answered"}},
		{name: "the body is gone", members: "a b", statuses: usual, plays: map[string]string{"a": "lost-503"}, method: "PUT", want: []string{"a: body_lost"}},
		{name: "time is up", members: "a b c", statuses: usual, change: func(s *Spec) { s.Timeout = time.Second }, took: 600 * time.Millisecond,
			plays: map[string]string{"a": "timeout", "b": "timeout"}, want: []string{"a b: timeout"}},
		{name: "nobody is a member", statuses: usual, plays: map[string]string{"nobody": "error"}, want: []string{"nobody: last_stop"}},

		{name: "a lone blacklisted one is passed over", members: "a/60 b/60 c/60", statuses: usual, plays: map[string]string{"b": "503"},
			want: []string{"a: answered", "b c: answered", "c: answered", "a: answered", "c: answered", "c: answered"}},
		{name: "so is a run", members: "a/60 b/60 c/60", statuses: usual, plays: map[string]string{"a": "503", "b": "503"},
			want: []string{"a b c: answered", "c: answered", "c: answered", "c: answered"}},
		{name: "also on the way", members: "a b/60 c/60", statuses: usual, plays: map[string]string{"a": "503", "b": "503"},
			want: []string{"a b c: answered", "c: answered", "c: answered", "a c: answered"}},
		{name: "all normal ones: the backup at once", members: "a/60 b/60 | d", statuses: usual, plays: map[string]string{"a": "503", "b": "503"},
			want: []string{"a b d: answered", "d: answered", "d: answered"}},
		{name: "a POST that stays blacklists", members: "a/60 b/60", statuses: usual, plays: map[string]string{"a": "503"}, method: "POST",
			want: []string{"a: not_repeatable", "b: answered", "b: answered"}},
		{name: "all: one stop, and everything is free", members: "a/60 b/60", statuses: usual, plays: map[string]string{"a": "503", "b": "503"},
			want: []string{"a b: last_stop", "b: all_blacklisted", "a b: last_stop", "b: all_blacklisted"}},
		{name: "all with the backup", members: "a/60 b/60 | d/60", statuses: usual, plays: map[string]string{"a": "503", "b": "503", "d": "503"},
			want: []string{"a b d: last_stop", "d: all_blacklisted", "a b d: last_stop"}},
		{name: "all on the way", members: "a/60 b/60 c/60", statuses: usual, plays: map[string]string{"b": "503", "c": "503"},
			want: []string{"a: answered", "b c a: answered", "a: answered", "a: answered"}},
		{name: "one without interval", members: "a/60 b", statuses: usual, plays: map[string]string{"a": "503", "b": "503"},
			want: []string{"a b: last_stop", "b: last_stop", "b: last_stop"}},
		{name: "both lists, each by itself", members: "a/60 b | a", statuses: usual, plays: map[string]string{"a": "500", "b": "500"},
			want: []string{"a b a: last_stop", "b a: last_stop"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := strandOf(t, tc.members, tc.statuses)
			if tc.change != nil {
				tc.change(&s.spec)
				s.state.Swap(s.spec)
			}
			s.plays, s.took = tc.plays, tc.took
			for i, want := range tc.want {
				if got := s.walk(tc.method); got != want {
					t.Errorf("walk %d: %s, want %s\n%s", i+1, got, want, strings.Join(s.told, "\n"))
				}
			}
		})
	}
}

// TestAllOnTheWay: when the failure at hand leaves nobody off the blacklist, the next one has its last chance.
func TestAllOnTheWay(t *testing.T) {
	s := strandOf(t, "a/60 b/60 c/60", "5xx")
	s.plays = map[string]string{"b": "503", "c": "503"}
	for range 2 {
		s.walk("GET")
	}
	s.plays["a"] = "503"
	if got := s.walk("GET"); got != "a b: all_blacklisted" {
		t.Errorf("%s, told %s", got, strings.Join(s.told, "\n"))
	}
	if s.all != 1 {
		t.Errorf("told %d times that everything is blacklisted, want once", s.all)
	}
	for _, m := range s.state.View(s.now).Members {
		if m.BlockedUntil != 0 {
			t.Errorf("%s is blacklisted", m.Name)
		}
	}
}

// TestBlacklistCountsWholeSeconds as fail_timeout does.
func TestBlacklistCountsWholeSeconds(t *testing.T) {
	s := strandOf(t, "a/2 | d", "5xx")
	s.plays = map[string]string{"a": "503"}
	s.now += int64(900 * time.Millisecond)
	s.walk("GET")
	s.plays = nil
	for _, tc := range []struct {
		after time.Duration
		want  string
	}{{time.Second, "d: answered"}, {90 * time.Millisecond, "d: answered"}, {20 * time.Millisecond, "a: answered"}} {
		s.now += int64(tc.after)
		if got := s.walk("GET"); got != tc.want {
			t.Errorf("%v on: %s, want %s", tc.after, got, tc.want)
		}
	}
}

func TestReset(t *testing.T) {
	blacklisted := func() *strand {
		s := strandOf(t, "a/60 b/60 c", "5xx")
		s.plays = map[string]string{"a": "503", "b": "503"}
		s.walk("GET")
		s.plays = nil
		return s
	}
	for _, tc := range []struct {
		name, upstream string
		cleared        int
		ok             bool
		want           string
	}{
		{"one", "b", 1, true, "b: answered"}, // whose turn it is
		{"another", "a", 1, true, "c: answered"},
		{"one that is free", "c", 0, true, "c: answered"},
		{"none of that name", "x", 0, false, "c: answered"},
		{"all, and the cursor", "", 2, true, "a: answered"},
	} {
		s := blacklisted()
		if cleared, ok := s.state.Reset(tc.upstream); cleared != tc.cleared || ok != tc.ok {
			t.Errorf("%s: %d %v", tc.name, cleared, ok)
		}
		if got := s.walk("GET"); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestStatuses(t *testing.T) {
	for _, word := range []string{"", "600", "99", "6xx", "xx", "5x", "off", "-5", "5xxx", "non_idempotent"} {
		if _, bad, ok := ParseStatuses([]string{"error", word}); ok || bad != word {
			t.Errorf("%q is taken", word)
		}
	}
	s, _, ok := ParseStatuses([]string{"5xx", "204", "599"})
	if !ok {
		t.Fatal("refused")
	}
	for status, want := range map[int]bool{500: true, 599: true, 204: true, 205: false, 499: false, 600: false, 0: false, 99: false, -1: false} {
		if s.Has(status, false) != want {
			t.Errorf("%d: %v", status, !want)
		}
	}
}

// TestSteps: a walk can say why it went where it went.
func TestSteps(t *testing.T) {
	s := strandOf(t, "a/60 b/60 | d", "error 503")
	s.plays = map[string]string{"a": "503", "b": "error"}
	s.walk("GET")
	s.now += int64(20 * time.Second)
	s.walk("GET")
	told := strings.Join(s.told, "\n")
	for _, want := range []string{
		"a came to 503, which is listed: on to b", "b came to an error (502), which is listed: on to d",
		"d came to 200, which is the answer: next_upstream_statuses does not list it", "b is passed over: blacklisted for 40 s more",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("not told: %s\nin\n%s", want, told)
		}
	}
}
