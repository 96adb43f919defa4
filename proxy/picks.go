package proxy

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/upstrand"
)

const (
	recordFor    = 10 * time.Minute // after the last look at an upstream's picks
	recordPicks  = 1000             // kept of each upstream
	picksDefault = 100              // shown
)

// recorded is an upstream or an upstrand that can keep what becomes of it.
type recorded interface{ Record(n int) }

// recorders is which upstreams keep their picks, and which upstrands their walks, for /debug/picks, each until nobody has
// looked for a while: recording costs every pick an allocation, so that it must not stay on by mistake.
type recorders struct {
	mu    sync.Mutex
	until map[string]*time.Timer // by what is recorded: an upstream's name, or "upstrand" and a name
}

func (r *recorders) on(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until[key] != nil
}

// keep switches recording on, or lets it stay on. It reports whether it was on.
func (r *recorders) keep(key string, of recorded) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.until[key]; t != nil {
		t.Reset(recordFor)
		return true
	}
	if r.until == nil {
		r.until = map[string]*time.Timer{}
	}
	of.Record(recordPicks)
	r.until[key] = time.AfterFunc(recordFor, func() { r.stop(key, of) })
	return false
}

func (r *recorders) stop(key string, of recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.until[key]; t != nil {
		t.Stop()
		delete(r.until, key)
	}
	of.Record(0)
}

// note switches recording on or off, as the request says, and tells what follows.
func (r *recorders) note(q url.Values, key string, of recorded) string {
	switch {
	case q.Has("off"):
		r.stop(key, of)
		return "nothing is recorded any more"
	case r.keep(key, of):
		return "recorded until 10 minutes after this; &off=1 ends it now"
	}
	return "recording begins now, until 10 minutes after the last request for this page: ask again after some traffic"
}

// close ends all recording.
func (r *recorders) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.until {
		t.Stop()
	}
	clear(r.until)
}

type picksPage struct {
	Upstream string                 `json:"upstream"`
	Note     string                 `json:"note"`
	Picks    []*balance.Explanation `json:"picks"` // the oldest first
}

type walksPage struct {
	Upstrand string     `json:"upstrand"`
	Note     string     `json:"note"`
	Walks    []walkPage `json:"walks"` // the one that ended first at first
}

// walkPage is one request's walk.
type walkPage struct {
	Time   time.Time  `json:"time"`
	Method string     `json:"method"`
	Stops  []string   `json:"stops"`
	End    string     `json:"end"` // why the last stop's result was final
	Steps  []stepPage `json:"steps"`
}

// stepPage is one step of a walk, by codes and for people.
type stepPage struct {
	What        string `json:"what"` // start, skip, clear, next, final, stay, leave
	Upstream    string `json:"upstream,omitempty"`
	Backup      bool   `json:"backup,omitempty"`
	Status      int    `json:"status,omitempty"`
	Own         bool   `json:"no_backend_answered,omitempty"`
	Why         string `json:"why"`
	To          string `json:"to,omitempty"`
	Blacklisted int64  `json:"blacklisted_for_s,omitempty"`
	Text        string `json:"text"`
}

// showPicks answers /debug/picks?upstream=NAME&n=N: the last N picks (100; at most 1000), each with every candidate and
// why it was passed over; and ?upstrand=NAME: the last walks, each with its stops, what was passed over and why, why it
// went on and why it ended. Recording begins with the first request for an upstream or upstrand and ends ten minutes after
// the last one, or with &off=1.
func (p *Proxy) showPicks(w http.ResponseWriter, r *http.Request) {
	t, q := p.table.Load(), r.URL.Query()
	if t == nil {
		http.Error(w, errNoTopology.Error(), http.StatusServiceUnavailable)
		return
	}
	n := picksDefault
	if text := q.Get("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > recordPicks {
			http.Error(w, fmt.Sprintf("n=%q: want a number from 1 to %d", text, recordPicks), http.StatusBadRequest)
			return
		}
	}
	switch {
	case q.Has("upstrand") && q.Has("upstream"):
		http.Error(w, "upstream and upstrand: want one of the two", http.StatusBadRequest)
	case q.Has("upstrand"):
		p.showWalks(w, q, n)
	default:
		p.showPicksOf(w, t, q, n)
	}
}

func (p *Proxy) showPicksOf(w http.ResponseWriter, t *table, q url.Values, n int) {
	e := t.groups[q.Get("upstream")]
	if e == nil {
		names := slices.Sorted(maps.Keys(t.groups))
		http.Error(w, fmt.Sprintf("upstream=%q: want one of %q", q.Get("upstream"), names), http.StatusNotFound)
		return
	}
	page := picksPage{Upstream: e.group.Name(), Note: p.recorders.note(q, e.group.Name(), e.group), Picks: []*balance.Explanation{}}
	if picks := e.group.Picks(); len(picks) > 0 {
		page.Picks = picks[max(0, len(picks)-n):]
	}
	writeJSON(w, page)
}

func (p *Proxy) showWalks(w http.ResponseWriter, q url.Values, n int) {
	e := p.strandEntry(q.Get("upstrand"))
	if e == nil {
		p.noUpstrand(w, "upstrand", q.Get("upstrand"))
		return
	}
	state := e.upstrand.State
	page := walksPage{Upstrand: e.from.Name, Note: p.recorders.note(q, "upstrand "+state.Name(), state), Walks: []walkPage{}}
	walks := state.Walks()
	for _, walk := range walks[max(0, len(walks)-n):] {
		page.Walks = append(page.Walks, walkPageOf(walk))
	}
	writeJSON(w, page)
}

func walkPageOf(walk *upstrand.Recorded) walkPage {
	page := walkPage{Time: walk.Time.UTC(), Method: walk.Method, Stops: []string{}}
	for _, s := range walk.Steps {
		page.Steps = append(page.Steps, stepPage{s.What, s.Upstream, s.Backup, s.Status, s.Own, s.Why, s.To, s.Seconds, s.String()})
		switch s.What {
		case "start":
			page.Stops = append(page.Stops, s.Upstream)
		case "next":
			page.Stops = append(page.Stops, s.To)
		case "stay":
			page.Stops = page.Stops[:max(0, len(page.Stops)-1)] // the stop before that it was to follow has the answer
		}
		page.End = s.Why
	}
	return page
}
