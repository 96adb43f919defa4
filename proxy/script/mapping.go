package script

import (
	"fmt"
	"strings"
)

// Mapping is a map from a text to a value, as the lines of a map block give it. It is built by one goroutine; its value
// for a request is Func's.
type Mapping[R Holder] struct {
	source    *Template[R]
	hostnames bool
	names     Names[*Template[R]]
	patterns  []pattern[R]
	otherwise *Template[R]
}

type pattern[R Holder] struct {
	re *Regex[R]
	to *Template[R]
}

// NewMapping begins a map of the values of source. With hostnames, keys like *.example.com and www.example.* stand for
// all names of that kind, and a final dot of the source is ignored.
func NewMapping[R Holder](source *Template[R], hostnames bool) *Mapping[R] {
	return &Mapping[R]{source: source, hostnames: hostnames}
}

// Default sets the value of what no line takes; it is "" unless set.
func (m *Mapping[R]) Default(to *Template[R]) error {
	if m.otherwise != nil {
		return fmt.Errorf("there is a default already")
	}
	m.otherwise = to
	return nil
}

// Exact adds a key that is compared without regard to case; with hostnames it may be a wildcard.
func (m *Mapping[R]) Exact(key string, to *Template[R]) error {
	if m.hostnames {
		return m.names.Add(key, to)
	}
	return m.names.AddExact(key, to)
}

// Pattern adds a regular expression. They are tried in order, after all other keys; none takes the empty value.
func (m *Mapping[R]) Pattern(re *Regex[R], to *Template[R]) {
	m.patterns = append(m.patterns, pattern[R]{re, to})
}

// Value is the map's value for a request.
func (m *Mapping[R]) Value(r R) (string, bool) {
	s := r.Script()
	if !s.enter() {
		return "", false
	}
	text := m.compute(r)
	if !s.leave() {
		return "", false
	}
	return text, true
}

func (m *Mapping[R]) compute(r R) string {
	key := m.source.Value(r)
	if m.hostnames {
		key = strings.TrimSuffix(key, ".")
	}
	if to := m.find(r, key); to != nil {
		return to.Value(r)
	}
	return ""
}

func (m *Mapping[R]) find(r R, key string) *Template[R] {
	if to, ok := m.names.Find(lower(key)); ok {
		return to
	}
	if key == "" { // as in nginx: what is to be allowed by a pattern is not allowed by saying nothing
		return m.otherwise
	}
	for i := range m.patterns {
		if m.patterns[i].re.Match(r, key) {
			return m.patterns[i].to
		}
	}
	return m.otherwise
}
