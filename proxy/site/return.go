package site

import (
	"fmt"
	"strconv"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/forward"
)

// statusClose is nginx's status for closing the connection without an answer.
const statusClose = 444

func addReturn(l *level, n *topology.Node) {
	if !l.args(n, 1, 2) {
		return
	}
	status, err := strconv.Atoi(n.Args[0])
	var text *template
	switch {
	case err != nil && len(n.Args) == 1 && leadsOut(n.Args[0]):
		status, text = 302, l.template(n, n.Args[0])
	case err != nil || status < 0 || status > 999:
		l.problem(n, fmt.Sprintf("status %q", n.Args[0]), "0 to 999 [TEXT or URL], or a URL that begins with http://, https:// or $scheme")
		return
	case len(n.Args) == 2:
		text = l.template(n, n.Args[1])
	}
	l.code.final = true
	l.add(func(r *request, x *execution) bool {
		if r.trace != nil {
			r.step("return", n.String(), n)
		}
		x.out = r.returned(status, text)
		return false
	})
}

// returned answers as a return directive says; a nil text: it gives none.
func (r *request) returned(status int, text *template) outcome {
	body := ""
	r.status = status // as the text may name it
	if text != nil {
		body = text.Value(r)
	}
	switch {
	case r.Excess():
		return fail(500)
	case status == statusClose:
		r.why = whyReturn
		return outcome{what: cut}
	case redirects(status):
		return r.led(failed, status, body, "")
	case status >= 400 && (text == nil || text.Text() == ""):
		r.why = whyReturn
		return fail(status)
	}
	r.why = whyReturn
	return r.local(status, body)
}

// local answers with a text of the configuration.
func (r *request) local(status int, body string) outcome {
	if status == 0 {
		status = 200
	}
	fields := r.leading(1)
	fields = append(fields, forward.Field{Name: nameContentType, Value: bytesOf(r.contentType())})
	return r.answer(status, fields, bytesOf(body))
}

// echo is the lines of echo directives, a module's that many use: each is its texts with a space between.
type echo struct {
	status int
	lines  []echoLine
}

type echoLine struct {
	texts []*template
	bare  bool // no line feed at the end
}

func setEcho(l *level, n *topology.Node) {
	args := n.Args
	line := echoLine{}
	if len(args) > 0 && args[0] == "-n" {
		line.bare, args = true, args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	for _, a := range args {
		line.texts = append(line.texts, l.template(n, a))
	}
	e := l.echo()
	e.lines = append(e.lines, line)
}

func setEchoStatus(l *level, n *topology.Node) {
	if !l.args(n, 1, 1) {
		return
	}
	status, err := topology.ParseNumber(n.Args[0], 200)
	if err != nil || status > 999 {
		l.problem(n, fmt.Sprintf("status %q", n.Args[0]), "200 to 999")
		return
	}
	l.echo().status = status
}

// echo is the level's own one.
func (l *level) echo() *echo {
	s := l.settings()
	if l.first("echo") {
		s.core.echo = &echo{status: 200}
		s.handler = (*request).echoed
	}
	return s.core.echo
}
