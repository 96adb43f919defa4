package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/nginxinc/nginx-go-crossplane"

	"github.com/upstrand/upstrand/confgen/topology"
)

const (
	maxDepth = 32   // blocks in each other
	maxWord  = 4095 // bytes of a word; nginx has no longer ones either
)

// builder makes nodes of a file's words. It is no more than nginx's own grammar: a directive is words up to ; or a block.
type builder struct {
	file   string
	tokens <-chan crossplane.NgxToken
	left   int             // directives that may follow
	size   int             // directives read
	fault  *topology.Fault // the first; nothing is read after it
}

// build is the nodes of a text, at most so many, and how many there are. With a fault, they are those before it.
func build(file string, text []byte, most int) (nodes []*topology.Node, size int, fault *topology.Fault) {
	b := &builder{file: file, tokens: crossplane.Lex(bytes.NewReader(text)), left: most}
	nodes, _ = b.block(0, 0)
	for range b.tokens { // the lexer ends only when all has been taken
	}
	return nodes, b.size, b.fault
}

func (b *builder) fail(line int, name, reason string) {
	if b.fault == nil {
		b.fault = &topology.Fault{File: b.file, Line: line, Name: name, Reason: reason}
	}
}

// next is the next word; not ok at the end or after a fault. Comments are left out.
func (b *builder) next() (t crossplane.NgxToken, ok bool) {
	for b.fault == nil {
		t, ok = <-b.tokens
		if !ok {
			return t, false
		}
		if t.Error != nil {
			b.fail(lineOf(t), "", whatOf(t.Error))
			return t, false
		}
		if !t.IsQuoted && strings.HasPrefix(t.Value, "#") {
			continue
		}
		if len(t.Value) > maxWord {
			b.fail(t.Line, "", fmt.Sprintf("too long a word: %q has more than %d bytes", clip(t.Value), maxWord))
			return t, false
		}
		return t, true
	}
	return t, false
}

// lineOf prefers the line that the lexer's error names.
func lineOf(t crossplane.NgxToken) int {
	var e *crossplane.ParseError
	if errors.As(t.Error, &e) && e.Line != nil {
		return *e.Line
	}
	return t.Line
}

func whatOf(err error) string {
	var e *crossplane.ParseError
	if errors.As(err, &e) {
		return e.What
	}
	return err.Error()
}

// is tells whether a word is one of the marks { } ; and not the same in quotes.
func is(t crossplane.NgxToken, mark string) bool { return !t.IsQuoted && t.Value == mark }

// block reads directives up to the closing brace, or to the end at depth 0.
func (b *builder) block(depth, opened int) (nodes []*topology.Node, closed bool) {
	nodes = []*topology.Node{}
	for {
		t, ok := b.next()
		switch {
		case !ok && depth > 0:
			b.fail(opened, "", "the block that begins here is not closed")
			return nodes, false
		case !ok:
			return nodes, true
		case is(t, "}"):
			return nodes, true
		case is(t, ";"), is(t, "{"):
			b.fail(t.Line, "", "unexpected \""+t.Value+"\"; a directive's name is wanted")
			return nodes, false
		}
		n, ok := b.directive(t, depth)
		if n != nil {
			nodes = append(nodes, n)
		}
		if !ok {
			return nodes, false
		}
	}
}

// directive reads the rest of one whose name has been read. Not ok after a fault; of a block there is then what was
// read of it.
func (b *builder) directive(name crossplane.NgxToken, depth int) (*topology.Node, bool) {
	if b.size++; b.size > b.left {
		b.fail(name.Line, "", "too many directives in all files together")
		return nil, false
	}
	n := &topology.Node{Name: unescape(name.Value), File: b.file, Line: name.Line}
	for {
		t, ok := b.next()
		switch {
		case !ok, is(t, "}"):
			b.fail(n.Line, clip(n.Name), "is not terminated by \";\"")
			return nil, false
		case is(t, ";"):
			return n, true
		case is(t, "{"):
			if depth >= maxDepth {
				b.fail(t.Line, clip(n.Name), "blocks are nested too deep")
				return nil, false
			}
			n.HasBlock = true
			n.Block, ok = b.block(depth+1, n.Line)
			return n, ok
		}
		n.Args = append(n.Args, unescape(t.Value))
	}
}

// unescape undoes nginx's escapes of a word: \" \' \\ \t \r \n. Any other backslash stays, as in a regex.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if c, ok := escapes[s[i+1]]; ok {
				b.WriteByte(c)
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

var escapes = map[byte]byte{'"': '"', '\'': '\'', '\\': '\\', 't': '\t', 'r': '\r', 'n': '\n'}

// clip keeps a word that goes into an error short.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
