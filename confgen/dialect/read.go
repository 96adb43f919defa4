package dialect

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// Doc is what a file says, with all that it includes.
type Doc struct {
	// Config has the upstreams and upstrands, declared, in their order and unexpanded. Rank is the place among both, so
	// that it tells which stands above which.
	Config *topology.Config
	// Site is what stands in http {} beside them, in its order. What is dropped or refused is not in it.
	Site []*topology.Node
	// Resolver is that of http {}, else the first that a server or location names; nil: none.
	Resolver *topology.Resolver
	// Notices are what was dropped, and what was read though it may not be what was meant. Sorted.
	Notices []topology.Fault
	// Files is all that was read, and the folders of patterns: when one of them changes, the content may.
	Files []string

	upstreams, upstrands []*topology.Node        // by their place in Config
	broken               map[*topology.Node]bool // blocks with faults in them
	cut                  bool                    // the text ended too early, so that blocks may lack lines
}

// maxFaults bounds what is reported of hostile files.
const maxFaults = 500

// Read reads a configuration file: a whole one, or a fragment of the http, server or location level. The faults are all
// those of all files, sorted by file and line; with one or more of them the Doc is incomplete, but its Files are there.
// Names in include are relative to the folder of path, as in nginx.
func Read(path string, opts Options) (*Doc, []topology.Fault) { return read(path, opts, most) }

func read(path string, opts Options, most bounds) (*Doc, []topology.Fault) {
	r := &reader{opts: opts, most: most, base: filepath.Dir(path), known: map[string]bool{}, told: map[topology.Fault]bool{},
		doc: &Doc{Config: &topology.Config{}, broken: map[*topology.Node]bool{}}}
	nodes := r.load(path, nil, nil)
	r.site(nodes)
	if r.doc.Resolver != nil && r.resolverTimeout > 0 {
		r.doc.Resolver.Timeout = r.resolverTimeout
	}
	r.doc.Notices = topology.SortFaults(r.notices)
	return r.doc, topology.SortFaults(r.faults)
}

// reader is one call of Read.
type reader struct {
	opts    Options
	base    string // folder of the first file
	known   map[string]bool
	most    bounds
	reads   bounds // so far
	doc     *Doc
	faults  []topology.Fault
	told    map[topology.Fault]bool
	notices []topology.Fault

	resolver        *topology.Node // whose arguments are in doc.Resolver
	resolverTimeout time.Duration  // resolver_timeout; 0: none
	variableHost    bool           // some proxy_pass leads to a host that a variable gives
}

// add takes a fault. The same again, of a file that is included twice, is left out.
func (r *reader) add(f topology.Fault) {
	if r.told[f] {
		return
	}
	if len(r.faults) < maxFaults {
		r.told[f] = true
		r.faults = append(r.faults, f)
	} else if len(r.faults) == maxFaults {
		r.faults = append(r.faults, topology.Fault{File: f.File, Reason: fmt.Sprintf("more than %d faults; the rest is not listed", maxFaults)})
	}
}

func (r *reader) fault(n *topology.Node, reason, allowed string) {
	f := n.Fault(reason, allowed)
	f.Name = clip(f.Name)
	r.add(f)
}

func (r *reader) notice(n *topology.Node, reason string) {
	if len(r.notices) < maxFaults {
		r.notices = append(r.notices, n.Fault(reason, ""))
	} else if len(r.notices) == maxFaults {
		r.notices = append(r.notices, topology.Fault{File: n.File, Reason: fmt.Sprintf("more than %d notices; the rest is not listed", maxFaults)})
	}
}

// full reports whether there are as many faults as are listed.
func (r *reader) full() bool { return len(r.faults) > maxFaults }
