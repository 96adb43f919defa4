package site

import (
	"fmt"
	"os"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/script"
)

// server is a server block.
type server struct {
	node    *topology.Node
	set     *settings
	name    string // the first one: $server_name
	names   []serverName
	listens []listening
	code    program // of the server's rewrite phase
	inner   locations
	named   map[string]*location
	merge   bool          // merge_slashes
	tls     *certs.Server // of one that is on an address with TLS
	broken  bool          // … and what it needs can't be used
}

// serverName is one name of a server: a regular expression, or a text that may be a wildcard.
type serverName struct {
	text string
	re   *script.Regex[*request]
	node *topology.Node
}

var serverSetters = map[string]setter{
	"listen":        setListen,
	"server_name":   setServerName,
	"merge_slashes": setMergeSlashes,
}

func (c *compiler) serverBlock(l *level, n *topology.Node) {
	if len(n.Args) > 0 {
		c.problem(n, "takes no arguments", "server { … }")
		return
	}
	in := l.child(inServer, n)
	s := &server{node: n, set: in.set, merge: true, named: map[string]*location{}}
	in.server, in.code = s, &s.code
	c.servers = append(c.servers, s)
	if l.merge != nil {
		s.merge = *l.merge
	}
	c.block(in, n.Block)
	c.checkFiles(s)
	if len(s.listens) == 0 {
		s.listens = []listening{{node: n, listen: Listen{Addr: anyPort(80), File: n.File, Line: n.Line}}}
	}
	if len(s.names) == 0 {
		s.names = []serverName{{node: n}}
	}
	first := s.names[0]
	s.name = strings.TrimPrefix(first.text, ".")
	if first.re != nil {
		s.name = first.text
	}
}

func setServerName(l *level, n *topology.Node) {
	if !l.args(n, 1, -1) || l.server == nil {
		return
	}
	for _, name := range n.Args {
		switch {
		case strings.HasPrefix(name, "~"):
			re, err := l.script.Regex(name[1:], strings.ContainsFunc(name, isUpper))
			if err != nil {
				l.problem(n, err.Error(), "a regular expression of RE2's syntax")
				continue
			}
			l.server.names = append(l.server.names, serverName{name, re, n})
			continue
		case name == "$hostname":
			host, err := os.Hostname()
			if err != nil {
				l.problem(n, err.Error(), "a name")
				continue
			}
			name = host
		}
		var try script.Names[bool]
		if err := try.Add(name, true); err != nil || strings.ContainsAny(name, "/$") {
			l.problem(n, fmt.Sprintf("%q is no name", name), "names, *.example.com, .example.com, www.example.*, ~REGEX, _, \"\"")
			continue
		}
		l.server.names = append(l.server.names, serverName{text: strings.ToLower(name), node: n})
	}
}

// isUpper: nginx compares a name without regard to case when the expression has a capital letter.
func isUpper(r rune) bool { return r >= 'A' && r <= 'Z' }

func setMergeSlashes(l *level, n *topology.Node) {
	on := true
	if !l.once(n) {
		return
	}
	l.flag(n, &on)
	if l.server != nil {
		l.server.merge = on
	} else {
		l.merge = &on
	}
}
