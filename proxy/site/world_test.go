package site

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/dialect"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// worldPort is where the servers of the tests' configurations listen.
const worldPort = 8080

// compileText reads and compiles what stands in http.
func compileText(t testing.TB, text string) (*Site, []topology.Fault) {
	t.Helper()
	return compileWith(t, text, Options{Upstreams: func(name string) bool { return name == "u" }})
}

func compileWith(t testing.TB, text string, o Options) (*Site, []topology.Fault) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "test.conf")
	if err := os.WriteFile(name, []byte("http {\n"+text+"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, faults := dialect.Read(name, dialect.Options{})
	if len(faults) > 0 {
		return nil, faults
	}
	return Compile(doc.Site, o)
}

// world is a compiled configuration whose only upstream, u, tells what it was asked.
type world struct {
	t     testing.TB
	site  *Site
	group *balance.Group
	now   time.Time
}

func newWorld(t testing.TB, text string) *world {
	t.Helper()
	s, faults := compileText(t, text)
	for _, f := range faults {
		t.Error(f.Error())
	}
	if len(faults) > 0 {
		t.FailNow()
	}
	w := &world{t: t, site: s, now: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)}
	key := balance.Key{ID: "a"}
	var err error
	w.group, err = balance.NewGroup("u", balance.Env{}, balance.Spec{Servers: []balance.Server{{Key: key, Addr: "127.0.0.1:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) Upstream(name string) *Upstream {
	if name != "u" {
		return nil
	}
	return &Upstream{Name: name, Group: w.group}
}

func (w *world) Upstrand(string) *Upstrand   { return nil }
func (w *world) Opener(*Wire) forward.Opener { return echoing{} }
func (w *world) Now() int64                  { return w.now.UnixNano() }

// ask sends METHOD TARGET [HOST [PROTO]] with fields NAME: VALUE, and gives the answer in one line.
func (w *world) ask(line string, fields ...string) string {
	w.t.Helper()
	c := &collector{}
	w.site.Handle(context.Background(), w, requestOf(line, fields...), c)
	return c.line()
}

func requestOf(line string, fields ...string) *forward.Request {
	words := strings.Split(line, " ")
	r := &forward.Request{
		Method: []byte(words[0]), Target: []byte(words[1]), Authority: []byte("test.example:8080"), Proto: "HTTP/1.1",
		Remote: netip.MustParseAddr("127.0.0.1"), RemotePort: 4321, Local: netip.MustParseAddrPort("127.0.0.1:" + strconv.Itoa(worldPort)),
	}
	if len(words) > 2 {
		r.Authority = []byte(words[2])
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Fields = append(r.Fields, forward.Field{Name: []byte(name), Value: []byte(value)})
		if name == "Content-Length" {
			r.Length, _ = strconv.ParseInt(value, 10, 64)
			r.Body = bodyOf(strings.Repeat("x", int(min(r.Length, 1<<16))))
		}
	}
	return r
}

// collector is a client that keeps what it gets.
type collector struct {
	status  int
	fields  []forward.Field
	body    strings.Builder
	ended   bool
	aborted bool
}

func (c *collector) Inform(int, []forward.Field) error { return nil }

func (c *collector) Head(status int, fields []forward.Field, _ int64) error {
	if c.status != 0 {
		return errors.New("a second head")
	}
	c.status = status
	for _, f := range fields { // the request's memory is used again
		c.fields = append(c.fields, forward.Field{Name: []byte(string(f.Name)), Value: []byte(string(f.Value))})
	}
	return nil
}

func (c *collector) Write(b []byte) error                { c.body.Write(b); return nil }
func (c *collector) End([]forward.Field) error           { c.ended = true; return nil }
func (c *collector) Abort()                              { c.aborted = true }
func (c *collector) Tunnel() (io.ReadWriteCloser, error) { return nil, errors.New("no tunnel") }

// line is STATUS [Location] [| body], the body of one of our own pages being <page>.
func (c *collector) line() string {
	if c.aborted {
		return "closed"
	}
	out := strconv.Itoa(c.status)
	if l := forward.Get(c.fields, "Location"); l != nil {
		out += " " + strings.TrimRight(string(l), " ") // as a reader of the wire sees it
	}
	return withBody(out, c.body.String())
}

func withBody(line, body string) string {
	if strings.HasPrefix(body, "<html>") && strings.Contains(body, "<hr>") {
		body = "<page>"
	}
	if body != "" {
		line += " | " + body
	}
	return line
}

// echoing reaches a peer that answers with the first line that it got.
type echoing struct{}

func (echoing) Open(context.Context, *balance.Peer, bool) forward.Backend { return &echoed{} }

type echoed struct{ body string }

func (e *echoed) Send(r *forward.Request) error {
	if strings.ContainsAny(string(r.Target), " \r\n") { // no server takes that line
		e.body = "status=400"
		return nil
	}
	e.body = string(r.Method) + " " + string(r.Target)
	return nil
}

func (e *echoed) Head() (int, []forward.Field, error) {
	status := 200
	if _, code, ok := strings.Cut(e.body, "status="); ok {
		status, _ = strconv.Atoi(code[:3])
	}
	if e.body == "status=400" {
		e.body = "400 Bad Request"
	}
	return status, []forward.Field{{Name: []byte("Content-Length"), Value: []byte(strconv.Itoa(len(e.body)))}}, nil
}

func (e *echoed) Body() forward.Source                { return bodyOf(e.body) }
func (e *echoed) Sent() forward.Progress              { return forward.Progress{Connected: true, Sent: true} }
func (e *echoed) Tunnel() (io.ReadWriteCloser, error) { return nil, errors.New("no tunnel") }
func (e *echoed) Close()                              {}

type body struct{ *strings.Reader }

func bodyOf(s string) forward.Source { return body{strings.NewReader(s)} }

func (body) Trailer() []forward.Field { return nil }
func (b body) Rewind() error          { _, err := b.Seek(0, io.SeekStart); return err }
func (body) Rewindable() bool         { return true }
