package registry

import (
	"slices"
	"testing"
	"time"
)

func TestHeldServices(t *testing.T) {
	tests := []struct {
		name string
		all  map[string]tally
		want []string
	}{
		{"nobody", nil, nil},
		{"one of one dies", map[string]tally{"a": {members: 1, overdue: 1}, "b": {members: 9}}, nil},
		{"two of two die", map[string]tally{"a": {members: 2, overdue: 2}}, nil},
		{"three of three are believed alive", map[string]tally{"a": {members: 3, overdue: 3}, "b": {members: 90}}, []string{"a"}},
		{"three of six, half", map[string]tally{"a": {members: 6, overdue: 3}, "b": {members: 90}}, []string{"a"}},
		{"three of seven, below half", map[string]tally{"a": {members: 7, overdue: 3}, "b": {members: 90}}, nil},
		{"three of seven, a third of the registry", map[string]tally{"a": {members: 7, overdue: 3}, "b": {members: 2}}, []string{"a"}},
		{"a big service cut off, the dead of others go",
			map[string]tally{"a": {members: 30, overdue: 20}, "b": {members: 6, overdue: 1}, "c": {members: 3, overdue: 1}}, []string{"a"}},
		{"all cut off, small ones too",
			map[string]tally{"a": {members: 30, overdue: 30}, "b": {members: 1, overdue: 1}, "c": {members: 2, overdue: 2}},
			[]string{"a", "b", "c"}},
		{"many small services cut off together",
			map[string]tally{"a": {members: 2, overdue: 1}, "b": {members: 2, overdue: 1}, "c": {members: 2, overdue: 1}, "d": {members: 3}},
			[]string{"a", "b", "c"}},
		{"two of small services, below three",
			map[string]tally{"a": {members: 2, overdue: 1}, "b": {members: 2, overdue: 1}, "c": {members: 2}}, nil},
		{"40 % of a service that is most of the registry, others silent with it",
			map[string]tally{"a": {members: 100, overdue: 40}, "b": {members: 10, overdue: 1}}, []string{"a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for s := range heldServices(tt.all) {
				got = append(got, s)
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("held %v, want %v", got, tt.want)
			}
		})
	}
}

const second = int64(1e6)

func TestJudge(t *testing.T) {
	g := guard{limit: 5 * time.Minute, share: 0.05}
	cut := map[string]tally{"a": {members: 4, overdue: 4, unproven: 2}, "calm": {members: 90}}
	back := map[string]tally{"a": {members: 4, overdue: 1, unproven: 1}, "calm": {members: 90}}
	live := suspect{id: 1, service: "a", limit: 30 * second}
	since := func(at int64) suspect {
		return suspect{id: 2, service: "a", limit: 30 * second, unproven: true, since: at * second}
	}
	tests := []struct {
		name     string
		suspects []suspect
		all      map[string]tally
		memory   guardState
		clock    int64
		want     []verdict
	}{
		{"alone: stale", []suspect{live}, back, nil, 100, []verdict{condemn}},
		{"with many: unproven", []suspect{live}, cut, nil, 100, []verdict{doubt}},
		{"held", []suspect{since(100)}, cut, nil, 101, []verdict{keep}},
		{"held, just below the limit", []suspect{since(100)}, cut, guardState{"a": {creditedAt: 1}}, 399, []verdict{keep}},
		{"time is up, credit begins", []suspect{since(100)}, cut, nil, 400, []verdict{keep}},
		{"time is up, credit is there", []suspect{since(100)}, cut, guardState{"a": {creditedAt: 400 * second}}, 402, []verdict{released}},
		{"half of them are another partition's", []suspect{since(100)}, cut, guardState{"a": {creditedAt: 400 * second}}, 401, []verdict{keep}},
		{"condition ended just now", []suspect{since(100)}, back, nil, 150, []verdict{keep}},
		{"condition ended one limit ago", []suspect{since(100)}, back, guardState{"a": {relieved: 150 * second}}, 180, []verdict{keep}},
		{"condition ended longer ago", []suspect{since(100)}, back, guardState{"a": {relieved: 150 * second}}, 181, []verdict{condemn}},
		{"condition came back", []suspect{since(100)}, cut, guardState{"a": {relieved: 150 * second}}, 181, []verdict{keep}},
		{"the longest held goes first", []suspect{since(101), since(100)}, cut, guardState{"a": {creditedAt: 400 * second}}, 401,
			[]verdict{keep, released}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := g.judge(tt.suspects, tt.all, heldServices(tt.all), tt.memory, tt.clock*second)
			if !slices.Equal(got, tt.want) {
				t.Errorf("verdicts %v, want %v", got, tt.want)
			}
		})
	}
}

// A service of 1000 in four partitions is released by about 5 % a second, never in a burst, and wholly.
func TestJudgeReleasesInSmallSteps(t *testing.T) {
	const partitions, each = 4, 250
	g := guard{limit: 5 * time.Minute, share: 0.05}
	left := [partitions][]suspect{}
	memory := [partitions]guardState{}
	for p := range left {
		for i := range each {
			left[p] = append(left[p], suspect{id: int64(p*each + i), service: "a", limit: 30 * second, unproven: true, since: second})
		}
	}
	total := partitions * each
	for clock := int64(301); total > 0; clock++ {
		if clock > 301+200 {
			t.Fatalf("%d of them are held after 200 s", total)
		}
		all := map[string]tally{"a": {members: total, overdue: total, unproven: total}}
		step := 0
		for p := range left {
			verdicts, next := g.judge(left[p], all, heldServices(all), memory[p], clock*second)
			memory[p] = next
			var rest []suspect
			for i, v := range verdicts {
				if v == keep {
					rest = append(rest, left[p][i])
				}
			}
			step += len(left[p]) - len(rest)
			left[p] = rest
		}
		if limit := max(partitions, total/20+partitions); step > limit {
			t.Fatalf("%d of %d were released within a second, want at most %d", step, total, limit)
		}
		total -= step
	}
}

// A judgement that was rolled back must not have changed what is remembered.
func TestJudgeLeavesMemoryAlone(t *testing.T) {
	g := guard{limit: time.Minute, share: 1}
	memory := guardState{"a": {creditedAt: 400 * second, credit: 0.5}}
	all := map[string]tally{"a": {members: 4, overdue: 4, unproven: 4}}
	g.judge([]suspect{{id: 1, service: "a", unproven: true, since: 1}}, all, heldServices(all), memory, 500*second)
	if got := memory["a"]; got != (guardMemory{creditedAt: 400 * second, credit: 0.5}) {
		t.Errorf("memory became %+v", got)
	}
}

func TestCourtLimit(t *testing.T) {
	c := &court{verdicts: []verdict{doubt, keep, condemn, released, condemn}}
	c.limit(2)
	if want := []verdict{doubt, keep, condemn, keep, keep}; !slices.Equal(c.verdicts, want) {
		t.Errorf("verdicts %v, want %v", c.verdicts, want)
	}
}
