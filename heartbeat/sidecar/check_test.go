package sidecar

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func within(t *testing.T, d time.Duration, check Check) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return check(ctx)
}

func TestHTTPCheck(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("method %s", r.Method)
		}
		switch r.URL.Path {
		case "/hang":
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		case "/host":
			if r.Host != "orders.example" {
				w.WriteHeader(404)
			}
		default:
			code, _ := strconv.Atoi(r.URL.Path[1:])
			w.Header().Set("Location", "/500")
			w.WriteHeader(code)
		}
	}))
	defer server.Close()
	defer close(hang)
	for path, want := range map[string]bool{"/200": true, "/204": true, "/302": true, "/399": true, "/400": false, "/404": false,
		"/500": false, "/503": false, "/hang": false, "/host": false} {
		check, err := ParseCheck(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		limit := 10 * time.Second
		if path == "/hang" {
			limit = 100 * time.Millisecond
		}
		if err := within(t, limit, check); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	check, err := HTTP(server.URL+"/host", HTTPOptions{Host: "orders.example"})
	if err != nil {
		t.Fatal(err)
	}
	if err := within(t, 10*time.Second, check); err != nil {
		t.Errorf("with Host: %v", err)
	}
}

func TestHTTPSCheck(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that is to fail
	server.StartTLS()
	defer server.Close()
	for insecure, want := range map[bool]bool{false: false, true: true} {
		check, err := HTTP(server.URL, HTTPOptions{Insecure: insecure})
		if err != nil {
			t.Fatal(err)
		}
		if err := within(t, 10*time.Second, check); (err == nil) != want {
			t.Errorf("insecure %v: %v", insecure, err)
		}
	}
}

func TestTCPCheck(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	check, err := ParseCheck("tcp://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := within(t, 10*time.Second, check); err != nil {
		t.Errorf("listening: %v", err)
	}
	l.Close()
	if err := within(t, 10*time.Second, check); err == nil {
		t.Error("not listening: well")
	}
}

func TestCommandCheck(t *testing.T) {
	for text, want := range map[string]string{"exec:true": "", "exec: test 1 -lt 2": "", "exec:echo no space left >&2; exit 4": "no space left",
		"exec:exit 1": "exit status 1", "exec:no-such-command-here": "127"} {
		check, err := ParseCheck(text)
		if err != nil {
			t.Fatal(err)
		}
		err = within(t, 10*time.Second, check)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := within(t, time.Second, Command("/no/such/file")); err == nil {
		t.Error("a command that does not exist is well")
	}
}

// A command that takes too long is killed with all that it started.
func TestCommandCheckIsKilledWithItsGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	from := time.Now()
	err := within(t, 500*time.Millisecond, Command("/bin/sh", "-c", "sleep 600 & echo $! > "+file+"; wait"))
	if err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("check: %v", err)
	}
	if took := time.Since(from); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	waitGone(t, pid)
}

// waitGone waits until a process has ended (a zombie has).
func waitGone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for alive(pid) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d lives on", pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !os.IsNotExist(err) // no /proc: believe the signal
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func TestParseCheckRefuses(t *testing.T) {
	for _, text := range []string{"", "orders", "ftp://x", "http://", "http:///path", "tcp://host", "tcp:", "exec:", "exec:  ", "none:x", "http://[::1"} {
		if _, err := ParseCheck(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	check, err := ParseCheck("none")
	if err != nil || check(t.Context()) != nil {
		t.Errorf("none: %v", err)
	}
}
