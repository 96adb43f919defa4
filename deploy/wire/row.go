package wire

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Row is one case of a table: what a client sends, what it gets, and what the backend sees and answers. In a file:
//
//	== name
//	# why, with the section of the RFC that says so
//	@ words             settings, see below
//	> GET / HTTP/1.1    what the client sends, a line each
//	>
//	~ HTTP/1.1 200 OK   what the backend answers, a line each; without: 200 and "ok"
//	| GET / HTTP/1.1    what the backend gets: the head with all its fields, in order
//	| Host: a
//	|
//	|= text             and the body, out of its chunks
//	|+ Name: value      a field of the trailer
//	|! cut              or that it never came to its end
//	< 200 keep          what the client gets, each answer with a line: the last one says what becomes of the connection
//	<= text             the body of the answer before
//	<  Name: value      a field that it has, once, with that value
//	<! Name             one that it must not have
//	<+ Name: value      one of its trailer
//
// A line stands for itself with CR LF behind it; one that ends in a backslash for itself alone. \n \r \t \0 \s \\ and \xHH are bytes,
// {9000*a} so many of them. Without a line | the backend gets nothing. What becomes of the connection: keep, close, or wait (nothing
// comes, and it is open), any.
//
// Settings: file or published (the row is for one of the two ways to be configured), part (a pause before the next lines of >), told (they go when
// an informational answer has come), come (they go when the backend has the head),
// end (the client ends its side after what it sent), whole (never cut into pieces), head (the answer is to a HEAD), loose (what the backend
// gets is not compared), torn (nor is it, and it must not have come to its end), silent (the client may get no answer at all), early (the backend answers before it reads the body), asks (it
// sends 100 before that), closes (it closes the connection behind its answer), many (informational answers are passed over).
type Row struct {
	Name     string
	File     string
	Line     int
	Why      string
	Settings map[string]bool
	Send     []Part
	Answer   string // the backend's
	Answered bool   // Answer counts; else it is OK
	Seen     []Seen
	Got      []Got
}

// Part is what is sent in one go, after a pause.
type Part struct {
	Text string
	Told bool // goes when the client has got an informational answer
	Come bool // goes when the backend has got the head
}

// Seen is a request as the backend must have got it.
type Seen struct {
	Line    string
	Fields  []string
	Body    string
	Trailer []string
	Cut     bool
	headed  bool
}

// Got is an answer as the client must have got it.
type Got struct {
	Status  []int // any of them; none: the connection ends without an answer, or nothing comes
	After   string
	Has     []string
	Lacks   []string
	Trailer []string
	Body    string
	Checked bool // Body is compared
	Cut     bool // the answer is not whole
}

// ReadRows reads a table.
func ReadRows(path string) ([]Row, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rows []Row
	var errs []error
	for i, line := range strings.Split(string(raw), "\n") {
		if name, ok := strings.CutPrefix(line, "== "); ok {
			rows = append(rows, Row{Name: name, File: path, Line: i + 1, Settings: map[string]bool{}, Send: []Part{{}}})
			continue
		}
		if line == "" || len(rows) == 0 {
			continue
		}
		if err := rows[len(rows)-1].add(line); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", path, i+1, err))
		}
	}
	for i := range rows {
		if err := rows[i].check(); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", path, rows[i].Line, err))
		}
	}
	return rows, errors.Join(errs...)
}

func (r *Row) check() error {
	switch {
	case !strings.Contains(r.Why, "RFC") && !strings.Contains(r.Why, "issue"):
		return errors.New("a row without its reason: name the section of an RFC")
	case len(r.Got) == 0:
		return errors.New("a row that says nothing of what the client gets")
	case r.Got[len(r.Got)-1].After == "":
		return errors.New("what becomes of the connection is not said")
	}
	return nil
}

func (r *Row) add(line string) error {
	sign, rest, _ := strings.Cut(line, " ")
	if sign == "#" {
		r.Why += rest + "\n"
		return nil
	}
	if sign == "@" {
		for word := range strings.FieldsSeq(rest) {
			if word == "part" || word == "told" || word == "come" {
				r.Send = append(r.Send, Part{Told: word == "told", Come: word == "come"})
				continue
			}
			r.Settings[word] = true
		}
		return nil
	}
	text, err := bytesOf(rest, sign == ">" || sign == "~")
	if err != nil {
		return err
	}
	switch sign[0] {
	case '>':
		r.Send[len(r.Send)-1].Text += text
	case '~':
		r.Answer, r.Answered = r.Answer+text, true
	case '|':
		return r.seen(sign, text)
	case '<':
		return r.got(sign, text)
	default:
		return fmt.Errorf("%q is no line of a row", line)
	}
	return nil
}

func (r *Row) seen(sign, text string) error {
	if sign == "|" && (len(r.Seen) == 0 || r.Seen[len(r.Seen)-1].headed) {
		r.Seen = append(r.Seen, Seen{Line: text})
		return nil
	}
	s := &r.Seen[len(r.Seen)-1]
	switch {
	case sign == "|" && text == "":
		s.headed = true
	case sign == "|":
		s.Fields = append(s.Fields, text)
	case sign == "|=":
		s.Body += text
	case sign == "|+":
		s.Trailer = append(s.Trailer, text)
	case sign == "|!" && text == "cut":
		s.Cut = true
	default:
		return fmt.Errorf("%q is no sign", sign)
	}
	return nil
}

func (r *Row) got(sign, text string) error {
	if sign == "<" && !strings.HasPrefix(text, " ") {
		var g Got
		for _, word := range strings.Fields(text) {
			switch word {
			case "keep", "close", "wait", "any":
				g.After = word
			case "cut":
				g.Cut = true
			default: // a status, or several
				for one := range strings.SplitSeq(word, "|") {
					n, err := strconv.Atoi(one)
					if err != nil {
						return err
					}
					g.Status = append(g.Status, n)
				}
			}
		}
		r.Got = append(r.Got, g)
		return nil
	}
	if len(r.Got) == 0 {
		return errors.New("no answer before this line")
	}
	g := &r.Got[len(r.Got)-1]
	switch sign {
	case "<=":
		g.Body, g.Checked = g.Body+text, true
	case "<":
		g.Has = append(g.Has, strings.TrimSpace(text))
	case "<!":
		g.Lacks = append(g.Lacks, text)
	case "<+":
		g.Trailer = append(g.Trailer, text)
	default:
		return fmt.Errorf("%q is no sign", sign)
	}
	return nil
}

var escapes = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', '0': 0, 's': ' ', '\\': '\\'}

// bytesOf reads the escapes of a line. With ends the line gets its CR LF.
func bytesOf(line string, ends bool) (string, error) {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '{':
			size, what, ok := strings.Cut(line[i+1:], "*")
			n, err := strconv.Atoi(size)
			end := strings.IndexByte(what, '}')
			if !ok || err != nil || end < 0 {
				b.WriteByte(c)
				continue
			}
			piece, err := bytesOf(what[:end], false)
			if err != nil {
				return "", err
			}
			b.WriteString(strings.Repeat(piece, n))
			i += len("{") + len(size) + len("*") + end
		case c != '\\':
			b.WriteByte(c)
		case i+1 == len(line):
			return b.String(), nil
		case line[i+1] == 'x' && i+3 < len(line):
			n, err := strconv.ParseUint(line[i+2:i+4], 16, 8)
			if err != nil {
				return "", err
			}
			b.WriteByte(byte(n))
			i += 3
		default:
			plain, ok := escapes[line[i+1]]
			if !ok {
				return "", fmt.Errorf("no such escape: \\%c", line[i+1])
			}
			b.WriteByte(plain)
			i++
		}
	}
	if ends {
		b.WriteString("\r\n")
	}
	return b.String(), nil
}
