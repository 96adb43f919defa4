package proxy

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// Admin serves the pages by which people see what is in force: /debug/topology (version, age, routes and problems) and
// /debug/upstreams (peers with their live state; ?name= for one). Report, which may be nil, adds what the agent says.
func (p *Proxy) Admin(report func() map[string]string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/topology", func(w http.ResponseWriter, _ *http.Request) { p.showTopology(w, report) })
	mux.HandleFunc("GET /debug/upstreams", p.showUpstreams)
	return mux
}

type topologyPage struct {
	Version   int64             `json:"version"`
	Epoch     int64             `json:"epoch"`
	Digest    string            `json:"digest"`
	Committed time.Time         `json:"committed_at"`
	AgeMS     int64             `json:"age_ms"`
	Applied   time.Time         `json:"built_at"`
	Zone      string            `json:"zone,omitempty"`
	Agent     map[string]string `json:"agent,omitempty"`
	Upstreams int               `json:"upstreams"`
	Problems  []string          `json:"problems,omitempty"`
	Routes    []routePage       `json:"routes"`
}

type routePage struct {
	Host  string   `json:"host,omitempty"`
	Path  string   `json:"path"`
	To    string   `json:"to"`
	Stops []string `json:"stops"` // upstreams in the order in which they are tried
}

func (p *Proxy) showTopology(w http.ResponseWriter, report func() map[string]string) {
	t := p.table.Load()
	if t == nil {
		http.Error(w, errNoTopology.Error(), http.StatusServiceUnavailable)
		return
	}
	page := topologyPage{
		Version: t.topology.Version, Epoch: t.topology.Epoch, Digest: t.topology.Digest.String(),
		Committed: t.topology.At, AgeMS: time.Since(t.topology.At).Milliseconds(), Applied: t.applied,
		Zone: p.config.Zone, Upstreams: len(t.groups), Routes: make([]routePage, 0, len(t.routes)),
	}
	if report != nil {
		page.Agent = report()
	}
	for _, problem := range t.problems {
		page.Problems = append(page.Problems, problem.Error())
	}
	for _, r := range t.routes {
		page.Routes = append(page.Routes, routePage{r.host, r.path, r.target.name, stopNames(r.target.stops)})
	}
	writeJSON(w, page)
}

func stopNames(stops []*balance.Group) []string {
	names := make([]string, len(stops))
	for i, g := range stops {
		names[i] = g.Name()
	}
	return names
}

type upstreamPage struct {
	Name  string              `json:"name"`
	Peers []balance.PeerState `json:"peers"`
}

func (p *Proxy) showUpstreams(w http.ResponseWriter, r *http.Request) {
	t := p.table.Load()
	if t == nil {
		http.Error(w, errNoTopology.Error(), http.StatusServiceUnavailable)
		return
	}
	only := r.URL.Query().Get("name")
	pages := []upstreamPage{}
	for name, e := range t.groups {
		if only == "" || only == name {
			pages = append(pages, upstreamPage{name, e.group.Snapshot()})
		}
	}
	if only != "" && len(pages) == 0 {
		http.Error(w, "no upstream "+only, http.StatusNotFound)
		return
	}
	slices.SortFunc(pages, func(a, b upstreamPage) int { return strings.Compare(a.Name, b.Name) })
	writeJSON(w, pages)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}
