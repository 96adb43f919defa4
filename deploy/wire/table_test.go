package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// leastRows is how many there must be: a glob that finds nothing would show nothing.
const leastRows = 250

func rows(t *testing.T) []Row {
	t.Helper()
	files, err := filepath.Glob("testdata/*.rows")
	if err != nil {
		t.Fatal(err)
	}
	var all []Row
	for _, f := range files {
		these, err := ReadRows(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, these...)
	}
	if len(all) < leastRows {
		t.Fatalf("only %d rows in %d files", len(all), len(files))
	}
	if only := os.Getenv("UPSTRAND_WIRE_ONLY"); only != "" {
		all = slices.DeleteFunc(all, func(r Row) bool { return !strings.Contains(r.File+" "+r.Name, only) })
	}
	return all
}

// way is how a proxy comes by its configuration.
type way struct {
	name string
	lane func() (*Lane, error)
}

var ways = []way{{"file", FileLane}, {"published", PublishedLane}}

// TestTable runs each row in each way: as it is, a byte at a time, and in two halves.
func TestTable(t *testing.T) {
	all := rows(t)
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { t.Parallel(); runTable(t, all, w.name, w.lane) })
	}
}

const lanes = 24

func runTable(t *testing.T, all []Row, name string, open func() (*Lane, error)) {
	work := make(chan *Row)
	var ran atomic.Int32
	var wg sync.WaitGroup
	for range lanes {
		l, err := open()
		if err != nil {
			t.Error(err)
			break
		}
		wg.Go(func() {
			for r := range work {
				for _, cut := range cuts {
					if cut.name != "whole" && r.Settings["whole"] {
						continue
					}
					if fault := r.run(l, name, cut); fault != "" {
						t.Errorf("%s:%d: %s (%s, %s):\n%s", r.File, r.Line, r.Name, name, cut.name, fault)
						break
					}
				}
				ran.Add(1)
			}
			if got, _ := l.Backend.Take(); len(got) > 0 {
				t.Errorf("%d requests came late, after their rows: %+v", len(got), got[0])
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range all {
		r := &all[i]
		if r.Settings["file"] && name != "file" || r.Settings["published"] && name != "published" {
			continue
		}
		work <- r
	}
	close(work)
	wg.Wait()
	t.Logf("%d rows", ran.Load())
}

// cut is how what is sent is cut into writes.
type cut struct {
	name string
	of   func(text string) []string
}

var cuts = []cut{
	{"whole", func(text string) []string { return []string{text} }},
	{"halves", func(text string) []string { return []string{text[:len(text)/2], text[len(text)/2:]} }},
	{"bytes", func(text string) []string {
		if len(text) > 1000 { // a long one would take long and show nothing more
			text, rest := text[:500], text[500:]
			return append(strings.Split(text, ""), rest)
		}
		return strings.Split(text, "")
	}},
}

// patience is how long anything may take: machines are busy, and no row waits for a limit of the proxy.
const patience = 30 * time.Second

// run gives what is not as the row says, empty when all is.
func (r *Row) run(l *Lane, way string, how cut) (fault string) {
	answer := r.Answer
	if !r.Answered {
		answer = OK
	}
	l.Backend.Say(r.backend(answer))
	defer func() {
		if r.Settings["torn"] {
			time.Sleep(20 * time.Millisecond) // an attempt that was given up may still be on its way
		}
		l.Backend.Cut()
		if _, ok := l.Backend.Take(); !ok {
			fault += "\nthe backend is still busy"
		}
	}()
	c, err := Dial(l.Addr, patience)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	told := make(chan struct{}, len(r.Got))
	go r.send(c, l, how, told)
	var faults []string
	for i := range r.Got {
		if f := r.Got[i].check(c, r); f != "" {
			faults = append(faults, f)
			break
		}
		told <- struct{}{}
	}
	if r.Got[len(r.Got)-1].After == "wait" {
		_ = c.Close()
	}
	seen, settled := l.Backend.Take()
	for end := time.Now().Add(500 * time.Millisecond); settled && len(seen) < len(r.Seen) && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var more []*Message // a request that was cut may arrive behind the answer to it
		more, settled = l.Backend.Take()
		seen = append(seen, more...)
	}
	if !settled {
		faults = append(faults, "the backend's connection is neither used nor closed")
		l.Backend.Cut()
		seen, _ = l.Backend.Take()
	}
	return strings.Join(append(faults, r.compare(seen, way)...), "\n")
}

// send writes the parts. What is refused early may not be read to its end: that is no fault.
func (r *Row) send(c *Client, l *Lane, how cut, told <-chan struct{}) {
	for i, part := range r.Send {
		switch {
		case part.Told:
			select {
			case <-told:
			case <-time.After(patience):
			}
		case part.Come:
			for end := time.Now().Add(patience); !l.Backend.Busy() && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
		case i > 0:
			time.Sleep(30 * time.Millisecond)
		}
		for _, piece := range how.of(part.Text) {
			_, _ = c.Write([]byte(piece))
		}
	}
	if r.Settings["end"] {
		_ = c.CloseWrite()
	}
}

const probe = "GET /probe HTTP/1.1\r\nHost: probe\r\n\r\n"

// check reads one answer and compares it.
func (g *Got) check(c *Client, r *Row) string {
	if len(g.Status) > 0 {
		m, err := ReadAnswer(c.In, r.Settings["head"])
		for r.Settings["many"] && err == nil && m.Status()/100 == 1 {
			m, err = ReadAnswer(c.In, false)
		}
		switch {
		case r.Settings["silent"] && m.Line == "" && errors.Is(err, io.EOF):
			return ""
		case err != nil && (!g.Cut || m.Line == ""):
			return fmt.Sprintf("answer %q: %v", m.Line, err)
		case err == nil && g.Cut:
			return fmt.Sprintf("a whole answer: %+v", m)
		}
		if f := g.compare(m); f != "" {
			return f
		}
	}
	switch g.After {
	case "close":
		if rest, err := c.Ended(); err != nil || len(rest) > 0 {
			return fmt.Sprintf("the connection is not closed: %v, %q", err, rest)
		}
	case "wait":
		if !c.Quiet(60 * time.Millisecond) {
			return "something comes, or the connection is closed"
		}
	case "keep":
		_, _ = c.Write([]byte(probe))
		m, err := ReadAnswer(c.In, false)
		if err != nil || m.Status() != 200 || string(m.Body) != "ok" {
			return fmt.Sprintf("the connection is not kept: %+v, %v", m, err)
		}
		if c.In.Buffered() > 0 {
			return "more than one answer to one request"
		}
	}
	return ""
}

func (g *Got) compare(m *Message) string {
	var out []string
	if !slices.Contains(g.Status, m.Status()) {
		out = append(out, fmt.Sprintf("status %d, want %v (%s)", m.Status(), g.Status, strings.TrimSpace(string(m.Body))))
	}
	if m.Faults != nil {
		out = append(out, fmt.Sprintf("the client gets what is no proper answer: %q", m.Faults))
	}
	if g.Checked && g.Body != string(m.Body) {
		out = append(out, fmt.Sprintf("body %.200q, want %.200q", m.Body, g.Body))
	}
	for _, f := range g.Has {
		name, value, _ := strings.Cut(f, ": ")
		if have, n := m.Get(name); n != 1 || have != value {
			out = append(out, fmt.Sprintf("field %s: %d times, %q, want %q", name, n, have, value))
		}
	}
	for _, name := range g.Lacks {
		if have, n := m.Get(name); n > 0 {
			out = append(out, fmt.Sprintf("field %s: %q, want none", name, have))
		}
	}
	if !slices.Equal(m.Trailer, g.Trailer) {
		out = append(out, fmt.Sprintf("trailer %q, want %q", m.Trailer, g.Trailer))
	}
	if g.After == "close" {
		if have, _ := m.Get("Connection"); have != "close" && !g.Cut {
			out = append(out, fmt.Sprintf("Connection: %q before a close", have))
		}
	}
	return strings.Join(out, "\n")
}
