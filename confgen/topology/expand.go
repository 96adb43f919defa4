package topology

import (
	"fmt"
	"slices"
	"time"
)

// ExpandOptions is what the expansion depends on beside the Config.
type ExpandOptions struct {
	Zone string // where this proxy stands; empty: it has none
}

// Expanded is a Config with its directives carried out: what a proxy builds its table from. It is immutable.
type Expanded struct {
	Upstreams []*Group  // in the order of the Config
	Upstrands []*Strand // likewise
	Routes    []Route   // those whose target exists, sorted by Host, Path
}

// Group is an upstream with its peers.
type Group struct {
	Name   string
	Origin Origin
	Peers  []Peer // in the order of the lines, of one discover in the order of the registry's dense key; may be empty
}

// PeerKey is the identity of a peer, by which its state is carried from one topology to the next.
type PeerKey struct {
	Upstream string
	Backup   bool
	Server   string // service/id of an instance, or the text of a server line
	Addr     string // of a server line: the resolved address; empty for an instance, which may move and stay itself
	Ordinal  int    // among equals, from 0
}

// Peer is one server of an upstream with nginx's parameters, their defaults filled in.
type Peer struct {
	Key         PeerKey
	Service, ID string // of an instance; empty for a server line
	Addr        string // ip:port, [ip6]:port
	Scheme      string // http or https
	Weight      int    // 1 or more
	MaxFails    int    // 0: never counted
	FailTimeout time.Duration
	MaxConns    int // 0: no limit
	SlowStart   time.Duration
	Backup      bool
	Down        bool
	Drain       bool
	Unproven    bool // held by the mass-eviction guard: overdue, yet perhaps alive
	Incarnation int64
	Order       int64 // the registry's dense key; 0 for a server line
	Zone        string
	Version     string
}

// Strand is an upstrand with its upstreams.
type Strand struct {
	Name         string
	Origin       Origin
	Members      []Member // in the order of the lines
	PerRequest   bool     // each request starts at the first member, else each starts one further
	NextStatuses []string // nginx's words: error, timeout, 5xx, 404, …; a stop that ends otherwise is final
}

// Member is one stop of an upstrand.
type Member struct {
	Upstream string
	Backup   bool
}

// Problem is something that Expand could not use. The rest stands.
type Problem struct {
	Where     string    // such as "upstream orders"
	Directive Directive // nil when the problem is of the whole
	Reason    string
}

// Error is one line for people.
func (p Problem) Error() string {
	if p.Directive == nil {
		return p.Where + ": " + p.Reason
	}
	return fmt.Sprintf("%s: %q: %s", p.Where, []string(p.Directive), p.Reason)
}

// Expand carries out the directives of a Config for a proxy of the given zone. It is pure; the same input gives the same
// result. What it can't use it leaves out and reports.
func Expand(c *Config, opts ExpandOptions) (*Expanded, []Problem) {
	return NewExpander(opts).Expand(c)
}

// Expander is Expand for a row of Configs, each made from the one before as a Replica does: a Group or Strand for which
// nothing changed is the very one (the same pointer) of the last call. It is not safe for concurrent use.
type Expander struct {
	opts    ExpandOptions
	groups  map[string]*expandedGroup
	strands map[string]*expandedStrand
}

// expandedGroup remembers what a Group was made from.
type expandedGroup struct {
	from     Upstream
	sources  [][]Instance // of the services discovered, in the order of the lines
	group    *Group
	problems []Problem
}

type expandedStrand struct {
	strand   *Strand
	problems []Problem
}

// NewExpander is an Expander that has seen nothing.
func NewExpander(opts ExpandOptions) *Expander { return &Expander{opts: opts} }

// Expand is the function of the same name.
func (x *Expander) Expand(c *Config) (*Expanded, []Problem) {
	out := &Expanded{
		Upstreams: make([]*Group, 0, len(c.Upstreams)),
		Upstrands: make([]*Strand, 0, len(c.Upstrands)),
		Routes:    make([]Route, 0, len(c.Routes)),
	}
	var problems []Problem
	groups := make(map[string]*expandedGroup, len(c.Upstreams))
	for _, u := range c.Upstreams {
		g := x.group(c, u)
		groups[u.Name] = g
		out.Upstreams = append(out.Upstreams, g.group)
		problems = append(problems, g.problems...)
	}
	strands := make(map[string]*expandedStrand, len(c.Upstrands))
	for _, u := range c.Upstrands {
		s := x.strand(u, groups)
		strands[u.Name] = s
		out.Upstrands = append(out.Upstrands, s.strand)
		problems = append(problems, s.problems...)
	}
	for _, r := range c.Routes {
		if p, ok := checkRoute(r, groups, strands); !ok {
			problems = append(problems, p)
			continue
		}
		out.Routes = append(out.Routes, r)
	}
	x.groups, x.strands = groups, strands
	return out, problems
}

func checkRoute(r Route, groups map[string]*expandedGroup, strands map[string]*expandedStrand) (Problem, bool) {
	where := "route " + r.Host + r.Path
	if r.Upstream != "" && groups[r.Upstream] == nil {
		return Problem{Where: where, Reason: "no upstream " + r.Upstream}, false
	}
	if r.Upstrand != "" && strands[r.Upstrand] == nil {
		return Problem{Where: where, Reason: "no upstrand " + r.Upstrand}, false
	}
	return Problem{}, true
}

// group takes the last result over when the directives and the instances behind them are the same.
func (x *Expander) group(c *Config, u Upstream) *expandedGroup {
	sources := discovered(c, u)
	if old := x.groups[u.Name]; old != nil && sameUpstream(old.from, u) && slices.EqualFunc(old.sources, sources, sameInstances) {
		return old
	}
	g := &expandedGroup{from: u, sources: sources}
	g.group, g.problems = expandUpstream(c, u)
	return g
}

func sameUpstream(a, b Upstream) bool {
	return a.Name == b.Name && a.Origin == b.Origin && slices.EqualFunc(a.Directives, b.Directives, slices.Equal[Directive])
}

// sameInstances compares identity: a Replica keeps the slice of a service that did not change.
func sameInstances(a, b []Instance) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// discovered is the instances behind each discover line.
func discovered(c *Config, u Upstream) [][]Instance {
	var out [][]Instance
	for _, d := range u.Directives {
		if len(d) > 1 && d[0] == "discover" {
			out = append(out, c.instances(d[1]))
		}
	}
	return out
}

// instances of a service; none when there is no such service.
func (c *Config) instances(service string) []Instance {
	i, ok := slices.BinarySearchFunc(c.Services, service, func(s Service, name string) int {
		return compareServices(s, Service{Name: name})
	})
	if !ok {
		return nil
	}
	return c.Services[i].Instances
}
