package site

import "strings"

// tree finds the location of a path among those that are no regular expressions. It is a radix tree over their names:
// a search looks at each byte of the path once.
type tree struct {
	label    string // what this node adds to its parent's name
	exact    *location
	prefix   *location
	slash    *tree   // the node of this name with a / behind it, when a request without the / is redirected there
	children []*tree // by the first byte of their labels, which differ
	firsts   string  // those bytes
}

// found is how a location was found.
type found uint8

const (
	nowhere   found = iota
	byPrefix        // regular expressions may still take the path
	byExact         // nothing else takes it
	withSlash       // redirect to the location's name
)

// search is the location of a path: an exact one, else one with a / more that asks for a redirect, else that with the
// longest prefix.
func (t *tree) search(uri string) (*location, found) {
	var best *location
	at := nowhere
	for t != nil {
		if !strings.HasPrefix(uri, t.label) {
			break
		}
		uri = uri[len(t.label):]
		if uri == "" {
			switch {
			case t.exact != nil:
				return t.exact, byExact
			case t.prefix != nil:
				return t.prefix, byPrefix
			case t.slash != nil:
				return t.slash.own(), withSlash
			}
			break
		}
		if t.prefix != nil {
			best, at = t.prefix, byPrefix
		}
		t = t.child(uri[0])
	}
	return best, at
}

// child is the node whose label begins with a byte; nil: there is none.
func (t *tree) child(first byte) *tree {
	for i := range len(t.firsts) {
		if t.firsts[i] == first {
			return t.children[i]
		}
	}
	return nil
}

// own is the location of the node's name, the exact one if there are two.
func (t *tree) own() *location {
	if t.exact != nil {
		return t.exact
	}
	return t.prefix
}

// node is the node of a name, made when there is none.
func (t *tree) node(name string) *tree {
	if name == "" {
		return t
	}
	i := strings.IndexByte(t.firsts, name[0])
	if i < 0 {
		leaf := &tree{label: name}
		t.firsts += name[:1]
		t.children = append(t.children, leaf)
		return leaf
	}
	child := t.children[i]
	common := 0
	for common < len(name) && common < len(child.label) && name[common] == child.label[common] {
		common++
	}
	if common < len(child.label) {
		upper := &tree{label: child.label[:common], children: []*tree{child}, firsts: child.label[common : common+1]}
		child.label = child.label[common:]
		t.children[i] = upper
		child = upper
	}
	return child.node(name[common:])
}
