package site

import (
	"fmt"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// condition is what stands in the parentheses of an if.
type condition func(r *request) bool

const allowedIf = "($a), ($a = text), !=, ~, ~*, !~, !~*"

func addIf(l *level, n *topology.Node) {
	holds := l.condition(n)
	body := new(program)
	within := inServerIf
	if l.location != nil {
		within = inLocationIf
	}
	in := l.child(within, n)
	in.code = body
	in.set.enterIf()
	l.block(in, n.Block)
	if holds == nil {
		return
	}
	set := in.set
	l.add(func(r *request, x *execution) bool {
		if !holds(r) || r.Excess() { // then the program ends behind this
			return true
		}
		if r.trace != nil {
			r.step("rewrite", n.String(), n)
		}
		if within == inLocationIf {
			r.conf = set
		}
		return body.run(r, x)
	})
}

// condition compiles an if's arguments; nil after a problem.
func (l *level) condition(n *topology.Node) condition {
	args := stripParentheses(n.Args)
	if len(args) == 0 || args[0] == "" {
		l.problem(n, "no condition", allowedIf)
		return nil
	}
	if !strings.HasPrefix(args[0], "$") {
		reason := fmt.Sprintf("condition %q", strings.Join(args, " "))
		if op := strings.TrimPrefix(args[0], "!"); len(op) == 2 && op[0] == '-' && strings.Contains("fdex", op[1:]) {
			reason += ": there are no files to test"
		}
		l.problem(n, reason, allowedIf)
		return nil
	}
	name := strings.TrimSuffix(strings.TrimPrefix(args[0][1:], "{"), "}")
	read := l.script.Read(n, name)
	switch len(args) {
	case 1:
		return func(r *request) bool {
			v, _ := read(r)
			return v != "" && v != "0"
		}
	case 3:
		return l.comparison(n, func(r *request) string { v, _ := read(r); return v }, args[1], args[2])
	}
	l.problem(n, fmt.Sprintf("condition %q", strings.Join(args, " ")), allowedIf)
	return nil
}

func (l *level) comparison(n *topology.Node, left func(*request) string, op, right string) condition {
	switch op {
	case "=", "!=":
		to, want := l.template(n, right), op == "="
		return func(r *request) bool { return (left(r) == to.Value(r)) == want }
	case "~", "~*", "!~", "!~*":
		re, err := l.script.Regex(right, strings.HasSuffix(op, "*"))
		if err != nil {
			l.problem(n, err.Error(), "a regular expression of RE2's syntax")
			return nil
		}
		want := op[0] == '~'
		return func(r *request) bool {
			matched := re.Match(r, left(r))
			if !matched {
				r.ForgetCaptures()
			}
			return matched == want
		}
	}
	l.problem(n, fmt.Sprintf("operator %q", op), allowedIf)
	return nil
}

// stripParentheses takes the parentheses off, which a lexer may have left on the first and the last word or as words of
// their own.
func stripParentheses(args []string) []string {
	if len(args) == 0 || !strings.HasPrefix(args[0], "(") || !strings.HasSuffix(args[len(args)-1], ")") {
		return args
	}
	out := append([]string(nil), args...)
	if out[0] = out[0][1:]; out[0] == "" {
		out = out[1:]
	}
	if len(out) == 0 {
		return nil
	}
	last := len(out) - 1
	if out[last] = strings.TrimSuffix(out[last], ")"); out[last] == "" && last > 0 {
		out = out[:last]
	}
	return out
}
