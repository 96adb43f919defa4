package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Node is one directive of a configuration file, with its block when it has one.
type Node struct {
	Name     string
	Args     []string
	Block    []*Node // nil without one; empty for {}
	HasBlock bool
	File     string
	Line     int // of the name, from 1
}

// Fault makes a fault at the node's place.
func (n *Node) Fault(reason, allowed string) Fault {
	return Fault{File: n.File, Line: n.Line, Name: n.Name, Reason: reason, Allowed: allowed}
}

// String is the directive as one line, its block as {…}.
func (n *Node) String() string {
	var b strings.Builder
	b.WriteString(n.Name)
	for _, a := range n.Args {
		b.WriteByte(' ')
		b.WriteString(quoteArg(a))
	}
	if n.HasBlock {
		b.WriteString(" {…}")
	} else {
		b.WriteByte(';')
	}
	return b.String()
}

// quoteArg quotes what a lexer would not give back as one word.
func quoteArg(a string) string {
	var b strings.Builder
	for i := range len(a) {
		// A backslash stands for itself, as in regular expressions, unless what follows makes an escape of it.
		if a[i] == '"' || a[i] == '\\' && (i+1 == len(a) || strings.IndexByte(`"'\trn`, a[i+1]) >= 0) {
			b.WriteByte('\\')
		}
		b.WriteByte(a[i])
	}
	if b.Len() == len(a) && a != "" && !strings.ContainsAny(a, " \t\r\n;{}\"'#") {
		return a
	}
	return `"` + b.String() + `"`
}

// Fault is something wrong in a file, or something dropped from it.
type Fault struct {
	File    string
	Line    int    // from 1; 0: the whole file
	Name    string // of the directive; empty: none
	Reason  string
	Allowed string // what would be allowed; empty when the reason says it

	// NotBuilt tells that what is written is right, and that this version does not carry it out: the file can be
	// checked, and not be served.
	NotBuilt bool
}

// Error is "FILE:LINE: NAME: reason; allowed: …".
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Name != "" {
		b.WriteString(": ")
		b.WriteString(f.Name)
	}
	b.WriteString(": ")
	b.WriteString(f.Reason)
	if f.Allowed != "" {
		b.WriteString("; allowed: ")
		b.WriteString(f.Allowed)
	}
	return b.String()
}

// SortFaults sorts in place by file, line and name, and leaves out what is said twice: a file can be included twice.
func SortFaults(faults []Fault) []Fault {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(faults)
}
