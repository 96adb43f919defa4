package site

import (
	"context"
	"fmt"
	"slices"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/script"
)

// settings is what directives that are inherited say at one level. A child's begin as a copy of its parent's, taken when
// the whole block of the parent has been read; so a part must not hold what a child could change in place: lists are
// replaced, not appended to, unless the level began them itself (see level.first).
//
// Every request looks at the same few of them: those stand first here and in each part, so that they are few cache lines.
type settings struct {
	handler handler // who makes the content; nil: nobody does
	byGRPC  bool    // … it is grpc_pass's
	log     logSettings
	core    coreSettings
	limit   limitSettings
	access  accessSettings
	client  clientSettings
	answer  answerSettings
	proxy   proxySettings
	grpc    proxySettings // of grpc_…, which say the same of gRPC
	tls     tlsSettings

	dynamics []*dynamic // in force: one for each variable
}

// handler makes the answer to a request.
type handler func(r *request, ctx context.Context) outcome

func defaultSettings() *settings {
	s := &settings{core: defaultCore()}
	s.proxy.defaults()
	s.grpc.grpcDefaults()
	s.answer.defaults()
	s.access.defaults()
	s.log.defaults()
	s.client.defaults()
	s.limit.defaults()
	s.tls.defaults()
	return s
}

// enterLocation takes out what a location doesn't inherit from what it stands in.
func (s *settings) enterLocation() {
	s.handler = nil
	s.core.enterLocation()
	s.proxy.enterLocation()
	s.grpc.enterLocation()
}

// enterIf takes out what an if block doesn't inherit from its location.
func (s *settings) enterIf() { s.core.enterIf() }

// kind is what kind of block a level is.
type kind uint8

const (
	inHTTP kind = iota
	inServer
	inServerIf // has no settings of its own: nginx keeps none there
	inLocation
	inLocationIf
	inLimitExcept
)

// level is a block that is being compiled.
type level struct {
	*compiler
	kind     kind
	parent   *level // nil: http
	node     *topology.Node
	set      *settings
	seen     map[string]bool
	server   *server   // nil: http
	location *location // the one that the level is, or is in; nil: none
	code     *program  // what its rewrite directives are added to; nil: http
}

// settings are those of the level, to be written by setters.
func (l *level) settings() *settings { return l.set }

// first reports whether it is the first time that the level is asked for this name: then a list that was inherited is
// replaced.
func (l *level) first(name string) bool {
	if l.seen[name] {
		return false
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[name] = true
	return true
}

// once is first for directives that must stand in a level at most once; else it is a problem.
func (l *level) once(n *topology.Node) bool {
	if l.first(n.Name) {
		return true
	}
	l.problem(n, "is duplicate", "once in a block")
	return false
}

// problem notes that something can't be used, and what could.
func (c *compiler) problem(n *topology.Node, reason, allowed string) {
	c.faults = append(c.faults, n.Fault(reason, allowed))
}

// notice notes that something has no effect.
func (c *compiler) notice(n *topology.Node, reason string) {
	f := n.Fault(reason, "")
	if !slices.Contains(c.site.notices, f) {
		c.site.notices = append(c.site.notices, f)
	}
}

// template compiles a text with variables. After a problem it is an empty one.
func (c *compiler) template(n *topology.Node, text string) *script.Template[*request] {
	t, err := c.script.Template(n, text)
	if err != nil {
		c.problem(n, err.Error(), "text with $name, ${name} or $1 to $9")
		t, _ = c.script.Template(n, "")
	}
	return t
}

// args reports whether the directive has from least to most arguments, and is a problem otherwise. Most below 0: any
// number.
func (c *compiler) args(n *topology.Node, least, most int) bool {
	if len(n.Args) >= least && (most < 0 || len(n.Args) <= most) {
		return true
	}
	allowed := fmt.Sprintf("%d to %d arguments", least, most)
	switch {
	case most < 0:
		allowed = fmt.Sprintf("%d arguments or more", least)
	case least == most:
		allowed = fmt.Sprintf("%d arguments", least)
	}
	c.problem(n, fmt.Sprintf("has %d arguments", len(n.Args)), allowed)
	return false
}

// flag reads on or off into to.
func (c *compiler) flag(n *topology.Node, to *bool) {
	if !c.args(n, 1, 1) {
		return
	}
	switch n.Args[0] {
	case "on":
		*to = true
	case "off":
		*to = false
	default:
		c.problem(n, fmt.Sprintf("%q", n.Args[0]), "on, off")
	}
}

// setter carries a directive without a block, or with one that has no directives in it, into a level.
type setter func(l *level, n *topology.Node)

// onOff is a setter for a flag.
func onOff(of func(*settings) *bool) setter {
	return func(l *level, n *topology.Node) {
		if l.once(n) {
			l.flag(n, of(l.settings()))
		}
	}
}
