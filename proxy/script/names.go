package script

import (
	"fmt"
	"strings"
)

// Names finds a value by a host's name: the name itself, then the longest *.name, then the longest name.*. The zero
// value is empty. Looking up is safe for concurrent use once nothing is added.
type Names[T any] struct {
	exact map[string]T
	heads map[string]T // of *.example.com, without the star: .example.com
	tails map[string]T // of www.example.*, without the star: www.example.

	longestHead, longestTail int // a client's name may have very many parts: no more of it is looked at
}

// Add adds a name, which may be *.example.com, .example.com (that and example.com itself) or www.example.*; case does not
// count. It fails for a name that stands already and for other places of a star.
func (n *Names[T]) Add(name string, v T) error {
	name = lower(name)
	switch {
	case strings.Contains(name, "*.") && !strings.HasPrefix(name, "*."), strings.Count(name, "*") > 1, strings.Contains(name, ".."), name == "*", name == ".", name == "*.":
		return fmt.Errorf("%q is no name", name)
	case strings.HasPrefix(name, "*."):
		return n.addHead(name[1:], name, v)
	case strings.HasPrefix(name, "."):
		if err := put(&n.exact, name[1:], name, v); err != nil {
			return err
		}
		return n.addHead(name, name, v)
	case strings.HasSuffix(name, ".*"):
		n.longestTail = max(n.longestTail, len(name)-1)
		return put(&n.tails, name[:len(name)-1], name, v)
	case strings.Contains(name, "*"):
		return fmt.Errorf("%q is no name: a * stands for whole parts, at the beginning or the end", name)
	}
	return n.AddExact(name, v)
}

func (n *Names[T]) addHead(head, name string, v T) error {
	n.longestHead = max(n.longestHead, len(head))
	return put(&n.heads, head, name, v)
}

// AddExact adds a name as it stands.
func (n *Names[T]) AddExact(name string, v T) error { return put(&n.exact, lower(name), name, v) }

func put[T any](m *map[string]T, key, name string, v T) error {
	if *m == nil {
		*m = map[string]T{}
	}
	if _, there := (*m)[key]; there {
		return fmt.Errorf("%q stands twice", name)
	}
	(*m)[key] = v
	return nil
}

// Find looks a name up; it is in lower case.
func (n *Names[T]) Find(name string) (v T, ok bool) {
	if v, ok = n.exact[name]; ok {
		return v, true
	}
	if len(n.heads) > 0 {
		for at := dotFrom(name, max(1, len(name)-n.longestHead)); at > 0; at = dotFrom(name, at+1) {
			if v, ok = n.heads[name[at:]]; ok {
				return v, true
			}
		}
	}
	if len(n.tails) > 0 {
		for at := strings.LastIndexByte(name[:min(len(name), n.longestTail)], '.'); at > 0; at = strings.LastIndexByte(name[:at], '.') {
			if v, ok = n.tails[name[:at+1]]; ok && at+1 < len(name) {
				return v, true
			}
		}
	}
	return v, false
}

// dotFrom is the index of the first dot at or behind from, -1 without one.
func dotFrom(s string, from int) int {
	if from >= len(s) {
		return -1
	}
	if i := strings.IndexByte(s[from:], '.'); i >= 0 {
		return from + i
	}
	return -1
}

// lower is strings.ToLower for bytes: only ASCII letters have a case.
func lower(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if b[j] >= 'A' && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
