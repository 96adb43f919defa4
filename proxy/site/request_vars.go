package site

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"

	"github.com/upstrand/upstrand/proxy/forward"
)

// header is the value of the first field of that name, "" without one.
func (r *request) header(name string) string { return textOf(forward.Get(r.in.Fields, name)) }

// headerVariable is the value of $http_NAME: all fields of that name, in which lower case and _ stand for any case and -.
func headerVariable(r *request, name string) (string, bool) {
	sep := ", "
	if name == "cookie" {
		sep = "; "
	}
	first, more := -1, false
	for i := range r.in.Fields {
		if namesField(name, r.in.Fields[i].Name) {
			if first >= 0 {
				more = true
				break
			}
			first = i
		}
	}
	switch {
	case first < 0:
		return "", false
	case !more:
		return textOf(r.in.Fields[first].Value), true
	}
	var b strings.Builder
	for i := first; i < len(r.in.Fields); i++ {
		if f := &r.in.Fields[i]; namesField(name, f.Name) {
			if b.Len() > 0 {
				b.WriteString(sep)
			}
			b.Write(f.Value)
		}
	}
	return b.String(), true
}

// namesField compares a variable's name with a field's.
func namesField(variable string, field []byte) bool {
	if len(variable) != len(field) {
		return false
	}
	for i := range len(variable) {
		c := field[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c == '-':
			c = '_'
		}
		if c != variable[i] {
			return false
		}
	}
	return true
}

// argument is the value of the first NAME=VALUE in a query; the name's case does not count, and one without = is none.
func argument(args, name string) (string, bool) {
	for args != "" {
		pair := args
		if i := strings.IndexByte(args, '&'); i >= 0 {
			pair, args = args[:i], args[i+1:]
		} else {
			args = ""
		}
		if len(pair) > len(name) && pair[len(name)] == '=' && strings.EqualFold(pair[:len(name)], name) {
			return pair[len(name)+1:], true
		}
	}
	return "", false
}

// cookie is the value of the first cookie of that name, whatever its case.
func (r *request) cookie(name string) (string, bool) {
	for i := range r.in.Fields {
		if f := &r.in.Fields[i]; namesField("cookie", f.Name) {
			if v, ok := cookieValue(textOf(f.Value), name); ok {
				return v, true
			}
		}
	}
	return "", false
}

func cookieValue(line, name string) (string, bool) {
	for line != "" {
		if len(line) >= len(name) && strings.EqualFold(line[:len(name)], name) {
			rest := strings.TrimLeft(line[len(name):], " ")
			if v, ok := strings.CutPrefix(rest, "="); ok {
				v = strings.TrimLeft(v, " ")
				if i := strings.IndexByte(v, ';'); i >= 0 {
					v = v[:i]
				}
				return v, true
			}
		}
		i := strings.IndexAny(line, ";,")
		if i < 0 {
			return "", false
		}
		line = strings.TrimLeft(line[i+1:], " ")
	}
	return "", false
}

// appendRequestLine writes the first line of the request, as it came where that is known.
func appendRequestLine(b []byte, r *request) []byte {
	if r.in.Line != nil {
		return append(b, r.in.Line...)
	}
	b = append(append(b, r.in.Method...), ' ')
	b = append(append(b, r.in.Target...), ' ')
	return append(b, r.proto()...)
}

func requestLineLength(r *request) int {
	if r.in.Line != nil {
		return len(r.in.Line)
	}
	return len(r.in.Method) + len(r.in.Target) + len(r.proto()) + 2
}

func (r *request) proto() string {
	if r.in.Proto == "" {
		return "HTTP/1.1"
	}
	return r.in.Proto
}

// requestLength is the length of the request with its head. A head that did not come as lines is counted as if each had been
// written plainly.
func requestLength(r *request) int64 {
	if r.in.HeadSize > 0 {
		return r.in.HeadSize + max(r.in.Length, 0)
	}
	n := int64(requestLineLength(r) + 4)
	if len(r.in.Authority) > 0 {
		n += int64(len("Host: ") + len(r.in.Authority) + 2)
	}
	for i := range r.in.Fields {
		n += int64(len(r.in.Fields[i].Name) + len(r.in.Fields[i].Value) + 4)
	}
	return n + max(r.in.Length, 0)
}

// identity is 16 random bytes in hex, once for a request.
func (r *request) identity() string {
	u := r.rare()
	if u.id == "" {
		var b [16]byte
		_, _ = rand.Read(b[:])
		u.id = hex.EncodeToString(b[:])
	}
	return u.id
}

// remoteUser is the name that Basic authentication gives, whether it is right or not.
func remoteUser(r *request) string {
	scheme, text, ok := strings.Cut(r.header("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Basic") {
		return ""
	}
	plain, err := base64.StdEncoding.DecodeString(strings.TrimLeft(text, " "))
	user, _, colon := strings.Cut(string(plain), ":")
	if err != nil || !colon {
		return ""
	}
	return user
}

// contentLength is the announced length of the body.
func contentLength(r *request) string {
	if v := r.header("Content-Length"); v != "" {
		return v
	}
	if r.in.Body != nil && r.in.Length > 0 {
		return strconv.FormatInt(r.in.Length, 10)
	}
	return ""
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.Unmap().WithZone("").String()
}
