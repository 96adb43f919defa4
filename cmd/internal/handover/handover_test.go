package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain also is the process that takes over: what it does there is said by HANDOVER_TEST.
func TestMain(m *testing.M) {
	if os.Getenv(variable) != "" {
		os.Exit(next(os.Getenv("HANDOVER_TEST")))
	}
	goleak.VerifyTestMain(m)
}

func next(what string) int {
	s, err := Inherit()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	switch what {
	case "fails":
		return 3
	case "hangs":
		time.Sleep(time.Minute)
		return 0
	case "gives up":
		_ = s.tell.Close()
		time.Sleep(time.Minute)
		return 0
	}
	addr := os.Getenv("HANDOVER_ADDR")
	ln, shared, err := s.Listener("tcp", addr)
	if ln == nil || !shared || err != nil || !s.Succeeds() || os.Getenv(variable) != "" {
		fmt.Fprintln(os.Stderr, ln, err, s.Left())
		return 5
	}
	if left := s.Left(); len(left) != 1 || !strings.HasPrefix(left[0], "tcp4 unused ") {
		fmt.Fprintln(os.Stderr, left)
		return 6
	}
	if err := s.Ready(); err != nil {
		return 7
	}
	for {
		c, err := ln.Accept()
		if err != nil {
			return 8
		}
		_, _ = io.WriteString(c, "the next")
		_ = c.Close()
	}
}

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln.(*net.TCPListener)
}

func said(t *testing.T, addr string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, _ := io.ReadAll(c)
	return string(b)
}

// TestTheNextProcessTakesTheSockets, by the names that they were asked for with, and this one's stay as they were.
func TestTheNextProcessTakesTheSockets(t *testing.T) {
	ln, unused := listen(t), listen(t)
	t.Setenv("HANDOVER_TEST", "serves")
	t.Setenv("HANDOVER_ADDR", "localhost:http")
	accepting := make(chan error, 1)
	go func() { _, err := ln.Accept(); accepting <- err }()
	p, err := Replace(t.Context(), []Socket{{"tcp4", "unused", unused, false}, {"tcp", "localhost:http", ln, true}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Kill() }()
	_ = ln.SetDeadline(time.Now()) // a blocking descriptor would not look at that
	select {
	case err := <-accepting:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("accept: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the socket blocks")
	}
	_ = ln.Close()
	if got := said(t, ln.Addr().String()); got != "the next" {
		t.Errorf("%q", got)
	}
}

// TestAProcessThatDoesNotServe replaces nobody, and nothing of it is left.
func TestAProcessThatDoesNotServe(t *testing.T) {
	for what, want := range map[string]string{
		"fails": "did not come to serve: exit status 3", "hangs": "does not serve: context deadline exceeded",
		"gives up": "did not come to serve: signal: killed",
	} {
		t.Run(what, func(t *testing.T) {
			t.Setenv("HANDOVER_TEST", what)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if what != "hangs" {
				ctx = t.Context()
			}
			defer cancel()
			p, err := Replace(ctx, []Socket{{"tcp", "a", listen(t), false}})
			if p != nil || err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("%v, %v; want %s", p, err, want)
			}
			var pid int
			_, _ = fmt.Sscanf(err.Error(), "process %d", &pid)
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d: %v, want it gone", pid, err)
			}
		})
	}
}

func TestWhatIsNoSocketIsAnError(t *testing.T) {
	t.Setenv(variable, "3,4")
	if _, err := Inherit(); err == nil || !strings.Contains(err.Error(), `UPSTRAND_HANDOVER is "3,4": want a list of sockets`) {
		t.Errorf("%v", err)
	}
	t.Setenv("LISTEN_PID", fmt.Sprint(os.Getpid()))
	t.Setenv("LISTEN_FDS", "many")
	if _, err := Inherit(); err == nil || !strings.Contains(err.Error(), `LISTEN_FDS is "many": want a number of sockets`) {
		t.Errorf("%v", err)
	}
	t.Setenv("LISTEN_PID", "1")
	t.Setenv("LISTEN_FDS", "3")
	if s, err := Inherit(); err != nil || s.Left() != nil || os.Getenv("LISTEN_FDS") != "" {
		t.Errorf("those of another process: %v, %v", s, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	fd, err := syscall.Dup(int(r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	if err := new(Sockets).take(fd, []tag{{Name: "tcp :80"}}); err == nil || !strings.Contains(err.Error(), "(tcp :80) was given to be listened on") {
		t.Errorf("%v", err)
	}
}

// TestSocketsWithoutNames, as systemd gives them, are found by where they listen.
func TestSocketsWithoutNames(t *testing.T) {
	for _, tc := range []struct {
		network, at, asked, want string // want: the networks that find it
	}{
		{"tcp4", "127.0.0.1:0", "127.0.0.1", "tcp tcp4"},
		{"tcp4", "127.0.0.1:0", "127.0.0.2", ""},
		{"tcp4", "127.0.0.1:0", "", ""},
		{"tcp4", "0.0.0.0:0", "", "tcp tcp4"},
		{"tcp", ":0", "", "tcp tcp6"},
		{"tcp", ":0", "::", "tcp tcp6"},
	} {
		ln, err := net.Listen(tc.network, tc.at)
		if err != nil {
			t.Skip(err) // a host without IPv6
		}
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		var found []string
		for _, network := range []string{"tcp", "tcp4", "tcp6"} {
			s := &Sockets{all: []given{{ln: ln}}}
			if got, _, err := s.Listener(network, net.JoinHostPort(tc.asked, port)); err == nil && got == ln {
				found = append(found, network)
			}
			if got, _, _ := s.Listener(network, net.JoinHostPort(tc.asked, "0")); got != nil {
				t.Errorf("%s %s: any port will do", tc.network, tc.at)
			}
		}
		if got := strings.Join(found, " "); got != tc.want {
			t.Errorf("%s %s asked for as %q: %q, want %q", tc.network, tc.at, tc.asked, got, tc.want)
		}
		_ = ln.Close()
	}
	var none *Sockets
	if ln, _, err := none.Listener("tcp", ":80"); ln != nil || err != nil || none.Succeeds() || none.Left() != nil || none.Ready() != nil {
		t.Error("nothing was given")
	}
}

func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify("READY=1"); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	if err := Notify("READY=1", "MAINPID=7"); err != nil {
		t.Fatal(err)
	}
	var got [64]byte
	if n, err := c.Read(got[:]); err != nil || string(got[:n]) != "READY=1\nMAINPID=7" {
		t.Errorf("%q, %v", got[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	if err := Notify("READY=1"); err == nil {
		t.Error("nobody listens there")
	}
}
