package proxy

import (
	"bytes"
	"strings"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/site"
)

// table is all that a request needs to know, of one moment: of a published topology, of a file, or of both. It is
// immutable.
type table struct {
	proxy       *Proxy
	topology    *topology.Topology  // nil: none was published
	site        *site.Site          // nil: no file; with one it takes every request
	file        *Compiled           // what site is of
	users       *users              // of site
	counts      map[string]*service // what is counted of site's requests, by upstream
	applied     time.Time
	hosts       map[string]*paths       // by lower-case name without port; "" is any host
	groups      map[string]*entry       // by upstream
	order       []string                // the keys of groups: the file's, then published ones
	names       map[string]*entry       // the same by lower-case name: a file's names have no case
	strands     map[string]*strandEntry // by lower-case name
	strandOrder []string                // the keys of strands: the file's, then published ones
	routes      []route                 // as listed, for people
	problems    []topology.Problem
	shadowed    []string // published upstreams whose name the file has too
}

// entry is an upstream's group and what it was built from: the same pointer means that nothing changed.
type entry struct {
	from     *topology.Group
	group    *balance.Group
	upstream site.Upstream
}

// target is what a route leads to.
type target struct {
	name    string
	group   *balance.Group // nil: it leads to strand
	strand  *strandEntry
	service *service
}

type route struct {
	host, path string
	target     *target
}

// paths is the routes of one host.
type paths struct {
	routes map[string]*target // without slash at the end
	root   *target            // of "/": whatever no other route takes; may be nil
	depth  int                // most segments of any route
}

// lookup finds the route of a request: the host's own routes come before those of any host, and the longest path wins.
// path is normalised.
func (t *table) lookup(authority []byte, path string) *target {
	if len(t.hosts) > 1 || t.hosts[""] == nil {
		var room [64]byte
		if h := t.hosts[string(appendHost(room[:0], authority))]; h != nil {
			if found := h.longest(path); found != nil {
				return found
			}
		}
	}
	if h := t.hosts[""]; h != nil {
		return h.longest(path)
	}
	return nil
}

// longest tries the prefixes that end at a segment, the longest first, and none with more segments than any route has.
func (h *paths) longest(path string) *target {
	end := prefix(path, h.depth)
	for end > 0 {
		if t := h.routes[path[:end]]; t != nil {
			return t
		}
		end = strings.LastIndexByte(path[:end], '/')
	}
	return h.root
}

// prefix is the length of the first n segments of path.
func prefix(path string, n int) int {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			if n--; n <= 0 {
				return i
			}
		}
	}
	return len(path)
}

// appendHost appends the name in an authority: in lower case, without port, brackets and final dot.
func appendHost(dst, authority []byte) []byte {
	host := authority
	end := -1
	if len(host) > 0 && host[0] == '[' {
		end = bytes.IndexByte(host, ']')
	}
	switch i := bytes.LastIndexByte(host, ':'); {
	case end > 0:
		host = host[1:end]
	case i >= 0:
		host = bytes.TrimSuffix(host[:i], []byte("."))
	default:
		host = bytes.TrimSuffix(host, []byte("."))
	}
	for _, c := range host {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// addRoute puts a route into the table. The topology has at most one for a host and path.
func (t *table) addRoute(r topology.Route, to *target) {
	host := strings.ToLower(r.Host)
	h := t.hosts[host]
	if h == nil {
		h = &paths{routes: map[string]*target{}}
		t.hosts[host] = h
	}
	t.routes = append(t.routes, route{r.Host, r.Path, to})
	path := strings.TrimSuffix(r.Path, "/")
	if path == "" {
		h.root = to
		return
	}
	h.routes[path] = to
	h.depth = max(h.depth, strings.Count(path, "/"))
}
