package dialect

import (
	"slices"

	"github.com/upstrand/upstrand/confgen/topology"
)

// report is what is known of a file after reading it and expanding its upstreams; the values of servers aside.
type report struct {
	doc      *Doc
	expanded *topology.Expanded
	faults   []topology.Fault
	notices  []topology.Fault
}

// check reads a file and expands its upstreams as whoever serves it does.
func check(path string, opts Options) report {
	doc, faults := Read(path, opts)
	expanded, problems := topology.Expand(doc.Config, topology.ExpandOptions{Strict: true, Resolver: doc.Resolver, Lookup: lookup, Query: query})
	notices := slices.Clone(doc.Notices)
	for _, p := range problems {
		f, ok := doc.Fault(p)
		switch {
		case p.Warning:
			notices = append(notices, f)
		case ok:
			faults = append(faults, f)
		}
	}
	return report{doc: doc, expanded: expanded, faults: topology.SortFaults(faults), notices: topology.SortFaults(notices)}
}
