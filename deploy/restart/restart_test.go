//go:build linux

package restart

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

// freePort is an address that nobody else is given: neither another test nor a client's end of a connection.
func freePort(t *testing.T) string {
	t.Helper()
	addr, err := rig.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// file writes a configuration that leads to a backend. The locations pass on an upgrade.
func file(t *testing.T, path, listen, backend string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "proxy.conf")
	}
	text := fmt.Sprintf(`upstream u { server %s; }
server {
	listen %s;
	location / {
		proxy_pass http://u;
		proxy_http_version 1.1;
		proxy_set_header Upgrade $http_upgrade;
		proxy_set_header Connection $connection_upgrade;
	}
}
map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
`, backend, listen)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func status(t *testing.T, url string) int {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	res, err := c.Get(url)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func ready(t *testing.T, admin string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); status(t, "http://"+admin+"/readyz") != 200; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not become ready")
		}
	}
}

// TestReplacedUnderLoad: the program is started anew, twice, under load. No request fails, a long download ends whole, and
// WebSockets stay with the process that they began in, which says goodbye at its deadline.
func TestReplacedUnderLoad(t *testing.T) {
	at, admin := freePort(t), freePort(t)
	p := start(t, "proxy", "--conf", file(t, "", at, backend(t)), "--admin-listen", admin, "--drain-timeout", "3s")
	ready(t, admin)
	l := newLoad(at)
	l.begin(3)
	defer l.stop()
	l.await(t, 100)
	sockets := make([]*socket, 10)
	for i := range sockets {
		sockets[i] = dialSocket(t, at)
		if err := sockets[i].echoes("before"); err != nil {
			t.Fatal(err)
		}
	}
	long := download(at)
	p.replace()
	for i := range 50 {
		if got := status(t, "http://"+admin+"/readyz"); got != 200 {
			t.Errorf("look %d at the administration: %d", i, got)
		}
	}
	for _, s := range sockets {
		if err := s.echoes("after"); err != nil {
			t.Errorf("a WebSocket of the old process: %v", err)
		}
	}
	if err := <-long; err != nil {
		t.Errorf("the long download: %v", err)
	}
	for _, s := range sockets {
		if code, err := s.farewell(); code != 1001 || err != nil {
			t.Errorf("at the deadline: %d, %v", code, err)
		}
	}
	p.ends(p.pids[0], 10*time.Second)
	l.await(t, 100)
	p.replace()
	l.await(t, 100)
	p.ends(p.pids[1], 10*time.Second)
	l.await(t, 100)
	l.end(t)
	p.signal(syscall.SIGTERM)
	p.ends(p.pids[2], 10*time.Second)
}

// TestAProcessThatCannotServeReplacesNobody: a broken file ends the new one, and the old one goes on.
func TestAProcessThatCannotServeReplacesNobody(t *testing.T) {
	at, admin, to := freePort(t), freePort(t), backend(t)
	path := file(t, "", at, to)
	p := start(t, "proxy", "--conf", path, "--admin-listen", admin)
	ready(t, admin)
	l := newLoad(at)
	l.begin(1)
	defer l.stop()
	if err := os.WriteFile(path, []byte("server { lissten 80; }"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGUSR2)
	if got := p.said(1, "no other process took over").Error; !strings.Contains(got, "exit status 1") {
		t.Errorf("why: %q", got)
	}
	if !strings.Contains(p.log(), "lissten: unknown directive") {
		t.Error("the new process did not say what is wrong")
	}
	l.await(t, 50)
	file(t, path, at, to)
	p.replace()
	l.await(t, 50)
	l.end(t)
	p.ends(p.pids[0], 10*time.Second)
}

// TestDoorsOfAReloadAreHandedOn: what a reload opened goes on in the next process, and what it closed is closed.
func TestDoorsOfAReloadAreHandedOn(t *testing.T) {
	one, two, admin, to := freePort(t), freePort(t), freePort(t), backend(t)
	path := file(t, "", one, to)
	p := start(t, "proxy", "--conf", path, "--admin-listen", admin)
	ready(t, admin)
	file(t, path, two, to)
	p.signal(syscall.SIGHUP)
	p.said(1, "file read again")
	l := newLoad(two)
	l.begin(2)
	defer l.stop()
	l.await(t, 50)
	p.replace()
	l.await(t, 50)
	p.ends(p.pids[0], 10*time.Second)
	l.await(t, 50)
	l.end(t)
	if got := status(t, "http://"+one+"/"); got != 0 {
		t.Errorf("the door that a reload closed: %d", got)
	}
}

// TestEndedUnderLoad: of two proxies side by side one is told to end, by each of the signals that mean good order. Clients
// that go to the other one when a connection is refused see no failure.
func TestEndedUnderLoad(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			one, other, admin, to := freePort(t), freePort(t), freePort(t), backend(t)
			p := start(t, "proxy", "--conf", file(t, "", one, to), "--admin-listen", admin, "--drain-timeout", "5s")
			q := start(t, "proxy", "--conf", file(t, "", other, to), "--admin-listen", freePort(t))
			ready(t, admin)
			q.said(1, "listening")
			l := newLoad(one, other)
			l.begin(4)
			defer l.stop()
			l.await(t, 100)
			long := download(one)
			p.signal(sig)
			for status(t, "http://"+admin+"/readyz") == 200 {
				time.Sleep(time.Millisecond)
			}
			if err := <-long; err != nil {
				t.Errorf("what was under way: %v", err)
			}
			p.ends(p.pids[0], 10*time.Second)
			l.await(t, 100)
			l.end(t)
		})
	}
}
