package topology

import (
	"fmt"
	"net/netip"
	"time"
)

// ExpandOptions is what the expansion depends on beside the Config. Lookup and Query are asked anew at every Expand, so
// they should remember what they know.
type ExpandOptions struct {
	Zone string // where this proxy stands; empty: it has none

	// Strict holds a Config to what nginx holds a file to: an upstream has a server, a name stands once, and what a line
	// names was declared above it (by Rank, which counts upstreams and upstrands together).
	Strict bool

	// Lookup gives the addresses of a name in a server line, in the order in which its peers stand. Nil: names are a
	// problem.
	Lookup func(host string) ([]netip.Addr, error)

	// Query gives the servers behind a name that is resolved at run time (parameter resolve). None is no error: nothing
	// is known yet. Nil: such names are a problem.
	Query func(Query) ([]Answer, error)

	// Resolver is that of http {}, for upstreams that name none. Nil: there is none.
	Resolver *Resolver
}

// Expanded is a Config with its directives carried out: what a proxy builds its table from. It is immutable.
type Expanded struct {
	Upstreams []*Group  // in the order of the Config
	Upstrands []*Strand // likewise
	Routes    []Route   // those whose target exists, sorted by Host, Path
}

// Group is an upstream with its peers.
type Group struct {
	Name        string
	Origin      Origin
	Peers       []Peer // in the order of the lines, of one discover in the order of the registry's dense key; may be empty
	Method      Method
	Sticky      *Sticky // nil: none
	Keepalive   Keepalive
	Queue       Queue
	CountSingle bool // extend_single_peers: a lone server is counted and disabled as one among several

	// Queries are the names resolved at run time; what they last gave is among the peers.
	Queries []Query
	ByName  bool // a Lookup or Query was asked: another answer may give other peers
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
	Text        string // the server as written, which consistent hashing works on; of an instance its Addr
	Route       string // sticky's id of the server; empty: it is made from the address
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
	Name          string
	Origin        Origin
	Members       []Member // in the order of the lines
	PerRequest    bool     // each request starts at the first member, else each starts one further
	StartRandom   bool     // the first request, or with PerRequest each, starts at random
	NextStatuses  []string // nginx's words: error, timeout, 5xx, 404, …; a stop that ends otherwise is final
	NonIdempotent bool     // a POST, LOCK or PATCH that a backend answered may go on too
	NextTimeout   time.Duration
	Intercepts    []Intercept // the first that holds the final status counts
}

// Member is one stop of an upstrand.
type Member struct {
	Upstream  string
	Backup    bool
	Blacklist time.Duration // whole seconds; 0: never
}

// Intercept gives a final status another answer.
type Intercept struct {
	Statuses []string // numbers, 4xx, 5xx
	URI      string
}

// Problem is something that Expand could not use, or did with a warning. The rest stands.
type Problem struct {
	Where     string    // such as "upstream orders"
	Directive Directive // nil when the problem is of the whole
	Reason    string

	Upstream, Upstrand int  // place of the block in the Config, from 0; -1: of none
	Line               int  // place of the directive in its block; -1: of the whole
	Warning            bool // it was used all the same
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
