package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMixedRequests: requests of all kinds at once, of clients of which some leave in the middle, while what they are routed
// by is replaced again and again. All memory that they are served with is used for the next ones: nobody may get, send on or
// log anything of another one's.
func TestMixedRequests(t *testing.T) {
	for name, replace := range map[string]func(w *world, turn int, addr, log string) error{"file": replaceFile, "published": replacePublished} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			t.Cleanup(func() { checkMarks(t, log) }) // when the proxy has ended
			w := newWorld(t, nil)
			addr := newBackend(t, "marked", marking).addr()
			if err := replace(w, 0, addr, log); err != nil {
				t.Fatal(err)
			}
			var clients sync.WaitGroup
			for i := range 6 {
				clients.Go(func() {
					(&mixing{t: t, addr: w.addr, file: name == "file", dice: rand.New(rand.NewPCG(1, uint64(i)))}).run(i)
				})
			}
			over := make(chan struct{})
			go func() { clients.Wait(); close(over) }()
			for turn := 1; ; turn++ {
				select {
				case <-over:
					return
				case <-time.After(5 * time.Millisecond):
					if err := replace(w, turn, addr, log); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

func replaceFile(w *world, turn int, addr, log string) error {
	return w.load(false, fmt.Sprintf(`log_format l '$arg_m|$http_x_m|$upstream_http_x_a|$sent_http_x_b'; access_log %s l;
	upstream u { server %s weight=%d; } upstream dead { server %s; }
	server { listen 8080;
		location /echo { proxy_set_header X-M $arg_m; add_header X-B $arg_m; proxy_pass http://u; }
		location ~ ^/re/(?<c>[^/]*)/(.*)$ { set $d $c; proxy_set_header X-M $d; add_header X-B $c; proxy_pass http://u; }
		location /accel { proxy_pass http://u; }
		location /after { add_header X-B $arg_m; return 200 "after $arg_m $http_x_m"; }
		location /dead { error_page 502 = /after?m=$arg_m; proxy_pass http://dead; }
		location / { proxy_pass http://u; }
	}`, log, addr, 1+turn%3, refused(w.t)))
}

func replacePublished(w *world, turn int, addr, _ string) error {
	in := instance("a", addr)
	in.Incarnation, in.Weight = int64(1+turn/20), 1+turn%3
	w.set("u", in)
	w.paths["/"] = "u"
	w.version++
	return w.p.Apply(w.topology())
}

// marking answers with what it knows of the mark of a request.
func marking(w http.ResponseWriter, r *http.Request) {
	mark := r.Header.Get("X-M")
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-A", mark)
	switch {
	case r.URL.Path == "/big":
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		w.Header().Set("Content-Length", strconv.Itoa(n*len(mark)))
		_, _ = io.WriteString(w, strings.Repeat(mark, n))
	case r.URL.Path == "/chunks":
		for range 3 {
			_, _ = io.WriteString(w, mark)
			w.(http.Flusher).Flush()
		}
	case r.URL.Path == "/accel":
		w.Header().Set("X-Accel-Redirect", "/after?m="+mark)
	default:
		n := bytes.Count(body, []byte(mark))
		fmt.Fprintf(w, "%s %s %d %d", r.RequestURI, mark, n, len(body)-n*len(mark))
	}
}

// mixing is a client with a connection and a mark of its own for each request.
type mixing struct {
	t    *testing.T
	addr string
	file bool
	dice *rand.Rand
	conn net.Conn
	in   *bufio.Reader
}

func (m *mixing) run(number int) {
	for i := range 150 {
		if m.conn == nil {
			c, err := net.Dial("tcp", m.addr)
			if err != nil {
				m.t.Error(err)
				return
			}
			m.conn, m.in = c, bufio.NewReader(c)
		}
		if !m.one(fmt.Sprintf("m%d-%05d", number, i)) {
			_ = m.conn.Close()
			m.conn = nil
		}
	}
	if m.conn != nil {
		_ = m.conn.Close()
	}
}

// one makes a request, and tells whether the connection can be used for another one.
func (m *mixing) one(mark string) bool {
	kinds := 7
	if m.file {
		kinds = 10
	}
	method, body := "GET", ""
	var target, want string
	switch m.dice.IntN(kinds) {
	case 0, 1:
		target = "/echo/" + mark + "?m=" + mark
	case 2:
		method, target, body = "POST", "/echo?m="+mark, strings.Repeat(mark, 1+m.dice.IntN(200))
	case 3:
		method, target, body = "POST", "/echo?m="+mark, strings.Repeat(mark, 20000) // more than is held in memory
	case 4:
		n := 20000 + m.dice.IntN(20000)
		target, want = fmt.Sprintf("/big?n=%d&m=%s", n, mark), strings.Repeat(mark, n)
	case 5:
		target, want = "/chunks?m="+mark, mark+mark+mark
	case 6:
		target = "/re/" + mark + "/x%20y?m=" + mark
	case 7:
		target, want = "/accel?m="+mark, "after "+mark+" "+mark
	case 8:
		target, want = "/dead?m="+mark, "after "+mark+" "+mark
	case 9:
		target, want = "/after?m="+mark, "after "+mark+" "+mark
	}
	if want == "" {
		want = fmt.Sprintf("%s %s %d 0", target, mark, len(body)/len(mark))
	}
	leaves := m.dice.IntN(8) == 0
	if _, err := fmt.Fprintf(m.conn, "%s %s HTTP/1.1\r\nHost: %s\r\nX-M: %s\r\nContent-Length: %d\r\n\r\n", method, target, mark, mark, len(body)); err != nil {
		m.t.Error(err)
		return false
	}
	if leaves && body != "" {
		_, _ = io.WriteString(m.conn, body[:len(body)/2])
		return false
	}
	if _, err := io.WriteString(m.conn, body); err != nil {
		m.t.Error(err)
		return false
	}
	return m.answer(target, want, mark, leaves)
}

func (m *mixing) answer(target, want, mark string, leaves bool) bool {
	resp, err := http.ReadResponse(m.in, nil)
	if err != nil {
		m.t.Errorf("%s: %v", target, err)
		return false
	}
	defer resp.Body.Close()
	if a, b := resp.Header.Get("X-A"), resp.Header.Get("X-B"); a != "" && a != mark || b != "" && b != mark {
		m.t.Errorf("%s: %v", target, resp.Header)
	}
	if leaves {
		_, _ = io.CopyN(io.Discard, resp.Body, 1000)
		return false
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil || string(got) != want {
		m.t.Errorf("%s: %d, %d bytes, want %d, %v: %.80q", target, resp.StatusCode, len(got), len(want), err, got)
		return false
	}
	return !resp.Close
}

// checkMarks: a line of the log is about one request.
func checkMarks(t *testing.T, log string) {
	text, err := os.ReadFile(log)
	if err != nil {
		return // of published routes
	}
	if n := bytes.Count(text, []byte("\n")); n < 6*150/2 {
		t.Errorf("%d lines", n)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		words := strings.Split(line, "|")
		for _, w := range words {
			if len(words) != 4 || w != "-" && w != words[0] {
				t.Errorf("%q", line)
			}
		}
	}
}
