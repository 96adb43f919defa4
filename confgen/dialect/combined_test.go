package dialect

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/confgen/topology"
)

// TestCombinedVectors compares the expansion of theme 10 with what nginx did: as long as all backends answer, the
// recorded order is that of smooth weighted round robin over the main servers that are up, so each shows whose peers
// with which weights a group has.
func TestCombinedVectors(t *testing.T) {
	compared := 0
	for _, v := range vectors(t, "10") {
		found := v.check()
		names := map[string]string{}
		for name, addr := range v.Addresses {
			names[addr] = name
		}
		groups := map[string]*rotation{}
		for _, g := range found.expanded.Upstreams {
			groups[strings.ToLower(g.Name)] = newRotation(g, names)
		}
		for i, step := range v.Steps {
			if step.Set != nil || step.Open != nil || step.Reload || !strings.HasPrefix(step.Request.Path, "/") {
				break
			}
			g := groups[strings.ToLower(step.Request.Path[1:])]
			if g == nil || g.group.Method != (topology.Method{}) {
				continue
			}
			for n, got := range step.Expect.Peers {
				compared++
				if want := g.next(); !slices.Equal(got, []string{want}) {
					t.Errorf("%s: step %d, request %d: nginx gave %v, these peers give %s: %s", v.Name, i, n, got, want, describePeers(g.group))
				}
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d picks were compared", compared)
	}
	t.Logf("%d picks compared", compared)
}

func describePeers(g *topology.Group) string {
	var all []string
	for _, p := range g.Peers {
		all = append(all, describePeer(p))
	}
	return strings.Join(all, "; ")
}

// vectorStep is what the test needs of a step.
type vectorStep struct {
	Set     json.RawMessage `json:"set"`
	Open    json.RawMessage `json:"open"`
	Reload  bool            `json:"reload"`
	Request struct {
		Path string `json:"path"`
	} `json:"request"`
	Expect struct {
		Peers [][]string `json:"peers"`
	} `json:"expect"`
}

// rotation is smooth weighted round robin of a healthy group, written down once more.
type rotation struct {
	group   *topology.Group
	names   []string
	weights []int
	current []int
}

func newRotation(g *topology.Group, names map[string]string) *rotation {
	r := &rotation{group: g}
	for _, backup := range []bool{false, true} {
		for _, p := range g.Peers {
			if p.Backup == backup && !p.Down {
				r.names, r.weights = append(r.names, names[p.Text]), append(r.weights, p.Weight)
			}
		}
		if r.names != nil {
			break
		}
	}
	r.current = make([]int, len(r.names))
	return r
}

// next is the next server, or the mark of a group that has none.
func (r *rotation) next() string {
	if len(r.names) == 0 {
		return "!" + r.group.Name
	}
	best, total := 0, 0
	for i, w := range r.weights {
		r.current[i] += w
		total += w
		if r.current[i] > r.current[best] {
			best = i
		}
	}
	r.current[best] -= total
	return r.names[best]
}
