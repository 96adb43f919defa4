package simulate

import (
	"encoding/json"
	"fmt"

	"github.com/upstrand/upstrand/deploy/conformance"
	"github.com/upstrand/upstrand/proxy/balance"
)

// warnings counts what nginx would have warned of in its log: picks that found nobody (no_live), and failures with which
// a server reached its max_fails (disabled).
type warnings struct {
	noLive, disabled int
	fails            map[*balance.Peer]int
}

// watch is told of each pick.
func (w *warnings) watch(e *balance.Explanation) {
	if e.Winner == "" {
		w.noLive++
	}
}

// look takes in what failed since it last looked, which must be after every request: in one request a server fails once.
func (r *replay) look() {
	w := &r.warned
	if w.fails == nil {
		w.fails = map[*balance.Peer]int{}
	}
	for _, name := range r.proxy.Upstreams() {
		g := r.proxy.Group(name)
		for i, s := range g.Snapshot() {
			p := g.Peers()[i]
			if s.Fails > w.fails[p] && s.MaxFails > 0 && s.Fails >= s.MaxFails {
				w.disabled++
			}
			w.fails[p] = s.Fails
		}
	}
}

// compareWarnings compares the counts of a step. A step of which we do something else on purpose has other counts.
func (r *replay) compareWarnings(i int, s *conformance.Step) {
	got := map[string]int{"no_live": r.warned.noLive, "disabled": r.warned.disabled}
	r.warned.noLive, r.warned.disabled = 0, 0
	if r.ours[fmt.Sprint(i+1)] != nil || s.Expect == nil {
		return
	}
	var want map[string]int
	if text := s.Expect["error_log"]; text != nil {
		if err := json.Unmarshal(text, &want); err != nil {
			r.diffs = append(r.diffs, err.Error())
		}
	}
	for _, what := range []string{"no_live", "disabled"} {
		if got[what] != want[what] {
			r.diffs = append(r.diffs, fmt.Sprintf("step %d: error_log %s: want %d, got %d", i+1, what, want[what], got[what]))
		}
	}
}
