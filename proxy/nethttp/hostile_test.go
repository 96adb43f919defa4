package nethttp

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

func field(name, value string) forward.Field {
	return forward.Field{Name: []byte(name), Value: []byte(value)}
}

// TestInformedClients: HTTP/1.0 knows no informational answers; such a client would take one for the answer.
func TestInformedClients(t *testing.T) {
	for proto, want := range map[string]bool{"HTTP/1.1": true, "HTTP/1.0": false} {
		got := talk(t, func(_ context.Context, r *forward.Request, c forward.Client) {
			if err := c.Inform(103, []forward.Field{field("Link", "x")}); err != nil {
				t.Error(err)
			}
			forward.Plain(c, r, 200, "ok")
		}, "GET / "+proto+"\r\nHost: a\r\nConnection: close\r\n\r\n")
		if strings.Contains(got, " 103 ") != want || strings.Contains(got, "Link") != want || !strings.Contains(got, " 200 OK\r\n") {
			t.Errorf("%s: %q", proto, got)
		}
	}
}

// TestOldRequestsInChunks: net/http drops Transfer-Encoding from a request of HTTP/1.0 without a word. What a proxy before us
// took for its body must not be a request.
func TestOldRequestsInChunks(t *testing.T) {
	const inner = "GET /inner HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, more := range map[string]string{"no length": "", "a length": "Content-Length: 4\r\n"} {
		got := talk(t, func(_ context.Context, r *forward.Request, c forward.Client) {
			if string(r.Target) == "/inner" {
				t.Errorf("%s: a body was taken for a request", name)
			}
			forward.Plain(c, r, 200, "ok")
		}, "POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n"+more+"Transfer-Encoding: chunked\r\n\r\n20\r\n"+inner+"\r\n0\r\n\r\n")
		if n := strings.Count(got, "HTTP/1."); n > 1 {
			t.Errorf("%s: %d answers: %q", name, n, got)
		}
	}
}

// TestFieldsOfAChange: a value of an answer with 101 can't end its line either.
func TestFieldsOfAChange(t *testing.T) {
	got := talk(t, func(_ context.Context, _ *forward.Request, c forward.Client) {
		_ = c.Head(http.StatusSwitchingProtocols, []forward.Field{field("Upgrade", "x"), field("A", "1\r\nSet-Cookie: evil\n\r\n<p>"), field("B b\r\nC", "2"), field("", "3")}, 0)
		if rw, err := c.Tunnel(); err == nil {
			_ = rw.Close()
		}
	}, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	if want := "HTTP/1.1 101 Switching Protocols\r\nA: 1  Set-Cookie: evil   <p>\r\nUpgrade: x\r\n\r\n"; got != want {
		t.Errorf("%q", got)
	}
}

// TestHoldWithoutRoom: a disk that takes no more is told as our fault, not the client's, and nothing stays open.
func TestHoldWithoutRoom(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("needs /dev/full")
	}
	s, w := upload(t, 0)
	s.file = &spill{f: full}
	go func() { _, _ = io.WriteString(w, "abc"); _ = w.Close() }()
	_, err = s.Hold(0)
	var path *fs.PathError
	if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &path) || s.Whole() {
		t.Errorf("%v", err)
	}
	s.finish()
	if _, err := full.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Error("the file is still open")
	}
	s, other := upload(t, 0)
	s.dir = t.TempDir() + "/none"
	go func() { _, _ = io.WriteString(other, "abc"); _ = other.Close() }()
	if _, err = s.Hold(0); !errors.As(err, &path) {
		t.Errorf("%v", err)
	}
}
