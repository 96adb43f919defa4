package site

import (
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/forward"
)

// addedHeader is an add_header.
type addedHeader struct {
	name   string
	value  *template
	always bool // for every status, not only for those of success and redirection
}

func setAddHeader(l *level, n *topology.Node) {
	if !l.args(n, 2, 3) {
		return
	}
	h := addedHeader{name: n.Args[0], value: l.template(n, n.Args[1])}
	if len(n.Args) == 3 {
		if h.always = n.Args[2] == "always"; !h.always {
			l.problem(n, quote(n.Args[2]), "always")
		}
	}
	if !isFieldName(h.name) {
		l.problem(n, quote(h.name)+" is no name of a header field", "letters, digits and any of !#$%&'*+-.^_`|~")
		return
	}
	a := &l.settings().answer
	if l.first(n.Name) {
		a.headers = nil
	}
	a.headers = append(a.headers, h)
}

// isFieldName is RFC 9110's token.
func isFieldName(s string) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return s != ""
}

var tokenBytes = func() (set [256]bool) {
	for c := range set {
		set[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for _, c := range []byte("!#$%&'*+-.^_`|~") {
		set[c] = true
	}
	return set
}()

// isGood is the statuses for which add_header and expires hold without more words.
func isGood(status int) bool {
	switch status {
	case 200, 201, 204, 206, 301, 302, 303, 304, 307, 308:
		return true
	}
	return false
}

// addHeaders carries out the add_header lines in force. A Last-Modified or an ETag is replaced, all others stand beside
// what the answer has.
func (r *request) addHeaders(list *fieldList, status int) {
	for i := range r.conf.answer.headers {
		h := &r.conf.answer.headers[i]
		if !h.always && !isGood(status) {
			continue
		}
		value := singleLine(h.value.Value(r))
		switch {
		case sameName(bytesOf(h.name), "Last-Modified"), sameName(bytesOf(h.name), "ETag"):
			if list.drop(h.name); len(value) > 0 {
				list.add(h.name, value)
			}
		case len(value) > 0:
			*list = append(*list, forward.Field{Name: bytesOf(h.name), Value: value})
		}
	}
}
