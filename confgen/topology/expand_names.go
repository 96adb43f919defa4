package topology

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Query asks for the servers behind a name that is resolved at run time.
type Query struct {
	Host     string
	Service  string // empty: the host's addresses; else the SRV records of _SERVICE._tcp.HOST, or of SERVICE.HOST when it has a dot
	Resolver Resolver
}

// Answer is one server behind a name.
type Answer struct {
	Addr   netip.AddrPort // port 0: that of the server line
	Weight int            // of an SRV record; it counts when the server line names none. 0: unknown
	Backup bool           // an SRV record of a lesser priority
}

// Resolver is whom to ask for names, as the resolver directive says.
type Resolver struct {
	Servers []string      // host or host:port; empty: the system's
	Valid   time.Duration // how long an answer holds; 0: as the DNS says
	Timeout time.Duration // 30 s unless said
	NoIPv4  bool
	NoIPv6  bool
}

// DefaultResolverTimeout is nginx's.
const DefaultResolverTimeout = 30 * time.Second

// ParseResolver reads the arguments of resolver: ADDRESS… [valid=TIME] [ipv4=on|off] [ipv6=on|off] [status_zone=…].
func ParseResolver(args []string) (Resolver, string) {
	r := Resolver{Timeout: DefaultResolverTimeout}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			if _, reason := parseTarget(arg); reason != "" {
				return r, reason
			}
			r.Servers = append(r.Servers, arg)
			continue
		}
		switch {
		case name == "valid":
			valid, err := ParseSeconds(value)
			if err != nil {
				return r, invalidParameter(arg, wanted(err))
			}
			r.Valid = valid
		case (name == "ipv4" || name == "ipv6") && (value == "on" || value == "off"):
			if name == "ipv4" {
				r.NoIPv4 = value == "off"
			} else {
				r.NoIPv6 = value == "off"
			}
		case name == "status_zone":
		default:
			return r, invalidParameter(arg, "want ADDRESS… [valid=TIME] [ipv4=on|off] [ipv6=on|off]")
		}
	}
	if r.NoIPv4 && r.NoIPv6 {
		return r, "\"ipv4\" and \"ipv6\" cannot both be \"off\""
	}
	if len(r.Servers) == 0 {
		return r, "no name servers defined"
	}
	return r, ""
}

// asked is a name that was looked up, with what came.
type asked struct {
	query   Query
	runtime bool
	addrs   []netip.Addr
	answers []Answer
	failed  bool
}

// ask looks a name up. An error is one text for all causes, so that it is the same as long as it lasts.
func (e *expansion) ask(q Query, runtime bool) (asked, error) {
	a := asked{query: q, runtime: runtime}
	var err error
	if runtime {
		a.answers, err = e.opts.Query(q)
	} else {
		a.addrs, err = e.opts.Lookup(q.Host)
	}
	a.failed = err != nil
	return a, err
}

func (e *expansion) sameAnswers(g *expandedGroup) bool {
	return !slices.ContainsFunc(g.asked, func(old asked) bool {
		now, _ := e.ask(old.query, old.runtime)
		return now.failed != old.failed || !slices.Equal(now.addrs, old.addrs) || !slices.Equal(now.answers, old.answers)
	})
}

// lookup is the peers of a name that is resolved when the file is read.
func (x *upstreamExpansion) lookup(like Peer, to target) ([]Peer, string) {
	if x.run.opts.Lookup == nil {
		return nil, "names to resolve: not built here; give an IP address"
	}
	a, err := x.run.ask(Query{Host: to.host}, false)
	x.result.asked, x.group.ByName = append(x.result.asked, a), true
	if err != nil {
		return nil, "host not found: " + err.Error()
	}
	if len(a.addrs) == 0 {
		return nil, "host not found: " + to.host + " has no address"
	}
	peers := make([]Peer, 0, len(a.addrs))
	for _, addr := range a.addrs {
		peers = append(peers, like.at(netip.AddrPortFrom(addr.Unmap(), to.port)))
	}
	return peers, ""
}

// at is the peer at one of its addresses.
func (p Peer) at(addr netip.AddrPort) Peer {
	p.Addr = addr.String()
	p.Key = PeerKey{Server: p.Text, Addr: p.Addr}
	return p
}

// query is the peers known so far of a name that is resolved at run time.
func (x *upstreamExpansion) query(line serverLine, to target) ([]Peer, string) {
	if x.run.opts.Query == nil {
		return nil, "resolve: not built here; leave it out to have the name resolved once"
	}
	q := Query{Host: to.host, Service: line.service, Resolver: x.resolverOf()}
	x.group.Queries = append(x.group.Queries, q)
	a, err := x.run.ask(q, true)
	x.result.asked, x.group.ByName = append(x.result.asked, a), true
	if err != nil {
		return nil, "" // as in nginx it is tried again; whoever asks logs it
	}
	var peers []Peer
	for _, answer := range a.answers {
		p := line.peer
		addr := answer.Addr
		if addr.Port() == 0 {
			addr = netip.AddrPortFrom(addr.Addr(), to.port)
		}
		if answer.Weight > 0 && p.Weight == 1 { // as in nginx a weight that the line names wins
			p.Weight = min(answer.Weight, maxWeight)
		}
		p.Backup = p.Backup || answer.Backup
		peers = append(peers, p.at(addr))
	}
	return peers, ""
}

// resolverOf is the upstream's own resolver, which may stand below, else that of http {}. What is wrong with the lines
// they say themselves.
func (x *upstreamExpansion) resolverOf() Resolver {
	for _, d := range x.result.from.Directives {
		if d[0] != "resolver" {
			continue
		}
		r, _ := ParseResolver(d[1:])
		for _, t := range x.result.from.Directives {
			if v, err := ParseTime(argOf(t, "resolver_timeout")); err == nil {
				r.Timeout = v
			}
		}
		return r
	}
	if x.run.opts.Resolver != nil {
		return *x.run.opts.Resolver
	}
	return Resolver{}
}

// argOf is the argument of a directive of that name with one argument.
func argOf(d Directive, name string) string {
	if len(d) == 2 && d[0] == name {
		return d[1]
	}
	return ""
}

// checkNames holds names that are resolved at run time to what nginx needs for them: a zone, and a resolver.
func (x *upstreamExpansion) checkNames() {
	if !x.run.opts.Strict || !slices.ContainsFunc(x.entries, func(en serverEntry) bool { return en.runtime }) {
		return
	}
	name := x.group.Name
	switch {
	case !x.zone:
		x.problem(-1, "resolving names at run time requires upstream \""+name+"\" to be in shared memory: give it a zone", false)
	case x.resolver == nil && x.run.opts.Resolver == nil:
		x.problem(-1, "no resolver defined to resolve names at run time in upstream \""+name+"\"", false)
	}
}

func (x *upstreamExpansion) resolverLine(d Directive) string {
	if !x.once("resolver") {
		return "is duplicate"
	}
	r, reason := ParseResolver(d[1:])
	if reason == "" {
		x.resolver = &r
	}
	return reason
}

func (x *upstreamExpansion) resolverTimeout(d Directive) string {
	if len(d) != 2 || !x.once("resolver_timeout") {
		return "want it once, as resolver_timeout TIME"
	}
	if _, err := ParseTime(d[1]); err != nil {
		return err.Error()
	}
	return ""
}
