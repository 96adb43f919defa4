package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
)

// backend answers the row's request with its text, and the probe behind it with OK.
func (r *Row) backend(answer string) Speak {
	return func(m *Message, c net.Conn, in *bufio.Reader) bool {
		if m.Target() == "/probe" {
			return Answer(OK)(m, c, in)
		}
		if r.Settings["asks"] {
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		if r.Settings["early"] { // before the body, which is read all the same
			_, _ = io.WriteString(c, answer)
			return m.ReadRequestBody(in) == nil
		}
		if m.ReadRequestBody(in) != nil {
			return false
		}
		_, err := io.WriteString(c, answer)
		return err == nil && !r.Settings["closes"]
	}
}

// compare gives what the backend saw otherwise than it should have.
func (r *Row) compare(got []*Message, way string) (faults []string) {
	got = slices.DeleteFunc(got, func(m *Message) bool { return m.Target() == "/probe" })
	if r.Settings["loose"] || r.Settings["torn"] {
		for _, m := range got {
			if r.Settings["torn"] && m.Whole {
				faults = append(faults, fmt.Sprintf("the backend takes it for whole: %+v", m))
			}
			if m.Faults != nil {
				faults = append(faults, fmt.Sprintf("what the backend got is no proper request: %q", m.Faults))
			}
		}
		return faults
	}
	if len(got) != len(r.Seen) {
		faults = append(faults, fmt.Sprintf("the backend saw %d requests, want %d", len(got), len(r.Seen)))
		for _, m := range got {
			faults = append(faults, fmt.Sprintf("  %s\n  %s\n  body %.100q, whole: %v", m.Line, strings.Join(m.Fields, "\n  "), m.Body, m.Whole))
		}
		return faults
	}
	for i, m := range got {
		faults = append(faults, r.Seen[i].compare(m, way)...)
	}
	return faults
}

func (s *Seen) compare(m *Message, way string) (faults []string) {
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if m.Faults != nil {
		add("what the backend got is no proper request: %q", m.Faults)
	}
	if m.Line != s.Line {
		add("the backend saw %q, want %q", m.Line, s.Line)
	}
	fields := m.Fields
	if way == "published" {
		fields = withoutIdentity(fields, add)
	}
	if have, want := framingLast(fields), framingLast(s.Fields); !slices.Equal(have, want) {
		add("the backend saw\n    %s\n  want\n    %s", strings.Join(have, "\n    "), strings.Join(want, "\n    "))
	}
	if s.Cut == m.Whole {
		add("the body came to its end: %v", m.Whole)
	}
	if string(m.Body) != s.Body && (!s.Cut || !strings.HasPrefix(s.Body, string(m.Body))) {
		add("body %.200q, want %.200q", m.Body, s.Body)
	}
	if !slices.Equal(m.Trailer, s.Trailer) {
		add("trailer %q, want %q", m.Trailer, s.Trailer)
	}
	return faults
}

// withoutIdentity takes out the four fields that a published route adds, once each.
func withoutIdentity(fields []string, add func(string, ...any)) []string {
	left := slices.Clone(fields)
	host, _ := get(fields, "Host")
	for _, want := range []string{"X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: " + host} {
		i := slices.Index(left, want)
		if i < 0 {
			if name, _, _ := strings.Cut(want, ":"); name != "X-Forwarded-Host" {
				add("the backend did not see %q", want)
			}
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	return left
}

// framingLast is the fields with what says how the body is framed at their end: where it stands says nothing.
func framingLast(fields []string) []string {
	var out, last []string
	for _, f := range fields {
		if name, _, _ := strings.Cut(f, ":"); strings.EqualFold(name, "Content-Length") || strings.EqualFold(name, "Transfer-Encoding") {
			last = append(last, f)
		} else {
			out = append(out, f)
		}
	}
	return append(out, last...)
}
