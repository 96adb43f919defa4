package dialect

import (
	"slices"
	"strings"
	"sync"
)

// Class is what becomes of a directive.
type Class uint8

// The classes.
const (
	Supported Class = iota
	Noticed         // dropped, with a notice: that changes no byte that a client or a backend sees
	Refused         // a fault that names what to use instead
)

var classNames = []string{"supported", "notice", "refused"}

// String is the word for it in the reference.
func (c Class) String() string { return classNames[c] }

// many is a Max without limit.
const many = -1

// Directive is a row of the table. A name can have several, in different places.
type Directive struct {
	Name     string
	In       Context
	Min, Max int // number of arguments; Max -1: no limit
	Block    bool
	Class    Class
	Why      string // of a notice: why it may be dropped; of a refusal: what to do instead
}

// Directives is the whole table: all that this version knows, sorted by name. It must not be changed.
func Directives() []Directive { return table() }

var table = sync.OnceValue(func() []Directive {
	all := slices.Concat(structure, serving, proxying, upstreams, process, inert, refused)
	slices.SortStableFunc(all, func(a, b Directive) int { return strings.Compare(a.Name, b.Name) })
	return all
})

// byName is the rows of each name.
var byName = sync.OnceValue(func() map[string][]Directive {
	out := map[string][]Directive{}
	for _, d := range table() {
		out[d.Name] = append(out[d.Name], d)
	}
	return out
})

// find is the row of a name for a place; else one of another place, or none.
func find(name string, in Context) (d Directive, known, here bool) {
	rows := byName()[name]
	for _, row := range rows {
		if row.In&in != 0 {
			return row, true, true
		}
	}
	if len(rows) > 0 {
		return rows[0], true, false
	}
	return Directive{}, false, false
}

// placesOf is all places of a name.
func placesOf(name string) (in Context) {
	for _, row := range byName()[name] {
		in |= row.In
	}
	return in
}

// rows makes one row for each of the names in a text.
func rows(in Context, least, most int, class Class, why, names string) []Directive {
	var out []Directive
	for _, name := range strings.Fields(names) {
		out = append(out, Directive{Name: name, In: in, Min: least, Max: most, Class: class, Why: why})
	}
	return out
}

// near is the known name closest to a word that is none; empty when none is close.
func near(word string, in Context) string {
	best, distance := "", 3
	if len(word) < 5 {
		distance = 2
	}
	for _, d := range table() {
		if d.In&in == 0 || d.Class == Refused {
			continue
		}
		if n := edits(word, d.Name, distance); n < distance {
			best, distance = d.Name, n
		}
	}
	return best
}

// edits is the number of letters to change, add or leave out between two words; limit when it is that or more.
func edits(a, b string, limit int) int {
	if len(a) > 64 || len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], limit)
}
