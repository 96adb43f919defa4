package topology

// Expander is Expand for a row of Configs, each made from the one before as a Replica does: a Group or Strand for which
// nothing changed is the very one (the same pointer) of the last call. It is not safe for concurrent use.
type Expander struct {
	opts    ExpandOptions
	most    int // maxCopies
	groups  map[string]*expandedGroup
	strands map[string]*expandedStrand
}

// NewExpander is an Expander that has seen nothing.
func NewExpander(opts ExpandOptions) *Expander { return &Expander{opts: opts, most: maxCopies} }

// Expand is the function of the same name.
func (x *Expander) Expand(c *Config) (*Expanded, []Problem) {
	e := &expansion{opts: x.opts, most: x.most, config: c, old: x.groups, done: make([]*expandedGroup, len(c.Upstreams)), open: make([]bool, len(c.Upstreams))}
	out := &Expanded{
		Upstreams: make([]*Group, 0, len(c.Upstreams)),
		Upstrands: make([]*Strand, 0, len(c.Upstrands)),
		Routes:    make([]Route, 0, len(c.Routes)),
	}
	groups := make(map[string]*expandedGroup, len(c.Upstreams))
	for i := range c.Upstreams {
		g := e.at(i)
		groups[g.from.Name] = g
		e.publish(out, i, g)
	}
	e.zones(out)
	last := make(map[string]int, len(c.Upstrands)) // as in nginx, a later upstrand takes the place of an earlier one of its name
	for i, u := range c.Upstrands {
		last[u.Name] = i
	}
	strands := make(map[string]*expandedStrand, len(last))
	for i, u := range c.Upstrands {
		s := e.strand(i, u, x.strands[u.Name], strands[u.Name] != nil)
		strands[u.Name] = s
		if last[u.Name] == i {
			out.Upstrands = append(out.Upstrands, s.strand)
		}
		e.problems = append(e.problems, s.problems...)
	}
	for _, r := range c.Routes {
		if reason := e.checkRoute(r, strands); reason != "" {
			e.problems = append(e.problems, Problem{Where: "route " + r.Host + r.Path, Reason: reason, Upstream: -1, Upstrand: -1, Line: -1})
			continue
		}
		out.Routes = append(out.Routes, r)
	}
	x.groups, x.strands = groups, strands
	return out, e.problems
}

// expandedGroup remembers what a Group was made from.
type expandedGroup struct {
	from     Upstream
	sources  [][]Instance // of the services discovered, in the order of the lines
	added    []addition   // of the add_upstream lines
	asked    []asked      // names looked up
	group    *Group
	entries  []serverEntry // what add_upstream and singlets copy; nil: each peer is one
	singlets []*Group      // in order
	copied   int           // servers that add_upstream and singlets made
	cut      bool          // there was no room for more of them
	problems []Problem
}

// addition is what an add_upstream line found; nil: nothing.
type addition struct {
	name string
	from *expandedGroup
}

type expandedStrand struct {
	strand   *Strand
	problems []Problem
}

func (g *expandedGroup) groupOrNil() *Group {
	if g == nil {
		return nil
	}
	return g.group
}
