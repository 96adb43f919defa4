package roles

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/proxy"
)

// lines can be written to and read at the same time.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// served is a proxy that serves a file in this process.
type served struct {
	t    *testing.T
	path string
	conf *conf
	log  *lines
	got  *signals
	end  func()
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func backend(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func serveFile(t *testing.T, text string, watch bool) *served {
	t.Helper()
	s := &served{t: t, path: filepath.Join(t.TempDir(), "test.conf"), log: &lines{}, got: listen(false)}
	s.write(text)
	log := zerolog.New(s.log)
	px, err := proxy.New(proxy.Config{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	if s.conf, err = newConf(s.path, false, px, log, prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	if err := s.conf.load(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.conf.serve(ctx, s.got, watch) }()
	s.end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := px.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	t.Cleanup(s.end)
	return s
}

func (s *served) write(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// reload writes the file and waits until the proxy has read it.
func (s *served) reload(text string) {
	s.t.Helper()
	before := s.conf.State().Tried
	s.write(text)
	s.got.reload <- syscall.SIGHUP
	s.await(func() bool { return s.conf.State().Tried.After(before) })
}

func (s *served) await(ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("it does not come; the log:\n%s", s.log)
		}
	}
}

// value is what a counter or gauge shows.
func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}

func ask(addr string) string {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	res, err := c.Get("http://" + addr + "/")
	if err != nil {
		return "error"
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return string(body)
}

func asks(addr string, n int) string {
	var got []string
	for range n {
		got = append(got, ask(addr))
	}
	return strings.Join(got, " ")
}

func upstreamFile(listen, servers string) string {
	return "upstream u {\n" + servers + "\n}\nserver { listen " + listen + "; location / { proxy_pass http://u; } }\n"
}

// A reload keeps the rotation of the servers that stay, and the sockets.
func TestAReloadKeepsState(t *testing.T) {
	a, b, c, at := backend(t, "a"), backend(t, "b"), backend(t, "c"), freePort(t)
	s := serveFile(t, upstreamFile(at, "server "+a+" weight=3; server "+b+";"), false)
	if got := asks(at, 2); got != "a a" {
		t.Fatal(got)
	}
	s.reload(upstreamFile(at, "server "+a+" weight=3; server "+b+"; # the same"))
	if got := asks(at, 2); got != "b a" {
		t.Errorf("after a reload without a change: %s, want the third and fourth of a a b a", got)
	}
	s.reload(upstreamFile(at, "server "+b+"; server "+c+";"))
	if got := asks(at, 4); got != "b c b c" {
		t.Errorf("after the change: %s", got)
	}
	if n := value(t, s.conf.metrics.reloads.WithLabelValues("used")); n != 3 {
		t.Errorf("%v files were used", n)
	}
}

func TestABrokenFileKeepsTheOldOne(t *testing.T) {
	a, at := backend(t, "a"), freePort(t)
	s := serveFile(t, upstreamFile(at, "server "+a+";"), false)
	s.reload("upstream u { server " + a + "; least_con; }\nserver { listen " + at + " zap; location / { proxy_pass http://u; } }\n")
	if got := ask(at); got != "a" {
		t.Errorf("the old file is gone: %q", got)
	}
	state := s.conf.State()
	if state.Current || len(state.Faults) != 2 || !strings.Contains(state.Faults[0], s.path+":1: least_con") || !strings.Contains(state.Faults[1], s.path+":2: listen") {
		t.Errorf("state %+v", state)
	}
	if v := value(t, s.conf.metrics.current); v != 0 {
		t.Errorf("the gauge says %v", v)
	}
	for _, fault := range state.Faults {
		if text := strings.ReplaceAll(fault, `"`, `\"`); !strings.Contains(s.log.String(), text) {
			t.Errorf("the log says nothing of %s:\n%s", fault, s.log)
		}
	}
	s.reload(upstreamFile(at, "server "+a+";"))
	if state := s.conf.State(); !state.Current || state.Faults != nil || value(t, s.conf.metrics.current) != 1 {
		t.Errorf("after a good one: %+v", state)
	}
}

// What an editor or a copy leaves for a moment must not close the doors.
func TestAnEmptyFileKeepsTheOldOne(t *testing.T) {
	a, at := backend(t, "a"), freePort(t)
	s := serveFile(t, upstreamFile(at, "server "+a+";"), false)
	s.reload("")
	if got := ask(at); got != "a" || s.conf.State().Current || value(t, s.conf.metrics.current) != 0 {
		t.Errorf("%q, %+v", got, s.conf.State())
	}
}

// An address that is taken keeps the old file too, with all its sockets.
func TestAnAddressThatIsTakenKeepsTheOldFile(t *testing.T) {
	a, at, other := backend(t, "a"), freePort(t), backend(t, "other")
	s := serveFile(t, upstreamFile(at, "server "+a+";"), false)
	s.reload(upstreamFile(other, "server "+a+";"))
	if got := ask(at); got != "a" || s.conf.State().Current || !strings.Contains(s.conf.State().Faults[0], s.path+":4: listen: listen on "+other) {
		t.Errorf("%q, %+v", got, s.conf.State())
	}
}

func TestListenLinesComeAndGo(t *testing.T) {
	a, one, two := backend(t, "a"), freePort(t), freePort(t)
	s := serveFile(t, upstreamFile(one, "server "+a+";"), false)
	s.reload(upstreamFile(one, "server "+a+";") + "server { listen " + two + "; location / { return 200 two; } }")
	if got := ask(one) + " " + ask(two); got != "a two" {
		t.Fatal(got)
	}
	s.reload(upstreamFile(two, "server "+a+";"))
	if got := ask(one) + " " + ask(two); got != "error a" {
		t.Error(got)
	}
	s.end()
	if got := ask(two); got != "error" {
		t.Errorf("after the end: %s", got)
	}
}

// --watch sees a change of an included file, and a new file of a wildcard.
func TestWatch(t *testing.T) {
	at := freePort(t)
	dir := t.TempDir()
	part := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	part("a.conf", "location = / { return 200 one; }")
	s := serveFile(t, "server { listen "+at+"; include "+dir+"/*.conf; }", true)
	if got := ask(at); got != "one" {
		t.Fatal(got)
	}
	part("a.conf", "location = / { return 200 two; }")
	s.await(func() bool { return ask(at) == "two" })
	part("b.conf", "location /b { return 200 b; }")
	s.await(func() bool { return strings.Count(s.log.String(), "file read again") >= 2 })
}

// A file whose log can't be opened is refused, and the old one goes on.
func TestALogThatCannotBeOpenedKeepsTheOldFile(t *testing.T) {
	at, folder := freePort(t), filepath.Join(t.TempDir(), "no")
	s := serveFile(t, "server { listen "+at+"; return 200 old; }", false)
	s.reload("server { listen " + at + ";\naccess_log " + folder + "/x.log;\nreturn 200 new; }")
	state := s.conf.State()
	if got := ask(at); got != "old" || state.Current || len(state.Faults) != 1 || !strings.HasPrefix(state.Faults[0], s.path+":2: access_log: ") {
		t.Errorf("%q is served; faults: %q", got, state.Faults)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder was made")
	}
}
