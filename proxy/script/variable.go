package script

import (
	"fmt"
	"slices"
	"strings"
)

// Func computes a variable for a request; false: there is no such value, which counts as empty.
type Func[R any] func(R) (string, bool)

// Definition is a variable that a compiler knows from the beginning.
type Definition[R any] struct {
	Get Func[R]
	Set func(R, string) // what `set` does; nil: it can't be set
	// Append appends the value to dst: for texts that have to be made, where Get would need memory for each. It may stand in
	// place of Get. Without a value it leaves dst as it is.
	Append func(dst []byte, r R) ([]byte, bool)
	// Clean: whatever Append writes needs no escape anywhere: it has printable ASCII only, and no quote, backslash or dollar.
	Clean bool
	Once  bool // the first value is kept for the request
	// Refuse says why a configuration must not use the variable; empty: it may.
	Refuse string
}

// Known is the variables that a compiler starts with. Names are in lower case, without $.
type Known[R any] struct {
	Names map[string]Definition[R]
	// Families are variables that share the beginning of their names, such as arg_: the function makes the variable of the
	// rest, and reports false when there is none of that name.
	Families map[string]func(rest string) (Func[R], bool)
	// Missing says of a name that does not exist why that is, when there is more to say than that, and whether it is right and
	// only not built; nil: there never is.
	Missing func(name string) (why string, notBuilt bool)
}

// variable is one name of a configuration. It is complete after Compiler.Finish.
type variable[R Holder] struct {
	name string
	slot int // in State.values; -1: its value is never kept
	get  Func[R]
	set  func(R, string)

	append func(dst []byte, r R) ([]byte, bool) // nil: only get knows
	clean  bool
}

// value is the variable's value for a request.
func (v *variable[R]) value(r R) (string, bool) {
	if v.slot < 0 {
		return v.get(r)
	}
	s := r.Script()
	switch at := &s.values[v.slot]; at.kind {
	case written, kept:
		return at.text, true
	case absent:
		return "", false
	}
	if v.get == nil || !s.enter() {
		return "", false
	}
	text, ok := v.get(r)
	if !s.leave() {
		return "", false
	}
	return text, ok
}

// made is a variable's value as a text in the request's memory.
func made[R Holder](add func([]byte, R) ([]byte, bool)) Func[R] {
	return func(r R) (string, bool) {
		s := r.Script()
		b, ok := add(s.Borrow(), r)
		text := s.Keep(b)
		s.GiveBack(b)
		return text, ok
	}
}

// appends tells whether the value can be appended without being made a text first.
func (v *variable[R]) appends() bool { return v.append != nil && v.slot < 0 }

// Variable is a variable that a configuration writes.
type Variable[R Holder] struct{ v *variable[R] }

// Set gives it a value for the request.
func (w Variable[R]) Set(r R, text string) {
	if w.v.set != nil {
		w.v.set(r, text)
		return
	}
	r.Script().values[w.v.slot] = value{text, written}
}

// Compiler makes the scripts of one configuration. It is used by one goroutine, and its products only after Finish.
type Compiler[R Holder] struct {
	known     Known[R]
	variables map[string]*variable[R]
	slots     int
	uses      []use[R]

	instructions int // of its regular expressions
}

// use is where a variable is read that has not been defined yet: it may be later in the configuration.
type use[R Holder] struct {
	v  *variable[R]
	at any
}

// NewCompiler makes a compiler that knows these variables.
func NewCompiler[R Holder](known Known[R]) *Compiler[R] {
	return &Compiler[R]{known: known, variables: map[string]*variable[R]{}}
}

// Slots is the size of the State that the configuration needs.
func (c *Compiler[R]) Slots() int { return c.slots }

// Unknown is a variable that is read and defined nowhere, or that can't be used.
type Unknown struct {
	At     any    // as given where it was read
	Reason string // such as: no variable $hots
	Near   string // the most similar name, without $; may be empty
	// Undefined: nothing of this name is known.
	Undefined bool
	// NotBuilt: it is no mistake, but can't be served.
	NotBuilt bool
}

// Finish ends the compilation and lists the variables that are read at places but don't exist.
func (c *Compiler[R]) Finish() []Unknown {
	var out []Unknown
	for _, u := range c.uses {
		switch d := c.known.Names[u.v.name]; {
		case d.Refuse != "":
			out = append(out, Unknown{At: u.at, Reason: "$" + u.v.name + " " + d.Refuse})
		case u.v.get == nil && u.v.slot < 0:
			out = append(out, c.missing(u))
		}
	}
	return out
}

func (c *Compiler[R]) missing(u use[R]) Unknown {
	if c.known.Missing != nil {
		if why, notBuilt := c.known.Missing(u.v.name); why != "" {
			return Unknown{At: u.at, Reason: "$" + u.v.name + ": " + why, NotBuilt: notBuilt}
		}
	}
	return Unknown{At: u.at, Reason: "no variable $" + u.v.name, Undefined: true, Near: c.nearest(u.v.name)}
}

// Exists tells whether a variable of this name is known by now. Names are without $ and of any case.
func (c *Compiler[R]) Exists(name string) bool {
	v := c.lookup(name)
	return v.get != nil || v.slot >= 0
}

// lookup is the variable of a name, made when it is the first time.
func (c *Compiler[R]) lookup(name string) *variable[R] {
	name = strings.ToLower(name)
	if v := c.variables[name]; v != nil {
		return v
	}
	v := &variable[R]{name: name, slot: -1}
	c.variables[name] = v
	if d, ok := c.known.Names[name]; ok {
		v.get, v.set = d.Get, d.Set
		if d.Append != nil {
			v.append, v.clean = d.Append, d.Clean
			if v.get == nil {
				v.get = made(d.Append)
				d.Get = v.get
			}
		}
		if d.Once {
			c.keep(v, d.Get)
		}
		return v
	}
	longest := ""
	for family, of := range c.known.Families {
		if len(family) <= len(longest) || len(name) <= len(family) || !strings.HasPrefix(name, family) {
			continue
		}
		if get, ok := of(name[len(family):]); ok {
			v.get, longest = get, family
		}
	}
	return v
}

// read is the variable for a place that reads it.
func (c *Compiler[R]) read(at any, name string) *variable[R] {
	v := c.lookup(name)
	c.uses = append(c.uses, use[R]{v, at})
	return v
}

// keep makes v a variable whose first value is kept.
func (c *Compiler[R]) keep(v *variable[R], get Func[R]) {
	c.hold(v)
	v.get = func(r R) (string, bool) {
		text, ok := get(r)
		at := value{text, kept}
		if !ok {
			at = value{"", absent}
		}
		r.Script().values[v.slot] = at
		return text, ok
	}
}

// hold gives v a slot.
func (c *Compiler[R]) hold(v *variable[R]) {
	if v.slot < 0 {
		v.slot = c.slots
		c.slots++
	}
}

// Writable is the variable of a name for `set` and for named groups. It exists from then on in the whole configuration,
// empty until it is written. Name is without $.
func (c *Compiler[R]) Writable(name string) (Variable[R], error) {
	if !isName(name) {
		return Variable[R]{}, fmt.Errorf("%q is no name for a variable", name)
	}
	v := c.lookup(name)
	if d, builtin := c.known.Names[v.name]; builtin && d.Set == nil {
		return Variable[R]{}, fmt.Errorf("$%s is built in and can't be written", v.name)
	}
	if v.set == nil {
		c.hold(v)
	}
	return Variable[R]{v}, nil
}

// Define gives a name a function, as maps do; with once its first value is kept for the request. A later definition of
// the same name replaces an earlier one.
func (c *Compiler[R]) Define(name string, once bool, get Func[R]) error {
	if !isName(name) {
		return fmt.Errorf("%q is no name for a variable", name)
	}
	v := c.lookup(name)
	if _, builtin := c.known.Names[v.name]; builtin {
		return fmt.Errorf("$%s is built in and can't be defined again", v.name)
	}
	if once {
		c.keep(v, get)
	} else {
		v.get = get
	}
	return nil
}

// Read is a function for the value of a variable.
func (c *Compiler[R]) Read(at any, name string) Func[R] { return c.read(at, name).value }

func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return s != "" && (s[0] < '0' || s[0] > '9')
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// names is every name that could have been meant.
func (c *Compiler[R]) names() []string {
	var out []string
	for name, d := range c.known.Names {
		if d.Refuse == "" {
			out = append(out, name)
		}
	}
	for name, v := range c.variables {
		if v.get != nil || v.slot >= 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
