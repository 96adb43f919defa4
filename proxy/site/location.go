package site

import (
	"fmt"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/script"
)

// form is how a location says which paths are its own.
type form uint8

const (
	formPrefix form = iota
	formExact       // =
	formStem        // ^~: a prefix that no regular expression overrules
	formRegex       // ~, ~*
	formNamed       // @: reached by redirects only
)

var forms = map[string]form{"=": formExact, "^~": formStem, "~": formRegex, "~*": formRegex}

// location is a location block.
type location struct {
	node         *topology.Node
	name         string // without modifier
	escaped      string // name as it stands in a Location
	form         form
	re           *script.Regex[*request]
	set          *settings
	code         program
	except       *exception // nil: every method is alike
	autoRedirect bool       // NAME without its final / is redirected to NAME
	inner        locations
}

// locations are those of a server, or those nested in a location.
type locations struct {
	static  tree
	regexes []*location
	some    bool
}

func (c *compiler) locationBlock(l *level, n *topology.Node) {
	loc := c.parseLocation(n)
	if loc == nil || !c.checkNesting(l, loc) {
		return
	}
	in := l.child(inLocation, n)
	in.location, in.code = loc, &loc.code
	in.set.enterLocation()
	loc.set = in.set
	c.block(in, n.Block)
	inner := &l.server.inner
	if l.location != nil {
		inner = &l.location.inner
	}
	c.place(l, inner, loc)
}

// parseLocation reads a location's arguments: a modifier and a name, which may be one word.
func (c *compiler) parseLocation(n *topology.Node) *location {
	if !c.args(n, 1, 2) {
		return nil
	}
	loc := &location{node: n}
	modifier, name := "", n.Args[len(n.Args)-1]
	if len(n.Args) == 2 {
		modifier = n.Args[0]
	} else {
		for _, m := range []string{"=", "^~", "~*", "~"} {
			if rest, ok := strings.CutPrefix(name, m); ok {
				modifier, name = m, rest
				break
			}
		}
	}
	f, known := forms[modifier]
	if !known && modifier != "" {
		c.problem(n, fmt.Sprintf("modifier %q", modifier), "=, ~, ~*, ^~ or none")
		return nil
	}
	loc.name, loc.form = name, f
	switch {
	case f == formRegex:
		re, err := c.script.Regex(name, modifier == "~*")
		if err != nil {
			c.problem(n, err.Error(), "a regular expression of RE2's syntax")
			return nil
		}
		loc.re = re
	case modifier == "" && strings.HasPrefix(name, "@"):
		loc.form = formNamed
	}
	loc.escaped = escapePath(name)
	return loc
}

// checkNesting refuses locations that nothing could reach, or that nginx doesn't take.
func (c *compiler) checkNesting(l *level, loc *location) bool {
	outer := l.location
	reason := ""
	switch {
	case outer == nil:
		return true
	case outer.form == formExact:
		reason = fmt.Sprintf("%q can't be inside the exact location %q", loc.name, outer.name)
	case outer.form == formNamed:
		reason = fmt.Sprintf("%q can't be inside the named location %q", loc.name, outer.name)
	case loc.form == formNamed:
		reason = fmt.Sprintf("the named location %q can stand in a server only", loc.name)
	case loc.form != formRegex && !strings.HasPrefix(loc.name, outer.name):
		reason = fmt.Sprintf("%q is outside location %q", loc.name, outer.name)
	default:
		return true
	}
	c.problem(loc.node, reason, "a location whose name begins with the outer one's, or a regular expression")
	return false
}

// place puts a location among its neighbours.
func (c *compiler) place(l *level, among *locations, loc *location) {
	among.some = true
	var before *location
	switch loc.form {
	case formRegex:
		among.regexes = append(among.regexes, loc)
		return
	case formNamed:
		before = l.server.named[loc.name]
		l.server.named[loc.name] = loc
	case formExact:
		at := among.static.node(loc.name)
		before = at.exact
		at.exact = loc
	default:
		at := among.static.node(loc.name)
		before = at.prefix
		at.prefix = loc
	}
	if before != nil {
		c.problem(loc.node, fmt.Sprintf("a duplicate location %q; the first is at %s:%d", loc.name, before.node.File, before.node.Line), "each name once")
	}
	if bare, ok := strings.CutSuffix(loc.name, "/"); ok && loc.autoRedirect && loc.form != formNamed {
		among.static.node(bare).slash = among.static.node(loc.name)
	}
}

// find is the location of the request's path, nil for none. Regular expressions leave their captures in the request.
func (ls *locations) find(r *request) (*location, found) {
	if !ls.some {
		return nil, nowhere
	}
	loc, how := ls.static.search(r.uri)
	if how == byExact || how == withSlash {
		return loc, how
	}
	stem := false
	if how == byPrefix {
		stem = loc.form == formStem
		inner, at := loc.inner.find(r)
		if inner != nil {
			loc = inner
		}
		if at == byExact || at == withSlash {
			return loc, at
		}
	}
	if stem {
		return loc, byPrefix
	}
	for _, x := range ls.regexes {
		if !x.re.Match(r, r.uri) {
			continue
		}
		if inner, _ := x.inner.find(r); inner != nil {
			return inner, byExact
		}
		return x, byExact
	}
	if loc == nil {
		return nil, nowhere
	}
	return loc, byPrefix
}
