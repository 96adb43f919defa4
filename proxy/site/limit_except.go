package site

import (
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// exception is a limit_except block: what holds for requests with other methods than its.
type exception struct {
	node    *topology.Node
	methods []string // that it doesn't hold for
	set     *settings
}

// knownMethods are those that a configuration may name.
var knownMethods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "MKCOL", "COPY", "MOVE", "OPTIONS", "PROPFIND", "PROPPATCH", "LOCK", "UNLOCK", "PATCH"}

// limitExcept compiles a limit_except block. As in nginx it is a level of its own that takes the location's place: it
// inherits a proxy_pass, and no rewrite directive, try_files or other content.
func (c *compiler) limitExcept(l *level, n *topology.Node) {
	if !l.args(n, 1, -1) || !l.once(n) {
		return
	}
	e := &exception{node: n}
	for _, name := range n.Args {
		method := strings.ToUpper(name)
		if !slices.Contains(knownMethods, method) {
			c.problem(n, "method "+quote(name), strings.Join(knownMethods, ", "))
			continue
		}
		e.methods = append(e.methods, method)
		if method == "GET" {
			e.methods = append(e.methods, "HEAD")
		}
	}
	in := l.child(inLimitExcept, n)
	in.code = new(program)
	in.set.enterLimitExcept()
	c.block(in, n.Block)
	e.set = in.set
	l.location.except = e
}

// enterLimitExcept takes out what a limit_except block doesn't inherit from its location.
func (s *settings) enterLimitExcept() {
	s.core.enterIf()
	s.handler = nil
	if s.way().target != nil {
		s.handler = (*request).proxy
	}
}

// settle puts the settings of the location that was found in force, or those of its limit_except.
func (r *request) settle(loc *location) {
	r.location, r.conf, r.excepted = loc, loc.set, false
	if e := loc.except; e != nil && !slices.Contains(e.methods, string(r.method)) {
		r.conf, r.excepted = e.set, true
		if r.trace != nil {
			r.step("limit_except", e.node.String(), e.node)
		}
	}
}
