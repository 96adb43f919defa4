package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// check holds the nodes of a block to the table. The result is those that are carried out, with their blocks checked
// likewise; http's block is left to whoever takes it.
func (r *reader) check(nodes []*topology.Node, in Context) []*topology.Node {
	out := make([]*topology.Node, 0, len(nodes))
	for _, n := range nodes {
		if r.template(n) || !r.checkNode(n, in) {
			continue
		}
		out = append(out, n)
	}
	return out
}

// template finds ${NAME} in capitals, which a tool such as envsubst should have filled in.
func (r *reader) template(n *topology.Node) bool {
	for _, text := range append([]string{n.Name}, n.Args...) {
		if found := shellName.FindString(text); found != "" {
			r.fault(n, "this is a template ("+found+"): it must be rendered first", "the file that envsubst makes of it")
			return true
		}
	}
	return false
}

// checkNode reports what is wrong with one directive, and tells whether it is to be carried out.
func (r *reader) checkNode(n *topology.Node, in Context) bool {
	row, known, here := find(n.Name, in)
	switch {
	case !known:
		r.unknown(n, in)
		return false
	case !here:
		r.fault(n, "is not allowed in "+in.String(), placesOf(n.Name).String())
		return false
	case !r.shape(n, row):
		return false
	}
	class, why := row.Class, row.Why
	if j := judges[n.Name]; j != nil && in != Upstream {
		c, reason := j(r, n, in)
		class = c
		if reason != "" {
			why = reason
		}
	}
	switch class {
	case Noticed:
		r.notice(n, why)
		return false
	case Refused:
		r.fault(n, why, "")
		return false
	}
	return r.body(n, in)
}

func (r *reader) unknown(n *topology.Node, in Context) {
	if r.full() { // guessing takes a while
		r.fault(n, "unknown directive", theReference)
		return
	}
	switch guess := near(n.Name, in); {
	case isCode(n.Name):
		r.fault(n, "no code is run in this version: use map, set and return, or let the backend do it", "")
	case guess != "":
		r.fault(n, "unknown directive; did you mean "+guess+"?", "")
	default:
		r.fault(n, "unknown directive", theReference)
	}
}

// theReference is what is allowed where no one name is meant.
const theReference = "those of the reference (confgen/dialect/REFERENCE.md)"

// shape checks whether a directive has a block and how many arguments. What is dropped or refused is judged by its name.
func (r *reader) shape(n *topology.Node, row Directive) bool {
	switch {
	case row.Class == Refused && judges[n.Name] == nil:
		return true
	case row.Block && !n.HasBlock:
		r.fault(n, "has no block", n.Name+" … { … }")
		return false
	case !row.Block && n.HasBlock:
		r.fault(n, "has a block", n.Name+" …;")
		return false
	case n.Name == "if":
		return r.condition(n)
	case len(n.Args) < row.Min || row.Max != many && len(n.Args) > row.Max:
		allowed := row.arguments()
		if form := forms[n.Name]; form != "" && row.Class == Supported {
			allowed = form
		}
		r.fault(n, "invalid number of arguments", allowed)
		return false
	}
	return true
}

// arguments says how many there may be.
func (d Directive) arguments() string {
	switch {
	case d.Max == many:
		return fmt.Sprintf("%d or more", d.Min)
	case d.Min == d.Max:
		return fmt.Sprint(d.Min)
	}
	return fmt.Sprintf("%d to %d", d.Min, d.Max)
}

// condition takes the parentheses off the arguments of if.
func (r *reader) condition(n *topology.Node) bool {
	args := n.Args
	if len(args) == 0 || !strings.HasPrefix(args[0], "(") || !strings.HasSuffix(args[len(args)-1], ")") {
		r.fault(n, "invalid condition", "if (CONDITION) { … }")
		return false
	}
	args = append([]string{}, args...)
	args[0] = args[0][1:]
	last := len(args) - 1
	args[last] = strings.TrimSuffix(args[last], ")")
	if args[last] == "" && last > 0 {
		args = args[:last]
	}
	if args[0] == "" {
		args = args[1:]
	}
	if len(args) == 0 {
		r.fault(n, "invalid condition", "if (CONDITION) { … }")
		return false
	}
	n.Args = args
	return true
}

// body checks the block of a directive.
func (r *reader) body(n *topology.Node, in Context) bool {
	if !n.HasBlock {
		return true
	}
	switch place := inside(n.Name, in); place {
	case HTTP: // taken by main
	case Upstream, Upstrand:
		before := len(r.faults)
		n.Block = r.check(n.Block, place)
		if len(r.faults) > before {
			r.doc.broken[n] = true
		}
	case Entries:
		n.Block = r.entries(n)
	default:
		n.Block = r.check(n.Block, place)
	}
	return true
}

// entryFlags are the words that stand alone in blocks of entries.
var entryFlags = map[string][]string{
	"map": {"hostnames", "volatile"},
	"geo": {"ranges", "proxy_recursive", "volatile"},
}

// entries checks the lines of map, geo, split_clients and types, which are no directives.
func (r *reader) entries(block *topology.Node) []*topology.Node {
	out := make([]*topology.Node, 0, len(block.Block))
	for _, n := range block.Block {
		switch {
		case r.template(n):
		case n.HasBlock:
			r.fault(n, "has a block in "+block.Name, "KEY VALUE;")
		case len(n.Args) == 0 && slices.Contains(entryFlags[block.Name], n.Name):
			out = append(out, n)
		case block.Name != "types" && len(n.Args) != 1:
			r.fault(n, "invalid number of values in "+block.Name, "KEY VALUE;")
		case len(n.Args) == 0:
			r.fault(n, "has no value in "+block.Name, "TYPE EXTENSION…;")
		default:
			out = append(out, n)
		}
	}
	return out
}
