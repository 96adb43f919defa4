package front

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/proxy/forward"
)

type handlerFunc func(context.Context, *forward.Request, forward.Client)

func (f handlerFunc) Handle(ctx context.Context, r *forward.Request, c forward.Client) { f(ctx, r, c) }

// plain answers every request with a few words.
func plain(_ context.Context, r *forward.Request, c forward.Client) {
	if r.Invalid != "" {
		forward.Plain(c, r, r.Refuse, r.Invalid)
		return
	}
	forward.Plain(c, r, 200, string(r.Method)+" "+string(r.Target))
}

// serve starts a server of that handler and gives its address.
func serve(t testing.TB, s Settings, h handlerFunc, more ...func(*Options)) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Handler: h, Log: zerolog.Nop()}
	for _, f := range more {
		f(&o)
	}
	srv := NewServer(s, o)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		_ = srv.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		<-srv.empty
	})
	return srv, l.Addr().String()
}

func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// talk sends text to a server of that handler and gives all that comes back until the server closes.
func talk(t *testing.T, h handlerFunc, text string) string {
	t.Helper()
	_, addr := serve(t, Settings{ClientBody: 200 * time.Millisecond}, h)
	c := dial(t, addr)
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("the connection is not closed: %v", err)
	}
	return string(got)
}

// say writes to a connection.
func say(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// hear reads until the given text has come, and gives all of it.
func hear(t testing.TB, c net.Conn, until string) string {
	t.Helper()
	var got strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(got.String(), until) {
		n, err := c.Read(buf)
		got.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v after %q, waiting for %q", err, got.String(), until)
		}
	}
	return got.String()
}

// gone waits for the end of a connection, and gives what came before it.
func gone(t testing.TB, c net.Conn) string {
	t.Helper()
	got, err := io.ReadAll(c)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Fatalf("the connection is still open after %q", got)
	}
	return string(got)
}

func field(name, value string) forward.Field {
	return forward.Field{Name: []byte(name), Value: []byte(value)}
}

// drop is an answer without what changes with time.
func drop(answer, name string) string {
	var kept []string
	for line := range strings.SplitSeq(answer, "\r\n") {
		if !strings.HasPrefix(line, name+":") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\r\n")
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("in 10 s not: %s", what)
}
