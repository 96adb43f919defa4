package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Message is a request or an answer as it came over a wire.
type Message struct {
	Line    string   // the first line
	Fields  []string // the others, "Name: value", as they came
	Body    []byte   // taken out of its chunks
	Trailer []string
	Chunked bool
	Whole   bool     // it came to its end
	Faults  []string // what a strict reader refuses: a message that two readers could read differently has some
}

// Get is the value of the first field of that name, and how many there are.
func (m *Message) Get(name string) (value string, n int) { return get(m.Fields, name) }

func get(lines []string, name string) (value string, n int) {
	for _, line := range lines {
		have, v, _ := strings.Cut(line, ":")
		if !strings.EqualFold(have, name) {
			continue
		}
		if n++; n == 1 {
			value = strings.Trim(v, " \t")
		}
	}
	return value, n
}

// Method is a request's.
func (m *Message) Method() string { method, _, _ := strings.Cut(m.Line, " "); return method }

// Target is a request's.
func (m *Message) Target() string {
	_, rest, _ := strings.Cut(m.Line, " ")
	target, _, _ := strings.Cut(rest, " ")
	return target
}

// Status is an answer's, 0 when it has none.
func (m *Message) Status() int {
	_, rest, _ := strings.Cut(m.Line, " ")
	word, _, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(word)
	return n
}

func (m *Message) fault(format string, args ...any) {
	m.Faults = append(m.Faults, fmt.Sprintf(format, args...))
}

// maxLine and maxBody bound what is read of one message.
const (
	maxLine = 1 << 20
	maxBody = 64 << 20
)

var errTooLong = errors.New("wire: a message without end")

// line reads one line and takes its end off. Whatever is not plain text with CR LF behind it is a fault.
func (m *Message) line(in *bufio.Reader) (string, error) {
	var b []byte
	for {
		part, err := in.ReadSlice('\n')
		b = append(b, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if len(b) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return string(b), err
		}
		if len(b) > maxLine {
			return "", errTooLong
		}
	}
	text, ok := strings.CutSuffix(string(b), "\r\n")
	if !ok {
		m.fault("a line ends without CR: %.60q", text)
		text = strings.TrimSuffix(text, "\n")
	}
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			m.fault("control character %#x in %.60q", c, text)
			break
		}
	}
	return text, nil
}

// head reads the first line and the fields. Before the first byte it gives io.EOF.
func (m *Message) head(in *bufio.Reader) error {
	var err error
	if m.Line, err = m.line(in); err != nil {
		return err
	}
	m.Fields, err = m.lines(in)
	return err
}

// lines reads fields up to the empty line.
func (m *Message) lines(in *bufio.Reader) (fields []string, err error) {
	for {
		text, err := m.line(in)
		if err != nil {
			return fields, unexpected(err)
		}
		if text == "" {
			return fields, nil
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok || name == "" || strings.ContainsFunc(name, notInToken) {
			m.fault("no field: %.60q", text)
		} else if value != "" && value[0] != ' ' {
			m.fault("no space behind the colon: %.60q", text) // legal, and nothing that we write
		}
		fields = append(fields, text)
	}
}

func notInToken(c rune) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// framing is how a body's end is found: by chunks, or after a number of bytes that is -1 when none was said.
func (m *Message) framing() (chunked bool, length int64) {
	coding, codings := m.Get("Transfer-Encoding")
	text, lengths := m.Get("Content-Length")
	if codings+lengths > 1 {
		m.fault("%d Content-Length and %d Transfer-Encoding", lengths, codings)
	}
	if codings > 0 {
		if coding != "chunked" {
			m.fault("Transfer-Encoding %q", coding)
		}
		return true, -1
	}
	if lengths == 0 {
		return false, -1
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text || n < 0 {
		m.fault("Content-Length %q", text)
		return false, -1
	}
	return false, n
}

func (m *Message) counted(in *bufio.Reader, length int64) error {
	got, err := io.ReadAll(io.LimitReader(in, min(length, maxBody)))
	m.Body = got
	if err == nil && int64(len(got)) < length {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (m *Message) chunks(in *bufio.Reader) error {
	m.Chunked = true
	for {
		text, err := m.line(in)
		if err != nil {
			return unexpected(err)
		}
		size, err := strconv.ParseUint(text, 16, 31)
		if err != nil {
			m.fault("size of a chunk: %.60q", text)
			return err
		}
		if size == 0 {
			m.Trailer, err = m.lines(in)
			return err
		}
		if int64(len(m.Body))+int64(size) > maxBody {
			return errTooLong
		}
		data := make([]byte, size)
		n, err := io.ReadFull(in, data)
		m.Body = append(m.Body, data[:n]...)
		if err != nil {
			return unexpected(err)
		}
		if text, err = m.line(in); err != nil {
			return unexpected(err)
		}
		if text != "" {
			m.fault("%.60q behind a chunk", text)
		}
	}
}

// ReadRequestHead reads a request up to its body.
func ReadRequestHead(in *bufio.Reader) (*Message, error) {
	m := &Message{}
	if err := m.head(in); err != nil {
		return m, err
	}
	words := strings.Split(m.Line, " ")
	if len(words) != 3 || words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0" || words[0] == "" || strings.ContainsFunc(words[0], notInToken) || words[1] == "" {
		m.fault("request line %q", m.Line)
	}
	if _, n := m.Get("Host"); n != 1 && (n > 1 || strings.HasSuffix(m.Line, "HTTP/1.1")) {
		m.fault("%d Host fields", n)
	}
	return m, nil
}

// ReadRequestBody reads what belongs to a request behind its head.
func (m *Message) ReadRequestBody(in *bufio.Reader) (err error) {
	chunked, length := m.framing()
	switch {
	case chunked:
		err = m.chunks(in)
	case length > 0:
		err = m.counted(in, length)
	}
	m.Whole = err == nil
	return err
}

// ReadAnswer reads an answer. Bodiless is that it is one to a HEAD. An answer whose end is the connection's is read to that.
func ReadAnswer(in *bufio.Reader, bodiless bool) (*Message, error) {
	return ReadAnswerTo(in, func(*Message) bool { return bodiless })
}

// ReadAnswerTo is ReadAnswer where the head tells what is answered.
func ReadAnswerTo(in *bufio.Reader, bodiless func(head *Message) bool) (*Message, error) {
	m := &Message{}
	if err := m.head(in); err != nil {
		return m, err
	}
	if s := m.Status(); len(m.Line) < len("HTTP/1.1 200") || !strings.HasPrefix(m.Line, "HTTP/1.") || s < 100 || s > 999 {
		m.fault("status line %q", m.Line)
	}
	chunked, length := m.framing()
	var err error
	switch s := m.Status(); {
	case s/100 == 1 || s == 204:
		if chunked || length > 0 {
			m.fault("framing of a body in an answer without one")
		}
	case bodiless(m) || s == 304:
	case chunked:
		err = m.chunks(in)
	case length >= 0:
		err = m.counted(in, length)
	default:
		m.Body, err = io.ReadAll(io.LimitReader(in, maxBody))
	}
	m.Whole = err == nil
	return m, err
}
