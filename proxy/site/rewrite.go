package site

import (
	"fmt"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/script"
)

// program is the rewrite directives of a server or location in their order; those of an if block stand in its own.
type program struct {
	steps []instruction
	final bool // the last one always ends the request: nothing comes to the content
}

// instruction carries out one of them. It reports whether the one behind it follows.
type instruction func(r *request, x *execution) bool

// execution is one run through a program.
type execution struct {
	out outcome
	// escape: captures are escaped where they are written into a variable, which nginx does until a rewrite has matched.
	escape bool
}

// rewriting are the directives that make up programs.
var rewriting map[string]func(l *level, n *topology.Node)

func init() {
	rewriting = map[string]func(l *level, n *topology.Node){
		"rewrite": addRewrite, "break": addBreak, "set": addSet, "return": addReturn, "if": addIf,
	}
}

func (l *level) add(i instruction) { l.code.steps = append(l.code.steps, i) }

func (p *program) empty() bool { return len(p.steps) == 0 }

// ends tells whether no request gets past the program.
func (p *program) ends() bool { return p.final }

// run carries a program out. Onward: the request goes on.
func (r *request) run(p *program) outcome {
	x := &r.rare().execution
	*x = execution{out: outcome{what: onward}, escape: true}
	p.run(r, x)
	return x.out
}

func (p *program) run(r *request, x *execution) bool {
	for _, i := range p.steps {
		next := i(r, x)
		if r.Excess() { // a condition may have been decided by a text that was cut off
			x.out = fail(500)
			return false
		}
		if !next {
			return false
		}
	}
	return true
}

func addBreak(l *level, n *topology.Node) {
	if l.args(n, 0, 0) {
		l.add(func(r *request, _ *execution) bool {
			r.changed, r.stayed = false, r.stayed || r.changed
			return false
		})
	}
}

func addSet(l *level, n *topology.Node) {
	if !l.args(n, 2, 2) {
		return
	}
	name, ok := strings.CutPrefix(n.Args[0], "$")
	if !ok {
		l.problem(n, fmt.Sprintf("variable %q", n.Args[0]), "$name")
		return
	}
	to, err := l.script.Writable(name)
	if err != nil {
		l.problem(n, err.Error(), "a name of your own, or $args")
		return
	}
	from := l.template(n, n.Args[1])
	l.add(func(r *request, x *execution) bool {
		if x.escape && (r.quoted || r.plus) {
			to.Set(r, string(from.AppendWith(nil, r, appendEscapedArgs)))
		} else {
			to.Set(r, from.Value(r))
		}
		return true
	})
}

// rewrite is one rewrite directive.
type rewrite struct {
	node     *topology.Node
	re       *script.Regex[*request]
	path     *template
	args     *template // behind the replacement's ?; nil: it has none
	keep     bool      // the request's arguments are appended
	redirect int       // status; 0: inside
	last     bool      // nothing of the program follows
	stay     bool      // break: in this location
}

func addRewrite(l *level, n *topology.Node) {
	if !l.args(n, 2, 3) {
		return
	}
	re, err := l.script.Regex(n.Args[0], false)
	if err != nil {
		l.problem(n, err.Error(), "a regular expression of RE2's syntax")
		return
	}
	text := n.Args[1]
	if text == "" {
		l.problem(n, "an empty replacement", "a path or a URL")
		return
	}
	w := &rewrite{node: n, re: re, keep: true}
	if rest, ok := strings.CutSuffix(text, "?"); ok {
		text, w.keep = rest, false
	}
	if leadsOut(text) {
		w.redirect, w.last = 302, true
	}
	if len(n.Args) == 3 && !w.flag(n.Args[2]) {
		l.problem(n, fmt.Sprintf("flag %q", n.Args[2]), "last, break, redirect, permanent")
		return
	}
	path, args, hasArgs := script.Cut(text, '?')
	w.path = l.template(n, path)
	if hasArgs {
		w.args = l.template(n, args)
	}
	if w.redirect != 0 {
		l.add(w.lead)
	} else {
		l.add(w.within)
	}
}

func (w *rewrite) flag(f string) bool {
	w.last = true
	switch f {
	case "last":
	case "break":
		w.stay = true
	case "redirect":
		w.redirect = 302
	case "permanent":
		w.redirect = 301
	default:
		return false
	}
	return true
}

// leadsOut: a replacement that begins so is always a redirect.
func leadsOut(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "$scheme")
}

// match tries the pattern; without a match there are no captures any more.
func (w *rewrite) match(r *request, x *execution) bool {
	if !w.re.Match(r, r.uri) {
		r.ForgetCaptures()
		return false
	}
	if r.trace != nil {
		r.step("rewrite", w.node.String(), w.node)
	}
	x.escape = false
	return true
}

// within changes the request's path and arguments.
func (w *rewrite) within(r *request, x *execution) bool {
	if !w.match(r, x) {
		return true
	}
	args := ""
	if w.args != nil {
		args = r.argsOf(w.args, w.keep)
	} else if w.keep {
		args = r.args
	}
	r.uri, r.args = w.path.Value(r), args
	r.internal, r.whole = true, false
	r.changed, r.stayed = !w.stay, r.stayed || w.stay
	if r.uri == "" {
		x.out = fail(500)
		return false
	}
	return !w.last
}

// argsOf is a replacement's arguments: captures of an escaped path are escaped again.
func (r *request) argsOf(t *template, keep bool) string {
	var b []byte
	if r.quoted || r.plus {
		b = t.AppendWith(b, r, appendEscapedArgs)
	} else {
		b = t.Append(b, r)
	}
	if keep && r.args != "" {
		b = append(append(b, '&'), r.args...)
	}
	return string(b)
}

// lead sends the client elsewhere.
func (w *rewrite) lead(r *request, x *execution) bool {
	if !w.match(r, x) {
		return true
	}
	escape := func(b []byte, s string) []byte { return append(b, s...) }
	if r.quoted || r.plus {
		escape = appendEscapedArgs
	}
	b := w.path.AppendWith(nil, r, escape)
	if w.args != nil {
		b = w.args.AppendWith(append(b, '?'), r, escape)
	}
	b = unescapeRedirect(b)
	if w.keep && r.args != "" {
		if w.args != nil {
			b = append(b, '&')
		} else {
			b = append(b, '?')
		}
		b = append(b, r.args...)
	}
	x.out = r.led(failed, w.redirect, string(b), "")
	return false
}
