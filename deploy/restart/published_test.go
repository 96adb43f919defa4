//go:build linux

package restart

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// published writes the topology that a proxy has kept, with a service at an address, and gives the folder.
func published(t *testing.T, id, backend string) string {
	t.Helper()
	c := &topology.Config{
		Services:  []topology.Service{{Name: "s", Instances: []topology.Instance{{ID: "a", Addr: backend, Incarnation: 1, Order: 1}}}},
		Upstreams: []topology.Upstream{{Name: "s", Origin: topology.Derived, Directives: []topology.Directive{{"discover", "s"}}}},
		Routes:    []topology.Route{{Path: "/", Origin: topology.Derived, Upstream: "s"}},
	}
	records, err := topology.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	type record struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	list := make([]record, len(records))
	for i, r := range records {
		list[i] = record{r.Key, r.Value}
	}
	body, err := json.Marshal(map[string]any{"version": 1, "epoch": 1, "at": time.Now(), "records": list})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := fmt.Sprintf("upstrand-topology-1 %x\n%s", sha256.Sum256(body), body)
	if err := os.WriteFile(filepath.Join(dir, "topology-"+id), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAPublishedProxyIsReplaced under load: the new process lets nobody in before it has its topology.
func TestAPublishedProxyIsReplaced(t *testing.T) {
	at, admin := freePort(t), freePort(t)
	p := start(t, "proxy", "--listen", at, "--admin-listen", admin, "--id", "x", "--state-dir", published(t, "x", backend(t)),
		"--kafka-brokers", freePort(t), "--topic-wait", "500ms", "--drain-timeout", "3s")
	ready(t, admin)
	l := newLoad(at)
	l.begin(3)
	defer l.stop()
	l.await(t, 100)
	socket := dialSocket(t, at)
	p.replace()
	if err := socket.echoes("after"); err != nil {
		t.Error(err)
	}
	l.await(t, 100)
	if got := status(t, "http://"+admin+"/readyz"); got != 200 {
		t.Errorf("the administration: %d", got)
	}
	if code, err := socket.farewell(); code != 1001 || err != nil {
		t.Errorf("at the deadline: %d, %v", code, err)
	}
	p.ends(p.pids[0], 10*time.Second)
	l.end(t)
}

// TestUnderSystemd: it serves on the socket that systemd has, and tells when it is ready, who takes over, and its end.
func TestUnderSystemd(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	at := ln.Addr().String()
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	told := func(want string) {
		t.Helper()
		_ = manager.SetReadDeadline(time.Now().Add(20 * time.Second))
		var buf [256]byte
		if n, err := manager.Read(buf[:]); err != nil || string(buf[:n]) != want {
			t.Fatalf("systemd is told %q, %v; want %q", buf[:n], err, want)
		}
	}
	// The shell becomes the program, whose process id it knows.
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`, program, "proxy", "--conf", file(t, "", at, backend(t)), "--admin-listen", "")
	cmd.ExtraFiles = []*os.File{f}
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path)
	p := run(t, cmd)
	told("READY=1")
	if got := status(t, "http://"+at+"/"); got != 200 {
		t.Errorf("%d", got)
	}
	p.replace()
	told(fmt.Sprintf("MAINPID=%d", p.pids[1]))
	p.ends(p.pids[0], 10*time.Second)
	if got := status(t, "http://"+at+"/"); got != 200 {
		t.Errorf("%d", got)
	}
	p.signal(syscall.SIGTERM)
	told("STOPPING=1")
	p.ends(p.pids[1], 10*time.Second)
	if strings.Contains(p.log(), "systemd is not told") {
		t.Error("somebody could not tell")
	}
}
