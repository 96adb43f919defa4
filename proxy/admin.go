package proxy

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// Admin serves the pages by which people see what is in force: /debug/topology (version, age, file, routes and problems),
// /debug/upstreams (method and peers with their live state; ?upstream= for one), /debug/upstrands (members in the order of a walk,
// cursor, blacklist, counts; ?upstrand= for one) and /debug/picks (why peers were picked, how upstrands were walked; see
// showPicks). POST /debug/upstrands/reset empties a blacklist; pages of other sites that a browser shows can't. Report, which
// may be nil, adds what the agent says; file likewise what is known of a configuration file.
func (p *Proxy) Admin(report func() map[string]string, file func() *FileState) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/topology", func(w http.ResponseWriter, _ *http.Request) { p.showTopology(w, report, file) })
	mux.HandleFunc("GET /debug/upstreams", p.showUpstreams)
	mux.HandleFunc("GET /debug/picks", p.showPicks)
	mux.HandleFunc("GET /debug/upstrands", p.showUpstrands)
	mux.HandleFunc("POST /debug/upstrands/reset", p.resetUpstrand)
	return http.NewCrossOriginProtection().Handler(mux)
}

// FileState is what is known of the configuration file that is served.
type FileState struct {
	Name    string    `json:"name"`
	Loaded  time.Time `json:"loaded_at"`         // when what is in force was read
	Current bool      `json:"current"`           // the file as it was read last is in force
	Tried   time.Time `json:"tried_at"`          // when it was read last
	Faults  []string  `json:"faults,omitempty"`  // why what was read last is not in force
	Notices []string  `json:"notices,omitempty"` // what is in force without meaning anything here
	Listen  []string  `json:"listen"`
}

type topologyPage struct {
	*publishedPage                   // nil, and left out: nothing is published, a file is served
	Applied        time.Time         `json:"built_at"`
	Zone           string            `json:"zone,omitempty"`
	Agent          map[string]string `json:"agent,omitempty"`
	File           *FileState        `json:"file,omitempty"`
	Upstreams      int               `json:"upstreams"`
	Shadowed       []string          `json:"shadowed,omitempty"` // published, and not used because the file has their names
	Problems       []string          `json:"problems,omitempty"`
	Routes         []routePage       `json:"routes"`
}

// publishedPage is what Kafka said.
type publishedPage struct {
	Version   int64     `json:"version"`
	Epoch     int64     `json:"epoch"`
	Digest    string    `json:"digest"`
	Committed time.Time `json:"committed_at"`
	AgeMS     int64     `json:"age_ms"`
}

type routePage struct {
	Host  string   `json:"host,omitempty"`
	Path  string   `json:"path"`
	To    string   `json:"to"`
	Stops []string `json:"stops"` // upstreams in the order in which they are tried
}

func (p *Proxy) showTopology(w http.ResponseWriter, report func() map[string]string, file func() *FileState) {
	t := p.table.Load()
	if t == nil {
		http.Error(w, errNoTopology.Error(), http.StatusServiceUnavailable)
		return
	}
	page := topologyPage{
		Applied: t.applied, Zone: p.config.Zone, Upstreams: len(t.groups), Shadowed: t.shadowed, Routes: make([]routePage, 0, len(t.routes)),
	}
	if o := t.topology; o != nil {
		page.publishedPage = &publishedPage{o.Version, o.Epoch, o.Digest.String(), o.At, time.Since(o.At).Milliseconds()}
	}
	if report != nil {
		page.Agent = report()
	}
	if file != nil {
		page.File = file()
	}
	for _, problem := range t.problems {
		page.Problems = append(page.Problems, problem.Error())
	}
	for _, r := range t.routes {
		page.Routes = append(page.Routes, routePage{r.host, r.path, r.target.name, r.target.stops()})
	}
	writeJSON(w, page)
}

type upstreamPage struct {
	Name      string              `json:"name"`
	Method    string              `json:"method"`
	Sticky    string              `json:"sticky,omitempty"`
	Recording bool                `json:"recording,omitempty"` // picks are kept for /debug/picks
	Peers     []balance.PeerState `json:"peers"`
}

func pageOf(e *entry, recording bool) upstreamPage {
	spec := e.group.Spec()
	return upstreamPage{e.group.Name(), methodText(e), spec.Sticky.Kind, recording, e.group.Snapshot()}
}

// methodText is the method as a file says it.
func methodText(e *entry) string {
	text := e.group.Spec().Method.String()
	if key := e.from.Method.Key; key != "" {
		text = strings.Replace(text, "hash", "hash "+key, 1)
	}
	return text
}

func (p *Proxy) showUpstreams(w http.ResponseWriter, r *http.Request) {
	t := p.table.Load()
	if t == nil {
		http.Error(w, errNoTopology.Error(), http.StatusServiceUnavailable)
		return
	}
	only, err := oneName(r.URL.Query(), "upstream")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pages := []upstreamPage{}
	for name, e := range t.groups {
		if only == "" || only == name {
			pages = append(pages, pageOf(e, p.recorders.on(name)))
		}
	}
	if only != "" && len(pages) == 0 {
		http.Error(w, fmt.Sprintf("no upstream %s: want one of %q", only, slices.Sorted(maps.Keys(t.groups))), http.StatusNotFound)
		return
	}
	slices.SortFunc(pages, func(a, b upstreamPage) int { return strings.Compare(a.Name, b.Name) })
	writeJSON(w, pages)
}

// oneName is the name that a page is asked for, as name= or by what it is of; empty: all.
func oneName(q url.Values, kind string) (string, error) {
	for key := range q {
		if key != "name" && key != kind {
			return "", fmt.Errorf("%s=: unknown parameter; allowed: %s, name", key, kind)
		}
	}
	if q.Has("name") && q.Has(kind) {
		return "", fmt.Errorf("%s and name: want one of the two", kind)
	}
	return q.Get("name") + q.Get(kind), nil
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}
