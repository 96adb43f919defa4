package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// heardLog keeps what is logged.
type heardLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heardLog) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

type heardLine struct {
	Level, Upstream, Addr, Class, Error, Method, Host, Path, Message, Zone, Result, Server, Client string
	Files                                                                                          int
	Left                                                                                           uint64 `json:"left_out"`
}

// lines are those whose message has that part.
func (h *heardLog) lines(t *testing.T, part string) (all []heardLine) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for line := range strings.Lines(h.text.String()) {
		var l heardLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if strings.Contains(l.Message, part) {
			all = append(all, l)
		}
	}
	return all
}

func newHeard(t *testing.T, set func(*Config)) (*world, *heardLog) {
	t.Helper()
	heard := &heardLog{}
	return newWorld(t, func(c *Config) {
		c.Logger = zerolog.New(heard)
		if set != nil {
			set(c)
		}
	}), heard
}

const anAttempt = "an attempt failed"

// The reason of a 502, and of an attempt that another one made good, is in the log, under a file and for published routes.
func TestFailedAttemptsAreLogged(t *testing.T) {
	for _, published := range []bool{false, true} {
		w, heard := newHeard(t, nil)
		dead, good := refused(t), newBackend(t, "b", nil)
		if published {
			w.set("u", instance("a", dead))
			w.set("two", instance("a", dead), instance("b", good.addr()))
			w.apply()
		} else {
			w.mustLoad(false, "upstream u { server "+dead+"; server "+dead+" down; } upstream two { server "+dead+"; server "+good.addr()+"; }\n"+
				"server { listen "+w.addr+"; location /u { proxy_pass http://u; } location /two { proxy_pass http://two; } }")
		}
		if got := w.get("/u/x?secret=1"); got.status != 502 {
			t.Fatalf("%+v", got)
		}
		if got := w.get("/two"); got.status != 200 {
			t.Fatalf("%+v", got)
		}
		lines := heard.lines(t, anAttempt)
		lines = slices.DeleteFunc(lines, func(l heardLine) bool { return l.Addr == "" })
		if len(lines) != 2 || !strings.Contains(lines[0].Error, "refused") {
			t.Fatalf("published %v: %+v", published, lines)
		}
		lines[0].Error = ""
		want := heardLine{Level: "warn", Upstream: "u", Addr: dead, Class: "error", Method: "GET", Host: w.addr, Path: "/u/x", Message: anAttempt}
		if lines[0] != want || lines[1].Upstream != "two" {
			t.Errorf("published %v: %+v", published, lines)
		}
	}
}

// That a kept connection ended meanwhile is nobody's failure.
func TestEndedConnectionsAreNoFailures(t *testing.T) {
	b := newBackend(t, "b", nil)
	w, heard := newHeard(t, nil)
	w.set("u", instance("a", b.addr()))
	w.apply()
	for range 20 {
		if got := w.get("/u"); got.status != 200 {
			t.Fatalf("%+v", got)
		}
		b.srv.CloseClientConnections()
	}
	if got := heard.lines(t, anAttempt); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

// A backend whose certificate nobody vouches for, one that says nonsense, one that stops in the middle, and none at all.
func TestReasonsOfFailures(t *testing.T) {
	ca := certstest.New(t, "ca")
	pem := filepath.Join(t.TempDir(), "ca.pem")
	certstest.Put(t, pem, ca.PEM())
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	silent := newBackend(t, "s", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	cut := newBackend(t, "c", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	})
	w, heard := newHeard(t, nil)
	w.mustLoad(false, "upstream empty { server 127.0.0.1:1 down; }\nserver { listen "+w.addr+"; proxy_read_timeout 50ms;\n"+
		"location /tls { proxy_ssl_verify on; proxy_ssl_trusted_certificate "+pem+"; proxy_pass https://"+secure.Listener.Addr().String()+"; }\n"+
		"location /late { proxy_pass http://"+silent.addr()+"; } location /cut { proxy_pass http://"+cut.addr()+"; } location /none { proxy_pass http://empty; } }")
	for i, of := range []struct{ path, class, text string }{
		{"/tls", "error", "certificate"}, {"/late", "timeout", "time"}, {"/cut", "cut", ""}, {"/none", "no_peer", "declared down"},
	} {
		_, _ = w.try("GET", of.path, nil)
		lines := heard.lines(t, anAttempt)
		if len(lines) != i+1 || lines[i].Path != of.path || lines[i].Class != of.class || !strings.Contains(lines[i].Error, of.text) {
			t.Errorf("%s: %+v", of.path, lines)
		}
	}
}

// Ten lines a second are said, and the next one says how many were not.
func TestQuietLog(t *testing.T) {
	heard := &heardLog{}
	q := newQuietLog(zerolog.New(heard))
	began := time.Now().Unix()
	for range 1000 {
		q.line(zerolog.WarnLevel).Msg("x")
	}
	lines := heard.lines(t, "x")
	if n := len(lines); n < quietLines || time.Now().Unix() == began && n != quietLines {
		t.Fatalf("%d lines", n)
	}
	q.mu.Lock()
	q.second, q.left = 0, 990
	q.mu.Unlock()
	q.line(zerolog.WarnLevel).Msg("x")
	q.line(zerolog.WarnLevel).Msg("x")
	lines = heard.lines(t, "x")
	if n := len(lines); lines[n-2].Left != 990 || lines[n-1].Left != 0 {
		t.Errorf("%+v", lines[n-2:])
	}
	if newQuietLog(zerolog.New(heard).Level(zerolog.ErrorLevel)).line(zerolog.WarnLevel) != nil {
		t.Error("a line below the level")
	}
}

// Limits say what became of which request, as loud as the file wants; their series, and those of refusals, begin at 0.
func TestLimitsAreLogged(t *testing.T) {
	reg := prometheus.NewRegistry()
	w, heard := newHeard(t, func(c *Config) { c.Registerer = reg })
	w.mustLoad(false, "limit_req_zone $host zone=r:1m rate=1r/m; limit_conn_zone $host zone=c:1m;\nserver { server_name shop; listen "+w.addr+
		"; limit_req_log_level warn; location /r { limit_req zone=r; return 200 ok; } location /u { limit_conn c 1; proxy_pass http://127.0.0.1:1; } }")
	text := seriesOf(t, reg)
	for _, want := range []string{`limited_total{result="rejected",zone="r"} 0`, `limited_total{result="delayed",zone="r"} 0`, `limited_total{result="rejected",zone="c"} 0`,
		`certificate_reads_total{result="used"} 0`, `certificate_reads_total{result="refused"} 0`, `certificates_current 1`,
		`client_connections_refused_total{reason="max_conns"} 0`, `client_connections_refused_total{reason="tls_handshake"} 0`} {
		if !strings.Contains(text, "upstrand_proxy_"+want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, `limited_total{result="delayed",zone="c"}`) {
		t.Error("limit_conn delays nobody")
	}
	w.mustLoad(false, "limit_req_zone $host zone=r:1m rate=1r/m;\nserver { server_name shop; listen "+w.addr+
		"; limit_req_log_level warn; location /r { limit_req zone=r; proxy_pass http://"+newBackend(t, "b", nil).addr()+"; } }")
	w.get("/r")
	w.get("/r/2?q")
	want := []heardLine{{Level: "warn", Zone: "r", Result: "rejected", Client: "127.0.0.1", Server: "shop", Method: "GET", Host: w.addr, Path: "/r/2",
		Message: "a request is rejected by limit_req"}}
	if got := heard.lines(t, "limit_req"); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// seriesOf is the metrics as NAME{LABELS} VALUE, a line each.
func seriesOf(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := f.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			fmt.Fprintf(&b, "%s %v\n", name, m.GetCounter().GetValue()+m.GetGauge().GetValue())
		}
	}
	return b.String()
}

// Connections that end before a request are counted by reason; a bad PROXY header is said, a failed handshake is not.
func TestRefusedConnections(t *testing.T) {
	reg := prometheus.NewRegistry()
	w, heard := newHeard(t, func(c *Config) { c.Registerer = reg })
	w.apply()
	spoken(t, w.door(Door{ProxyProtocol: true}), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	spoken(t, w.door(Door{TLS: true}), "\x16\x03\x01\x00\x05hello")
	full := w.door(Door{Conns: 1})
	first, err := net.Dial("tcp", full)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	spoken(t, full, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	text := seriesOf(t, reg)
	for _, reason := range []string{"proxy_protocol", "tls_handshake", "max_conns"} {
		if want := fmt.Sprintf("upstrand_proxy_client_connections_refused_total{reason=%q} 1\n", reason); !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if got := heard.lines(t, "without a valid PROXY"); len(got) != 1 || got[0].Level != "warn" || got[0].Error == "" || !strings.HasPrefix(got[0].Client, "127.0.0.1:") {
		t.Errorf("%+v", got)
	}
	if got := heard.lines(t, "could not begin"); len(got) != 1 || got[0].Level != "debug" {
		t.Errorf("%+v", got)
	}
}

// The access log says why the proxy itself answered.
func TestCausesOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	w, heard := newHeard(t, func(c *Config) { c.AccessLog.Path = path })
	b := newBackend(t, "b", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418) })
	w.mustLoad(false, "limit_req_zone $host zone=r:1m rate=1r/m; upstream none { server 127.0.0.1:1 down; }\n"+
		"upstream u { server "+b.addr()+"; }\nserver { listen "+w.addr+"; client_max_body_size 3;\n"+
		"location /ok { return 200 ok; } location /return { return 403; } location /denied { deny all; proxy_pass http://u; }\n"+
		"location /limit { limit_req zone=r; limit_req_status 429; proxy_pass http://u; } location /none { proxy_pass http://none; }\n"+
		"location /u { proxy_pass http://u; } location /led { error_page 404 =200 /ok; return 404; } }")
	want := []string{}
	for _, of := range [][2]string{
		{"/ok", ""}, {"/return", "return"}, {"/denied", "denied"}, {"/limit", ""}, {"/limit", "limit_req"}, {"/none", "no_peer"}, {"/u", ""},
		{"/led", ""}, {"/nothing", "not_found"},
	} {
		w.get(of[0])
		want = append(want, of[0]+" "+of[1])
	}
	w.do("POST", "/u", strings.NewReader("four"))
	spoken(t, w.addr, "GET / HTTP/1.1\r\n\r\n")
	want = append(want, "/u body_too_large", "/ bad_request")
	w.p.ReopenLogs()
	var got []string
	for _, l := range linesOf(t, w.p, path) {
		got = append(got, l.Target+" "+l.Cause)
	}
	slices.Sort(got) // a line comes after the answer, and then another connection's may be there before it
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("\n%q, want\n%q", got, want)
	}
	if got := heard.lines(t, "opened anew"); len(got) != 1 || got[0].Level != "info" || got[0].Files != 1 {
		t.Errorf("%+v", got)
	}
}
