package proxy

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/upstrand/upstrand/proxy/accesslog"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// accessLine is what a line has, with times only told to be there.
type accessLine struct {
	Client, Method, Host, Target, Proto, Service, Cause string
	Status, Bytes                                       int
	Attempts                                            []accessAttempt
	Version                                             int     `json:"topology_version"`
	Trace                                               string  `json:"trace_id"`
	Sample                                              float64 `json:"sample"`
	Seconds                                             float64
	Time                                                time.Time
}

type accessAttempt struct {
	Upstream, Addr            string
	Status, Bytes             int
	Connect, Header, Response *float64
}

// linesOf shuts the proxy down, since a line is written after the answer, and reads the file.
func linesOf(t *testing.T, p *Proxy, path string) (lines []accessLine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := p.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l accessLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, l)
	}
	return lines
}

func TestAccessLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	w := newWorld(t, func(c *Config) { c.AccessLog.Path = path })
	good := newBackend(t, "good", nil)
	dead := refused(t)
	w.set("orders", instance("bad", dead), instance("good", good.addr()))
	w.apply()
	began := time.Now()
	w.get("/orders/1?x=y")
	w.get("/none")
	lines := linesOf(t, w.p, path)
	for i := range lines {
		l := &lines[i]
		if l.Time.Before(began.Add(-time.Second)) || l.Time.After(time.Now()) || l.Seconds < 0 || l.Seconds > 5 {
			t.Errorf("times: %+v", l)
		}
		l.Time, l.Seconds = time.Time{}, 0
		for n := range l.Attempts {
			a := &l.Attempts[n]
			if known := a.Status == 200; known != (a.Connect != nil) || known != (a.Header != nil) || a.Response == nil {
				t.Errorf("times of attempt %d: %+v", n, a)
			}
			a.Connect, a.Header, a.Response = nil, nil, nil
		}
	}
	version := int(w.topology().Version)
	want := []accessLine{
		{Client: "127.0.0.1", Method: "GET", Host: w.addr, Target: "/orders/1?x=y", Proto: "HTTP/1.1", Service: "orders", Status: 200, Bytes: 4, Version: version,
			Attempts: []accessAttempt{{Upstream: "orders", Addr: dead, Status: 502}, {Upstream: "orders", Addr: good.addr(), Status: 200, Bytes: 4}}},
		{Client: "127.0.0.1", Method: "GET", Host: w.addr, Target: "/none", Proto: "HTTP/1.1", Status: 404, Bytes: 36, Cause: "no_route", Version: version},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAccessLogOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	b := newBackend(t, "b", nil)
	w := newWorld(t, func(c *Config) { c.AccessLog.Path = path })
	w.mustLoad(false, "upstream u { server "+b.addr()+"; }\nserver { listen "+w.addr+"; location / { proxy_pass http://u; } location /no { return 404; } }")
	w.get("/x")
	w.get("/no")
	lines := linesOf(t, w.p, path)
	if len(lines) != 2 || len(lines[0].Attempts) != 1 || lines[0].Attempts[0].Addr != b.addr() || lines[0].Service != "u" || lines[1].Status != 404 || lines[1].Service != "" {
		t.Errorf("%+v", lines)
	}
}

// finished is a request that went well.
func finished() *site.Finished {
	return &site.Finished{
		In:     &forward.Request{Method: []byte("GET"), Authority: []byte("shop.example"), Target: []byte("/a?b"), Proto: "HTTP/1.1"},
		Remote: netip.MustParseAddr("2001:db8::1"), Status: 200, Bytes: 12, Began: 1_800_000_000_000_000_000, Ended: 1_800_000_000_012_345_678,
		Trail:    forward.Trail{{Upstream: "orders", Status: 200, Connect: 0, Header: 11 * time.Millisecond, Response: 12345678, Length: 12}},
		Exchange: &forward.Outcome{Attempts: 1},
	}
}

func TestAccessLineText(t *testing.T) {
	f := finished()
	f.In.Fields = []forward.Field{{Name: []byte("Traceparent"), Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")}}
	want := `{"time":"2027-01-15T08:00:00.012Z","client":"2001:db8::1","method":"GET","host":"shop.example","target":"/a?b","proto":"HTTP/1.1","status":200,"bytes":12,` +
		`"seconds":0.012345,"service":"orders","attempts":[{"upstream":"orders","status":200,"connect":0.000000,"header":0.011000,"response":0.012345,"bytes":12}],` +
		`"topology_version":7,"trace_id":"0af7651916cd43dd8448eb211c80319c"`
	if got := string(appendAccess(nil, f, "orders", 7)); got != want {
		t.Errorf("\n%s, want\n%s", got, want)
	}
}

// Whatever a client sends, a line is one line of valid JSON, and says it as far as it is text.
func TestAccessLineOfHostileText(t *testing.T) {
	for _, text := range []string{`"`, `\`, "\n", "\x00\x1f\x7f", "é", "\xff\xfe", "\xe2\x82", `","status":200,"x":"`, "\u2028", "\u009b2J\u0085"} {
		f := finished()
		f.In.Target, f.In.Method, f.In.Authority = []byte(text), []byte(text), []byte(text)
		f.Remote = netip.MustParseAddr("fe80::1").WithZone(text)
		g, err := balance.NewGroup("u", balance.Env{}, balance.Spec{Servers: []balance.Server{{Addr: text}}})
		if err != nil {
			t.Fatal(err)
		}
		f.Trail[0].Peer = g.Peers()[0]
		line := append(appendAccess(nil, f, text, 0), '}')
		var got accessLine
		if err := json.Unmarshal(line, &got); err != nil || !utf8.Valid(line) || strings.ContainsFunc(string(line), unicode.IsControl) {
			t.Errorf("%q: %q, %v", text, line, err)
		}
		if want := strings.ToValidUTF8(text, "\ufffd"); utf8.ValidString(text) && got.Target != want || got.Status != 200 {
			t.Errorf("%q: reads as %q, %d", text, got.Target, got.Status)
		}
	}
}

func TestAccessLogSample(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	files := &accesslog.Files{Now: true}
	l, err := newLineLog(files, AccessLog{Path: path, Sample: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	for range 4000 {
		l.write(finished(), "orders", 1)
	}
	for i, odd := range []func(f *site.Finished){
		func(f *site.Finished) { f.Status = 503 }, func(f *site.Finished) { f.Status = 0 }, func(f *site.Finished) { f.Exchange.Attempts = 2 },
		func(f *site.Finished) { f.Exchange.Cause = "cut" },
	} {
		f := finished()
		odd(f)
		f.Bytes = int64(1000 + i)
		l.write(f, "orders", 1)
	}
	l.close(files)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, sampled := strings.Count(string(text), "\n"), strings.Count(string(text), `,"sample":0.25}`)
	if sampled < 800 || sampled > 1200 || all != sampled+4 { // 1000 ± 7 sigma
		t.Errorf("%d lines, of which %d stand for others", all, sampled)
	}
	if _, err := newLineLog(files, AccessLog{Path: path, Sample: 2}); err == nil {
		t.Error("a sample of 2")
	}
}

func TestTraceID(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	for value, want := range map[string]string{
		"00-" + id + "-b7ad6b7169203331-01": id, "01-" + id + "-b7ad6b7169203331-01-more": id, "01-" + id + "-b7ad6b7169203331-01": id,
		"00-" + id + "-b7ad6b7169203331-01-more": "", "ff-" + id + "-b7ad6b7169203331-01": "", "00-" + strings.ToUpper(id) + "-b7ad6b7169203331-01": "",
		"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01": "", "00-" + id + "-0000000000000000-01": "", "00-" + id: "", "": "", `00-0af7651916cd43dd8448eb211c80319"-b7ad6b7169203331-01`: "",
	} {
		if got := string(traceID([]forward.Field{{Name: []byte("traceparent"), Value: []byte(value)}})); got != want {
			t.Errorf("%s: %q", value, got)
		}
	}
}

func BenchmarkAccessLine(b *testing.B) {
	f, buf := finished(), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		buf = appendAccess(buf[:0], f, "orders", 7)
	}
}

func TestAccessLineAllocatesNothing(t *testing.T) {
	f, buf := finished(), make([]byte, 0, 1024)
	f.In.Target = []byte("/caf\xc3\xa9/\"quoted\"")
	if n := testing.AllocsPerRun(1000, func() { buf = appendAccess(buf[:0], f, "orders", 7) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
