package proxy

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/upstrand"
)

// UpstrandPage is an upstrand in force with what this proxy remembers of it, as /debug/upstrands shows it. Counts are since
// the proxy has had an upstrand of this name.
type UpstrandPage struct {
	Name   string `json:"name"`
	Origin string `json:"origin"` // declared (by operators or in the file) or derived
	// Start is where requests begin: turn (each one upstream further), first, or random.
	Start         string          `json:"start"`
	Cursor        string          `json:"cursor,omitempty"` // upstream where the next request begins, unless it is blacklisted; empty: chance says
	NextStatuses  []string        `json:"next_upstream_statuses"`
	NonIdempotent bool            `json:"non_idempotent,omitempty"`
	NextTimeout   float64         `json:"next_upstream_timeout_s,omitempty"` // 0: no limit
	Intercepts    []InterceptPage `json:"intercept_statuses,omitempty"`
	Members       []MemberPage    `json:"members"` // in the order in which a request of now would go: normal ones, then the backup

	Walks          uint64            `json:"walks"` // requests that entered a stop
	Stops          uint64            `json:"stops"`
	Jumps          map[string]uint64 `json:"jumps"` // from one stop to another, by cause
	Ended          map[string]uint64 `json:"ended"` // walks, by why they ended
	Intercepted    uint64            `json:"intercepted"`
	AllBlacklisted uint64            `json:"all_blacklisted"` // times that all were, and were taken off the list
	WalkSeconds    float64           `json:"walk_seconds"`    // of all walks together
}

// InterceptPage is an intercept_statuses line.
type InterceptPage struct {
	Statuses []string `json:"statuses"`
	URI      string   `json:"uri"`
}

// MemberPage is an upstream of an upstrand.
type MemberPage struct {
	Upstream         string            `json:"upstream"`
	Backup           bool              `json:"backup,omitempty"`
	Place            int               `json:"place"`          // in its list as declared, from 1
	Peers            int               `json:"peers"`          // servers
	Eligible         int               `json:"eligible_peers"` // those that could be given now
	Interval         float64           `json:"blacklist_interval_s"`
	BlacklistedUntil *time.Time        `json:"blacklisted_until,omitempty"`
	BlacklistedFor   float64           `json:"blacklisted_for_s,omitempty"` // from now on
	Stops            uint64            `json:"stops"`
	Jumps            map[string]uint64 `json:"jumps"` // from it to another stop, by cause
	Blacklistings    uint64            `json:"blacklistings"`
}

// ResetPage is what a reset did.
type ResetPage struct {
	Upstrand string `json:"upstrand"`
	Upstream string `json:"upstream,omitempty"` // empty: all of them, and the cursor
	Cleared  int    `json:"cleared"`            // upstreams that were on the blacklist
}

func (p *Proxy) upstrandPage(e *strandEntry) UpstrandPage {
	now := p.clock()
	v := e.upstrand.State.View(now)
	page := UpstrandPage{
		Name: e.from.Name, Origin: string(e.from.Origin), Start: startOf(v.Spec), NextStatuses: append([]string{}, e.from.NextStatuses...),
		NonIdempotent: v.Spec.NonIdempotent, NextTimeout: v.Spec.Timeout.Seconds(), Members: make([]MemberPage, 0, len(v.Members)),
		Walks: v.Totals.Walks, Stops: v.Totals.Stops, Jumps: jumpsOf(v.Totals.Jumps), Ended: endsOf(v.Totals.Finals),
		Intercepted: v.Totals.Intercepts, AllBlacklisted: v.Totals.Cleared, WalkSeconds: v.Totals.Seconds,
	}
	for _, i := range e.from.Intercepts {
		page.Intercepts = append(page.Intercepts, InterceptPage{i.Statuses, i.URI})
	}
	for _, backup := range []bool{false, true} {
		list, next := membersOf(&v, backup, now)
		if next >= 0 && page.Cursor == "" {
			page.Cursor = list[next].Upstream
		}
		at := max(next, 0)
		page.Members = append(append(page.Members, list[at:]...), list[:at]...)
	}
	return page
}

func startOf(s upstrand.Spec) string {
	switch {
	case s.PerRequest && s.StartRandom:
		return "random"
	case s.PerRequest:
		return "first"
	}
	return "turn"
}

// membersOf is one list of an upstrand as declared, and the place in it where the next request begins; -1: chance says, or
// there is none.
func membersOf(v *upstrand.View, backup bool, now int64) (list []MemberPage, next int) {
	next = -1
	for _, m := range v.Members {
		if m.Backup != backup {
			continue
		}
		if m.Next {
			next = len(list)
		}
		page := MemberPage{
			Upstream: m.Name, Backup: backup, Place: len(list) + 1, Stops: m.Counts.Stops, Jumps: jumpsOf(m.Counts.Jumps), Blacklistings: m.Counts.Blacklisted,
		}
		if m.BlockedUntil > 0 {
			until := time.Unix(m.BlockedUntil, 0).UTC()
			page.BlacklistedUntil, page.BlacklistedFor = &until, max(0, until.Sub(time.Unix(0, now)).Seconds())
		}
		for _, from := range v.Spec.Members {
			if from.Name == m.Name && from.Backup == backup {
				page.Interval = from.Blacklist.Seconds()
				page.Peers, page.Eligible = peersOf(from.Group)
			}
		}
		list = append(list, page)
	}
	return list, next
}

func peersOf(g *balance.Group) (all, eligible int) {
	if g == nil {
		return 0, 0
	}
	for _, peer := range g.Snapshot() {
		if all++; peer.Reason == balance.Eligible.String() {
			eligible++
		}
	}
	return all, eligible
}

func jumpsOf(counts [upstrand.Causes]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for cause, n := range counts {
		if n > 0 {
			out[upstrand.Cause(cause).String()] = n
		}
	}
	return out
}

func endsOf(counts [upstrand.Finals]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for final, n := range counts {
		if n > 0 {
			out[upstrand.Final(final).String()] = n
		}
	}
	return out
}

// showUpstrands answers /debug/upstrands?upstrand=NAME, or ?name=NAME: one upstrand, or without a name all of them, in their order.
func (p *Proxy) showUpstrands(w http.ResponseWriter, r *http.Request) {
	t := p.table.Load()
	if t == nil {
		http.Error(w, errNoTopology.Error(), http.StatusServiceUnavailable)
		return
	}
	pages := []UpstrandPage{}
	only, err := oneName(r.URL.Query(), "upstrand")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if only != "" {
		e := p.strandEntry(only)
		if e == nil {
			p.noUpstrand(w, "name", only)
			return
		}
		pages = append(pages, p.upstrandPage(e))
	} else {
		for _, name := range t.strandOrder {
			pages = append(pages, p.upstrandPage(t.strands[name]))
		}
	}
	writeJSON(w, pages)
}

func (p *Proxy) noUpstrand(w http.ResponseWriter, param, name string) {
	text := fmt.Sprintf("%s=%q: want one of %q", param, name, p.Upstrands())
	if len(p.Upstrands()) == 0 {
		text = fmt.Sprintf("%s=%q: there is no upstrand at all", param, name)
	}
	http.Error(w, text, http.StatusNotFound)
}

// resetUpstrand answers POST /debug/upstrands/reset?name=NAME&upstream=UPSTREAM: it takes the upstream off the blacklist;
// without one all of them, and the next request begins at the first.
func (p *Proxy) resetUpstrand(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name, of := q.Get("name"), q.Get("upstream")
	e := p.strandEntry(name)
	switch {
	case name == "":
		http.Error(w, "name is missing: want /debug/upstrands/reset?name=UPSTRAND or …&upstream=UPSTREAM", http.StatusBadRequest)
		return
	case e == nil:
		p.noUpstrand(w, "name", name)
		return
	case q.Has("upstream") && of == "":
		http.Error(w, "upstream is empty: want the name of one, or no such parameter for all", http.StatusBadRequest)
		return
	}
	cleared, ok := e.upstrand.State.Reset(of)
	if !ok {
		names := []string{}
		for _, m := range e.spec.Members {
			names = append(names, m.Name)
		}
		http.Error(w, fmt.Sprintf("upstream=%q is not in upstrand %s: want one of %q", of, e.from.Name, names), http.StatusNotFound)
		return
	}
	p.log.Info().Str("upstrand", e.from.Name).Str("upstream", of).Int("cleared", cleared).Msg("blacklist reset by an operator")
	writeJSON(w, ResetPage{e.from.Name, of, cleared})
}

// Blacklisted is an upstream that an upstrand in force passes over.
type Blacklisted struct {
	Upstrand, Upstream string
	Until              int64 // Unix second from which it is free again
}

// Blacklisted is all of them at this moment, those first that stay longest.
func (p *Proxy) Blacklisted() (list []Blacklisted) {
	t := p.table.Load()
	if t == nil {
		return nil
	}
	now := p.clock()
	for _, name := range t.strandOrder {
		for _, m := range t.strands[name].upstrand.State.View(now).Members {
			if m.BlockedUntil > 0 {
				list = append(list, Blacklisted{t.strands[name].from.Name, m.Name, m.BlockedUntil})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Blacklisted) int { return cmp.Compare(b.Until, a.Until) })
	return list
}
