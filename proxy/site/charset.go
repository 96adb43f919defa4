package site

import (
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// charset is what a charset directive says: a name, or a text with variables that gives one.
type charset struct{ name *template }

func setCharset(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	l.settings().answer.charset = nil
	if n.Args[0] != "off" {
		l.settings().answer.charset = &charset{l.template(n, n.Args[0])}
	}
}

// addCharset says in Content-Type what charset a text has that does not say so itself.
func (r *request) addCharset(list *fieldList) {
	name := r.sent.charset // of X-Accel-Charset
	if c := r.conf.answer.charset; name == "" && c != nil {
		name = c.name.Value(r)
	} else if name == "off" {
		return
	}
	i := list.index("Content-Type")
	if name == "" || name == "off" || i < 0 {
		return
	}
	f := &(*list)[i]
	if len(f.Value) == 0 || strings.IndexByte(textOf(f.Value), ';') >= 0 || !r.conf.answer.charsetTypes.takes(f.Value) {
		return
	}
	value := append(make([]byte, 0, len(f.Value)+10+len(name)), f.Value...)
	f.Value = append(append(value, "; charset="...), singleLine(name)...)
}
