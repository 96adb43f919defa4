package site

import (
	"bytes"
	"slices"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/script"
)

// fieldList is the head of a message that is being put together. Names compare without regard to case.
type fieldList []forward.Field

// get is the value of the first field of that name, nil without one.
func (l fieldList) get(name string) []byte { return forward.Get(l, name) }

func (l fieldList) index(name string) int {
	for i := range l {
		if sameName(l[i].Name, name) {
			return i
		}
	}
	return -1
}

func (l *fieldList) add(name string, value []byte) { l.put(bytesOf(name), value) }

// put is add for a name as it is kept.
func (l *fieldList) put(name, value []byte) {
	*l = append(*l, forward.Field{}) // a literal would be made on the stack and copied
	f := &(*l)[len(*l)-1]
	f.Name, f.Value = name, value
}

// set puts a value in place of all fields of that name.
func (l *fieldList) set(name string, value []byte) {
	i := l.index(name)
	if i < 0 {
		l.add(name, value)
		return
	}
	(*l)[i].Value = value
	rest := (*l)[i+1:]
	rest.drop(name)
	*l = (*l)[:i+1+len(rest)]
}

// drop takes out all fields of that name.
func (l *fieldList) drop(name string) {
	kept := (*l)[:0]
	for _, f := range *l {
		if !sameName(f.Name, name) {
			kept = append(kept, f)
		}
	}
	*l = kept
}

func sameName(have []byte, name string) bool { return forward.Is(have, name) }

// nameSet is a set of field names, without regard to case. They stand by their lengths, of which few have more than one. Most
// names that are looked up have a length that none of the set has: then the first word says so.
type nameSet struct {
	lengths uint64 // a bit for each, the highest also for all above
	names   [][]string
}

func lengthBit(n int) uint64 { return 1 << min(uint(n), 63) }

func newNameSet(names ...string) nameSet {
	var s nameSet
	for _, n := range names {
		s.add(n)
	}
	return s
}

func (s *nameSet) add(name string) {
	for len(s.names) <= len(name) {
		s.names = append(s.names, nil)
	}
	if !s.has(bytesOf(name)) {
		s.lengths |= lengthBit(len(name))
		s.names[len(name)] = append(s.names[len(name)], name)
	}
}

func (s *nameSet) remove(name string) {
	if len(name) < len(s.names) {
		s.names[len(name)] = slices.DeleteFunc(s.names[len(name)], func(n string) bool { return sameName(bytesOf(n), name) })
	}
}

// has looks a name up in whatever case, without an allocation.
func (s *nameSet) has(name []byte) bool { return s.lengths&lengthBit(len(name)) != 0 && s.find(name) }

func (s *nameSet) find(name []byte) bool {
	if len(name) >= len(s.names) {
		return false
	}
	for _, n := range s.names[len(name)] {
		if sameName(name, n) {
			return true
		}
	}
	return false
}

// fieldNamed finds a field by a variable's rest, where - is written as _ and letters are lower case; several fields of
// the name are joined by sep.
func fieldNamed(fields []forward.Field, rest, sep string) (string, bool) {
	first := -1
	var joined []byte
	for i := range fields {
		if !isVariableOf(fields[i].Name, rest) {
			continue
		}
		switch {
		case first < 0:
			first = i
			continue
		case joined == nil:
			joined = append(joined, fields[first].Value...)
		}
		joined = append(append(joined, sep...), fields[i].Value...)
	}
	switch {
	case first < 0:
		return "", false
	case joined != nil:
		return string(joined), true
	}
	return textOf(fields[first].Value), true
}

func isVariableOf(name []byte, rest string) bool {
	if len(name) != len(rest) {
		return false
	}
	for i, c := range name {
		switch {
		case c == '-':
			c = '_'
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		if c != rest[i] {
			return false
		}
	}
	return true
}

// setCookieNamed is a cookie's value in Set-Cookie fields.
func setCookieNamed(fields []forward.Field, name string) (string, bool) {
	for _, f := range fields {
		if sameName(f.Name, "Set-Cookie") {
			first, _, _ := bytes.Cut(f.Value, []byte(";"))
			if v, ok := cookieIn(textOf(first), name, ";"); ok {
				return v, true
			}
		}
	}
	return "", false
}

// singleLine makes a value fit for one field of a head: what would end the line becomes a space. nginx lets decoded line
// breaks of $uri and captures through, by which a client writes fields of its own.
func singleLine(v string) []byte {
	for i := range len(v) {
		if c := v[i]; c == '\r' || c == '\n' || c == 0 {
			out := []byte(v)
			for j, c := range out {
				if c == '\r' || c == '\n' || c == 0 {
					out[j] = ' '
				}
			}
			return out
		}
	}
	return bytesOf(v)
}

// family makes definitions of variables that share a beginning.
func family(get func(r *request, rest string) (string, bool)) func(string) (script.Func[*request], bool) {
	return func(rest string) (script.Func[*request], bool) {
		return func(r *request) (string, bool) { return get(r, rest) }, true
	}
}
