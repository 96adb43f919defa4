package simulate

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// totals counts what happened.
type totals struct {
	requests, tries int
	peers           map[*balance.Peer]int
	statuses        map[int]int
}

func newTotals() *totals {
	return &totals{peers: map[*balance.Peer]int{}, statuses: map[int]int{}}
}

func (t *totals) add(v *visit) {
	t.requests++
	t.tries += len(v.tries)
	for i := range v.tries {
		t.peers[v.tries[i].peer]++
	}
	t.statuses[v.client.status]++
}

// printTotals tells how often each server was picked, by upstream in the order of the configuration.
func (r *run) printTotals() {
	t := r.totals
	r.totalled = true
	fmt.Fprintf(r.out, "totals: %d requests, %d picks of a server, %v of virtual time\n", t.requests, t.tries,
		time.Duration(r.world.Now()-r.began).Round(time.Millisecond))
	for _, name := range r.proxy.Upstreams() {
		r.printShares(name)
	}
	codes := make([]int, 0, len(t.statuses))
	for c := range t.statuses {
		codes = append(codes, c)
	}
	sort.Ints(codes)
	var b strings.Builder
	for _, c := range codes {
		fmt.Fprintf(&b, "  %d: %d", c, t.statuses[c])
	}
	if b.Len() > 0 {
		fmt.Fprintf(r.out, "  answers %s\n", b.String())
	}
}

func (r *run) printShares(upstream string) {
	g := r.proxy.Group(upstream)
	all := 0
	for _, p := range g.Peers() {
		all += r.totals.peers[p]
	}
	if all == 0 {
		return
	}
	fmt.Fprintf(r.out, "  upstream %s\n", upstream)
	for i, p := range g.Peers() {
		n := r.totals.peers[p]
		s := g.Servers()[i]
		fmt.Fprintf(r.out, "    %-24s %9d  %6s %%  (weight %d%s)\n", p.ID(), n,
			strconv.FormatFloat(100*float64(n)/float64(all), 'f', 2, 64), max(s.Weight, 1), backupText(s.Key.Backup))
	}
}

func backupText(backup bool) string {
	if backup {
		return ", backup"
	}
	return ""
}

// printState tells the state of the peers of an upstream, or of all.
func (r *run) printState(upstream string) error {
	found := false
	for _, name := range r.proxy.Upstreams() {
		if upstream != "" && name != upstream {
			continue
		}
		g := r.proxy.Group(name)
		found = true
		fmt.Fprintf(r.out, "state of upstream %s at %s\n", name, r.clockText(r.world.Now()))
		for _, p := range g.Snapshot() {
			fmt.Fprintf(r.out, "    %-24s weight %d, current %s, effective %s, debt %s, open %d, fails %d, %s\n", p.ID, p.Weight,
				inUnits(p.Current, p.Unit), inUnits(p.Effective, p.Unit), inUnits(p.Debt, p.Unit), p.Conns, p.Fails, p.Reason)
		}
	}
	if !found {
		return r.noUpstream(upstream)
	}
	return nil
}
