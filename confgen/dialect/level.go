package dialect

import (
	"github.com/upstrand/upstrand/confgen/topology"
)

// levels are the places at which a file may begin, outermost first.
var levels = []Context{Main, HTTP, Server, Location}

// levelOf is where a file belongs: the outermost level at which the fewest of its directives are out of place. A whole
// file begins in main, a file of conf.d in http, a snippet in a server or a location.
func levelOf(nodes []*topology.Node) Context {
	best, least := Main, len(nodes)+1
	for _, in := range levels {
		misplaced := 0
		for _, n := range nodes {
			if _, known, here := find(n.Name, in); known && !here {
				misplaced++
			}
		}
		if misplaced < least {
			best, least = in, misplaced
		}
	}
	return best
}

// site checks the nodes of the file and sorts them into the Doc. A fragment gets the blocks around it that it lacks.
func (r *reader) site(nodes []*topology.Node) {
	r.variableHost = hasVariableHost(nodes)
	around := func(name string, block []*topology.Node, args ...string) []*topology.Node {
		n := &topology.Node{Name: name, Args: args, HasBlock: true, Block: block}
		if len(block) > 0 {
			n.File, n.Line = block[0].File, block[0].Line
		}
		return []*topology.Node{n}
	}
	switch levelOf(nodes) {
	case Main:
		r.main(nodes)
		return
	case Server:
		nodes = around("server", nodes)
	case Location:
		nodes = around("server", around("location", nodes, "/"))
	}
	r.inHTTP(nodes)
}

// main takes http out of a whole file.
func (r *reader) main(nodes []*topology.Node) {
	found := false
	for _, n := range r.check(nodes, Main) {
		if n.Name != "http" {
			continue
		}
		if found {
			r.fault(n, "is duplicate", "one http {}")
			continue
		}
		found = true
		r.inHTTP(n.Block)
	}
	if !found && len(nodes) > 0 && len(r.faults) == 0 {
		r.add(topology.Fault{File: nodes[0].File, Reason: "there is no http {} in it, so nothing to serve"})
	}
}

// inHTTP sorts what stands in http.
func (r *reader) inHTTP(nodes []*topology.Node) {
	for _, n := range r.check(nodes, HTTP) {
		switch n.Name {
		case "upstream":
			r.upstream(n)
		case "upstrand":
			r.upstrand(n)
		default:
			r.doc.Site = append(r.doc.Site, n)
		}
	}
}
