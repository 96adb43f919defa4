package topology

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// upstreamExpansion carries out the directives of one upstream, in their order.
type upstreamExpansion struct {
	run      *expansion
	at       int // place of the upstream in the Config
	line     int // of the directive in work
	result   *expandedGroup
	group    *Group
	ordinals map[PeerKey]int // next ordinal of a key without one; nil: there are no equals
	entries  []serverEntry   // nil while each peer is one
	settled  bool            // a directive said how to pick: method, sticky, extend_single_peers
	noBackup bool            // the method so far refuses backup servers
	zone     bool
	resolver *Resolver
	seen     map[string]bool

	slowStarts []int // lines with slow_start
}

// serverEntry is one server as it was declared: usually one peer, of a name with several addresses several. add_upstream and
// combine_server_singlets copy entries.
type serverEntry struct {
	text     string
	from, to int // its peers
	backup   bool
	runtime  bool // resolved at run time
}

// upstreamDirectives carry out a line each. The result is why it can't be used; empty when it was.
var upstreamDirectives map[string]func(x *upstreamExpansion, d Directive) string

func init() { // add_upstream leads back to the map
	upstreamDirectives = map[string]func(x *upstreamExpansion, d Directive) string{
		"discover":                (*upstreamExpansion).discover,
		"server":                  (*upstreamExpansion).server,
		"least_conn":              (*upstreamExpansion).plainMethod,
		"ip_hash":                 (*upstreamExpansion).plainMethod,
		"least_time":              (*upstreamExpansion).leastTime,
		"hash":                    (*upstreamExpansion).hash,
		"random":                  (*upstreamExpansion).random,
		"sticky":                  (*upstreamExpansion).sticky,
		"keepalive":               (*upstreamExpansion).keepalive,
		"keepalive_requests":      (*upstreamExpansion).keepaliveRequests,
		"keepalive_time":          (*upstreamExpansion).keepaliveTime,
		"keepalive_timeout":       (*upstreamExpansion).keepaliveTime,
		"queue":                   (*upstreamExpansion).queue,
		"zone":                    (*upstreamExpansion).zoneLine,
		"resolver":                (*upstreamExpansion).resolverLine,
		"resolver_timeout":        (*upstreamExpansion).resolverTimeout,
		"add_upstream":            (*upstreamExpansion).addUpstream,
		"combine_server_singlets": (*upstreamExpansion).singlets,
		"extend_single_peers":     (*upstreamExpansion).extend,
	}
}

// UpstreamDirectives are the names of all lines that may stand in an upstream, sorted.
func UpstreamDirectives() []string {
	names := make([]string, 0, len(upstreamDirectives))
	for name := range upstreamDirectives {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (e *expansion) expandUpstream(at int, sources [][]Instance) *expandedGroup {
	u := e.config.Upstreams[at]
	group := &Group{Name: u.Name, Origin: u.Origin, Keepalive: UnsetKeepalive}
	x := &upstreamExpansion{run: e, at: at, group: group, result: &expandedGroup{from: u, sources: sources, group: group}}
	if len(u.Directives) > 1 || (len(u.Directives) == 1 && u.Directives[0][0] != "discover") { // ids of one discover are distinct
		x.ordinals = map[PeerKey]int{}
	}
	for i, d := range u.Directives {
		x.line = i
		carryOut := upstreamDirectives[d[0]]
		if carryOut == nil {
			x.problem(i, "no directive of an upstream; allowed: "+strings.Join(UpstreamDirectives(), " "), false)
			continue
		}
		if reason := carryOut(x, d); reason != "" {
			x.problem(i, reason, false)
		}
	}
	x.result.entries = x.entries
	x.checkNames()
	x.checkSlowStart()
	x.checkRing(u)
	if e.opts.Strict {
		x.checkServers(u)
	}
	return x.result
}

func (x *upstreamExpansion) problem(line int, reason string, warning bool) {
	p := x.run.problem(x.at, line, reason)
	p.Warning = warning
	x.result.problems = append(x.result.problems, p)
}

// once tells whether it is the first call for a name in this upstream.
func (x *upstreamExpansion) once(name string) bool {
	if x.seen[name] {
		return false
	}
	if x.seen == nil {
		x.seen = map[string]bool{}
	}
	x.seen[name] = true
	return true
}

// addEntry appends a declared server with its peers.
func (x *upstreamExpansion) addEntry(en serverEntry, peers ...Peer) {
	if x.entries == nil && (len(peers) != 1 || en.runtime) {
		x.entries = ownEntries(x.group.Peers)
	}
	for _, p := range peers {
		x.add(p)
	}
	if x.entries != nil {
		en.from, en.to = len(x.group.Peers)-len(peers), len(x.group.Peers)
		x.entries = append(x.entries, en)
	}
}

// add appends a peer and numbers it among its equals.
func (x *upstreamExpansion) add(p Peer) {
	p.Key.Upstream, p.Key.Backup, p.Key.Ordinal = x.group.Name, p.Backup, 0
	if x.ordinals != nil {
		n := x.ordinals[p.Key]
		x.ordinals[p.Key] = n + 1
		p.Key.Ordinal = n
	}
	x.group.Peers = append(x.group.Peers, p)
}

// ownEntries makes an entry of each peer; never nil.
func ownEntries(peers []Peer) []serverEntry {
	out := make([]serverEntry, len(peers))
	for i := range peers {
		out[i] = serverEntry{text: peers[i].Text, from: i, to: i + 1, backup: peers[i].Backup}
	}
	return out
}

func (g *expandedGroup) allEntries() []serverEntry {
	if g.entries != nil {
		return g.entries
	}
	return ownEntries(g.group.Peers)
}

// checkSlowStart: the methods that refuse backup servers take no notice of a ramp. A published line is used without it.
func (x *upstreamExpansion) checkSlowStart() {
	if !x.noBackup {
		return
	}
	for _, line := range x.slowStarts {
		x.problem(line, "balancing method does not support parameter \"slow_start\": ip_hash, hash and random know no ramp", !x.run.opts.Strict)
	}
}

// maxRing is up to which sum of weights proxies build the ring of hash … consistent as nginx does. Of larger ones each
// server gets its share.
const maxRing = 100_000

func (x *upstreamExpansion) checkRing(u Upstream) {
	if !x.group.Method.Consistent {
		return
	}
	sum := 0
	for i := range x.group.Peers {
		if p := &x.group.Peers[i]; !p.Backup {
			sum += p.Weight
		}
	}
	if sum <= maxRing {
		return
	}
	line := len(u.Directives) - 1
	for u.Directives[line][0] != "hash" {
		line--
	}
	x.problem(line, fmt.Sprintf("weights add up to %d, and each costs 160 points of the ring; want at most %d, so divide them", sum, maxRing), !x.run.opts.Strict)
}

// checkServers is nginx's rule that an upstream has servers, and main ones. What went wrong with a server line has been
// reported already.
func (x *upstreamExpansion) checkServers(u Upstream) {
	if len(x.result.problems) > 0 && slices.ContainsFunc(x.result.problems, func(p Problem) bool { return !p.Warning }) {
		return
	}
	entries := x.result.allEntries()
	isMain := func(en serverEntry) bool { return !en.backup }
	discovers := slices.ContainsFunc(u.Directives, func(d Directive) bool { return d[0] == "discover" })
	switch {
	case discovers: // its servers come and go
	case len(entries) == 0:
		x.problem(-1, "no servers are inside upstream", false)
	case !slices.ContainsFunc(entries, isMain):
		x.problem(-1, "no servers in upstream \""+u.Name+"\": all are backup", false)
	}
}
