package site

import (
	"fmt"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/script"
	"github.com/upstrand/upstrand/proxy/upstrand"
)

// Upstrand is an upstrand as requests meet it. The Link of its members is their *Upstream.
type Upstrand struct {
	Name       string
	State      *upstrand.State
	Intercepts []Intercept // the first that has the final status counts
}

// Intercept gives a walk's final status another answer.
type Intercept struct {
	Statuses upstrand.Statuses
	URI      string // begins with / or @
}

// intercept is where a final status leads; empty: its answer is given.
func (u *Upstrand) intercept(status int) string {
	for i := range u.Intercepts {
		if u.Intercepts[i].Statuses.Has(status, false) {
			return u.Intercepts[i].URI
		}
	}
	return ""
}

var upstrandSetters = map[string]setter{"dynamic_upstrand": setDynamicUpstrand}

// dynamic is a dynamic_upstrand: a variable that means $upstrand_NAME of a name which the request chooses.
type dynamic struct {
	variable   string // in lower case
	candidates []candidate
	level      *level // that declares it
}

// candidate is a text with variables, which is passed over when it is empty, or a name.
type candidate struct {
	text    *template
	literal bool
}

// setDynamicUpstrand adds to what was inherited, or comes in its place. Of two in one level the first counts.
func setDynamicUpstrand(l *level, n *topology.Node) {
	if !l.args(n, 2, -1) {
		return
	}
	name, ok := strings.CutPrefix(n.Args[0], "$")
	if !ok {
		l.problem(n, fmt.Sprintf("variable %q", n.Args[0]), "$name")
		return
	}
	d := &dynamic{variable: strings.ToLower(name), level: l}
	if err := l.defineDynamic(d.variable); err != nil {
		l.problem(n, err.Error(), "a name of your own")
		return
	}
	for _, arg := range n.Args[1:] {
		d.candidates = append(d.candidates, candidate{l.template(n, arg), !strings.Contains(arg, "$")})
		if !strings.Contains(arg, "$") {
			break // a name decides: what follows is never looked at
		}
	}
	set := l.settings()
	all := make([]*dynamic, 0, len(set.dynamics)+1)
	for _, other := range set.dynamics {
		switch {
		case other.variable != d.variable:
			all = append(all, other)
		case other.level == l:
			return
		}
	}
	set.dynamics = append(all, d)
}

// defineDynamic makes the variable, which is there in the whole configuration and empty where nothing declares it.
func (c *compiler) defineDynamic(name string) error {
	if c.dynamics[name] {
		return nil
	}
	if c.dynamics == nil {
		c.dynamics = map[string]bool{}
	}
	c.dynamics[name] = true
	return c.script.Define(name, false, func(r *request) (string, bool) {
		if r.conf == nil {
			return "", false
		}
		for _, d := range r.conf.dynamics {
			if d.variable == name {
				return d.value(r)
			}
		}
		return "", false
	})
}

// value is the upstream at hand of the upstrand that the first candidate with a text names.
func (d *dynamic) value(r *request) (string, bool) {
	for i := range d.candidates {
		c := &d.candidates[i]
		if name := c.text.Value(r); c.literal || name != "" {
			return r.upstrandValue(lowerText(name))
		}
	}
	return "", false
}

// upstrandFamily is the variables $upstrand_NAME.
func (o Options) upstrandFamily(name string) (script.Func[*request], bool) {
	if o.Upstrands == nil || !o.Upstrands(name) {
		return nil, false
	}
	return func(r *request) (string, bool) { return r.upstrandValue(name) }, true
}

// missing says why a variable $upstrand_NAME is none.
func (o Options) missing(name string) (why string, notBuilt bool) {
	if of, ok := strings.CutPrefix(name, "upstrand_"); ok {
		return fmt.Sprintf("no upstrand %q is declared", of), false
	}
	return "", false
}
