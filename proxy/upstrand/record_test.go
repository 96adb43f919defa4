package upstrand

import (
	"slices"
	"strings"
	"testing"
)

// steps is what was recorded, one walk a text.
func (s *strand) steps() (walks []string) {
	for _, walk := range s.state.Walks() {
		var codes []string
		for _, step := range walk.Steps {
			codes = append(codes, strings.TrimSuffix(step.What+" "+step.Upstream+" "+step.Why+" "+step.To, " "))
		}
		walks = append(walks, strings.Join(codes, "; "))
	}
	return walks
}

func TestWalksAreRecorded(t *testing.T) {
	s := strandOf(t, "a/60 b", "error")
	s.plays["a"] = "error"
	s.walk("GET")
	if got := s.steps(); got != nil {
		t.Errorf("recorded before anybody asked: %q", got)
	}
	s.state.Record(2)
	s.walk("GET")
	s.walk("GET")
	want := []string{"start b turn; final b answered", "skip a blacklisted; start b turn; final b answered"}
	if got := s.steps(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	s.state.Reset("")
	s.walk("PUT")
	want = []string{want[1], "start a turn; next a error b; final b answered"}
	if got := s.steps(); !slices.Equal(got, want) || s.state.Walks()[1].Method != "PUT" {
		t.Errorf("the two newest: %q", got)
	}
	s.state.Record(1)
	if got := s.steps(); !slices.Equal(got, want[1:]) {
		t.Errorf("the newest: %q", got)
	}
	s.state.Record(0)
	s.walk("GET")
	if got := s.steps(); got != nil {
		t.Errorf("off: %q", got)
	}
}

// A walk may end for another reason than its result.
func TestOtherEndsAreRecorded(t *testing.T) {
	s := strandOf(t, "a b", "error")
	s.state.Record(9)
	begin := func() *Walk {
		w := s.state.Begin(Ask{Method: []byte("GET")}, s.now)
		w.Enter(s.now)
		return &w
	}
	w := begin()
	if !w.After(Result{Status: 502, Own: true, Held: true}, s.now) {
		t.Fatal("no other stop")
	}
	w.Stay(NoBudget, s.now)
	w = begin()
	w.Leave(s.now)
	w.Leave(s.now)
	want := []string{"start a turn; next a error b; stay a no_budget", "start b turn; leave b client_gone"}
	if got := s.steps(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	last := s.state.Walks()[0].Steps
	if got := last[len(last)-1].String(); got != "a has the answer after all: the retry budget is spent" {
		t.Error(got)
	}
	for order, want := range map[string]string{"first": "begins at a: each request begins at the first", "chance": "a random one"} {
		spec := s.spec
		spec.PerRequest, spec.StartRandom = true, order == "chance"
		s.state.Swap(spec)
		begin().Leave(s.now)
		walks := s.state.Walks()
		if got := walks[len(walks)-1].Steps[0]; got.Why != order || !strings.Contains(got.String(), want) {
			t.Errorf("%s: %s", order, got)
		}
	}
}
