package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// maxName is the longest name that is published, in bytes.
const maxName = 256

// upstream puts an upstream into the Config.
func (r *reader) upstream(n *topology.Node) {
	if directives, ok := r.directives(n); ok {
		r.doc.Config.Upstreams = append(r.doc.Config.Upstreams, topology.Upstream{
			Name: n.Args[0], Origin: topology.Declared, Rank: r.rank(), Directives: directives})
		r.doc.upstreams = append(r.doc.upstreams, n)
	}
}

// upstrand puts an upstrand into the Config.
func (r *reader) upstrand(n *topology.Node) {
	if directives, ok := r.directives(n); ok {
		r.doc.Config.Upstrands = append(r.doc.Config.Upstrands, topology.Upstrand{
			Name: n.Args[0], Origin: topology.Declared, Rank: r.rank(), Directives: directives})
		r.doc.upstrands = append(r.doc.upstrands, n)
	}
}

func (r *reader) rank() int { return len(r.doc.upstreams) + len(r.doc.upstrands) }

// directives are the lines of a block as they are published.
func (r *reader) directives(n *topology.Node) ([]topology.Directive, bool) {
	if name := n.Args[0]; name == "" || len(name) > maxName || hasControl(name) || strings.Contains(name, "$") {
		r.fault(n, "bad name \""+clip(name)+"\"", "1 to 256 bytes of text, without $")
		return nil, false
	}
	out := make([]topology.Directive, 0, len(n.Block))
	kept := make([]*topology.Node, 0, len(n.Block))
	for _, line := range n.Block {
		if slices.ContainsFunc(line.Args, hasControl) {
			r.fault(line, "has a control character", "text")
			r.doc.broken[n] = true
			continue
		}
		out = append(out, append(topology.Directive{line.Name}, line.Args...))
		kept = append(kept, line)
	}
	n.Block = kept
	return out, true
}

func hasControl(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0
}

// Fault is the place in the files of a Problem that Expand found in the Config. ok is false for one that only follows
// from a fault which Read has reported.
func (d *Doc) Fault(p topology.Problem) (f topology.Fault, ok bool) {
	var block *topology.Node
	switch {
	case p.Upstream >= 0 && p.Upstream < len(d.upstreams):
		block = d.upstreams[p.Upstream]
	case p.Upstrand >= 0 && p.Upstrand < len(d.upstrands):
		block = d.upstrands[p.Upstrand]
	default:
		return topology.Fault{Reason: p.Error()}, true
	}
	reason, allowed := splitReason(p.Reason)
	reason += d.firstOf(p)
	if p.Line >= 0 && p.Line < len(block.Block) {
		return block.Block[p.Line].Fault(reason, allowed), true
	}
	return block.Fault(reason, allowed), !d.broken[block] && !d.cut
}

// firstOf says where the first upstream of a name stands, when a problem is that of a second one; else it is empty.
func (d *Doc) firstOf(p topology.Problem) string {
	if !strings.HasPrefix(p.Reason, "duplicate upstream \"") {
		return ""
	}
	for i := range max(0, p.Upstream) {
		if n := d.upstreams[i]; strings.EqualFold(n.Args[0], d.upstreams[p.Upstream].Args[0]) {
			return fmt.Sprintf("; the first is at %s:%d", n.File, n.Line)
		}
	}
	return ""
}

// splitReason takes what is wanted from the end of a reason.
func splitReason(reason string) (why, allowed string) {
	for _, mark := range []string{"; want ", ": want "} {
		if i := strings.LastIndex(reason, mark); i > 0 {
			return reason[:i], reason[i+len(mark):]
		}
	}
	return reason, ""
}
