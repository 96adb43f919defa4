package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/front"
)

// TestAClientThatTakesNoMore: an answer that goes from socket to socket ends a while after its client took the last of
// it, or when that leaves. Then its place in limit_conn is free, its peer has no open attempt, and the log knows what was sent.
func TestAClientThatTakesNoMore(t *testing.T) {
	const size = 128 << 20
	backend := newBackend(t, "b", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/large" {
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(size))
		piece := make([]byte, 1<<20)
		for range size / len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	log := filepath.Join(t.TempDir(), "log")
	w := newWorld(t, func(c *Config) { c.Engine = front.Settings{ClientSend: 500 * time.Millisecond} })
	w.mustLoad(false, `log_format l '$uri $status $body_bytes_sent $upstream_response_length'; access_log `+log+` l;
	limit_conn_zone $server_name zone=k:1m;
	upstream u { server `+backend.addr()+` max_conns=1; }
	server { listen 8080; server_name s; location / { limit_conn k 1; proxy_pass http://u; } }`)
	for turn, leaves := range []bool{false, true} {
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, err := io.CopyN(io.Discard, c, 1<<20); err != nil {
			t.Fatal(err)
		}
		if got := w.get("/"); got.status != 503 {
			t.Errorf("%d beside the large one, want 503", got.status)
		}
		if leaves {
			_ = c.Close()
		}
		eventually(t, "the end of the large one", func() bool { return w.get("/").status == 200 })
		rest, err := io.Copy(io.Discard, c)
		if !leaves && (err == nil && rest == size-1<<20) {
			t.Error("it got all")
		}
		_ = c.Close()
		checkSent(t, log, turn, size)
	}
}

// checkSent looks at the line of the n-th large answer.
func checkSent(t *testing.T, log string, n int, size int64) {
	t.Helper()
	var line string
	eventually(t, "a line", func() bool {
		text, _ := os.ReadFile(log)
		all := strings.Split(string(text), "/large ")
		if len(all) < n+2 {
			return false
		}
		line, _, _ = strings.Cut(all[n+1], "\n")
		return true
	})
	var status, sent, taken int64
	if _, err := fmt.Sscan(line, &status, &sent, &taken); err != nil || status != 200 || sent < 1<<20 || sent >= size || taken < sent || taken > sent+1<<20 {
		t.Errorf("%q: %v", line, err)
	}
}
