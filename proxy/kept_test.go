package proxy

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestKeptConnections: whatever came before on a connection, and in the memory that a request is served with, a request has the
// answer, the line in the log and the request to backends that it has as the first one of a connection, with memory of its own.
func TestKeptConnections(t *testing.T) {
	for _, name := range []string{"file", "published"} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			var k *kept
			t.Cleanup(func() { k.checkLog(log) }) // when the proxy has ended
			w := newWorld(t, func(c *Config) { c.AccessLog.Path = map[string]string{"published": log}[name] })
			k = &kept{t: t, addr: w.addr, alone: map[string]string{}}
			k.load(w, name, log)
			for _, a := range k.kinds {
				runtime.GC() // twice: no pool has anything
				runtime.GC()
				k.alone[a] = k.ask(a, false)
				k.close()
			}
			dice := rand.New(rand.NewPCG(3, 4))
			for range 700 {
				a := k.kinds[dice.IntN(len(k.kinds))]
				leaves := dice.IntN(10) == 0
				if got := k.ask(a, leaves); got != k.alone[a] && !leaves {
					t.Fatalf("%d: %s\ngot  %s\nwant %s", k.n, a, got, k.alone[a])
				}
			}
			k.close()
		})
	}
}

// kept is a client that has one connection as long as it is kept.
type kept struct {
	t     *testing.T
	addr  string
	kinds []string
	alone map[string]string // answers, by kind
	asked []string          // by number; empty: the client left
	n     int
	conn  net.Conn
	in    *bufio.Reader
}

func (k *kept) close() {
	if k.conn != nil {
		_ = k.conn.Close()
		k.conn = nil
	}
}

// ask sends METHOD TARGET VERSION|NAME: VALUE|…, and gives what came.
func (k *kept) ask(kind string, leaves bool) string {
	if k.conn == nil {
		c, err := net.Dial("tcp", k.addr)
		if err != nil {
			k.t.Fatal(err)
		}
		k.conn, k.in = c, bufio.NewReader(c)
	}
	k.n++
	lines := strings.Split(kind, "|")
	head, body := lines[0]+"\r\nHost: test.example\r\nX-N: "+strconv.Itoa(k.n)+"\r\n", ""
	for _, l := range lines[1:] {
		head += l + "\r\n"
		if size, ok := strings.CutPrefix(l, "Content-Length: "); ok {
			n, _ := strconv.Atoi(size)
			body = strings.Repeat("b", n)
		}
	}
	if _, err := io.WriteString(k.conn, head+"\r\n"+body); err != nil {
		k.t.Fatal(err)
	}
	if leaves {
		k.asked = append(k.asked, "")
		k.close()
		return ""
	}
	k.asked = append(k.asked, kind)
	return k.answer(strings.Fields(kind)[0])
}

func (k *kept) answer(method string) string {
	informed := ""
	resp, err := http.ReadResponse(k.in, &http.Request{Method: method})
	for err == nil && resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
		informed += fmt.Sprintf("%d %v, ", resp.StatusCode, resp.Header)
		resp, err = http.ReadResponse(k.in, &http.Request{Method: method})
	}
	if err != nil {
		k.close()
		return err.Error()
	}
	body, err := io.ReadAll(resp.Body)
	resp.Header.Del("Date")
	if resp.Header.Get("Expires") != "" {
		resp.Header.Set("Expires", "then")
	}
	lines := []string{}
	for name, values := range resp.Header {
		lines = append(lines, fmt.Sprintf("%s: %q", name, values))
	}
	slices.Sort(lines)
	out := informed + fmt.Sprintf("%s %v length %d %v %.2000q close %v %v trailer %v", resp.Proto, resp.Status, resp.ContentLength, lines, body, resp.Close, err, resp.Trailer)
	if resp.Close || err != nil {
		if rest, _ := io.ReadAll(k.in); len(rest) > 0 {
			out += fmt.Sprintf(" and %q", rest)
		}
		k.close()
	}
	return out
}

// checkLog: the line of a request says what that of the first one of its kind says.
func (k *kept) checkLog(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		k.t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n < len(k.asked)*4/5 {
		k.t.Errorf("%d lines of %d requests", n, len(k.asked))
	}
	lines := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "{") { // of published routes: it has times, and no field of the request
			continue
		}
		number, rest, _ := strings.Cut(line, "|")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(k.asked) {
			k.t.Errorf("%q", line)
			continue
		}
		kind := k.asked[n-1]
		if kind == "" {
			continue
		}
		if want, ok := lines[kind]; !ok {
			lines[kind] = rest
		} else if rest != want {
			k.t.Errorf("%d: %s\nlogged %s\nwant   %s", n, kind, rest, want)
		}
	}
}

func (k *kept) load(w *world, name, log string) {
	addr := newBackend(k.t, "telling", telling).addr()
	k.kinds = []string{
		"GET / HTTP/1.1", "HEAD / HTTP/1.1", "GET /a%20b/c?d=e HTTP/1.1|A: 1|X_Y: 2|B: 3", "POST / HTTP/1.1|Content-Length: 5", "POST / HTTP/1.1|Content-Length: 30000",
		"GET / HTTP/1.0", "GET / HTTP/1.0|Connection: keep-alive", "GET / HTTP/1.1|Connection: close", "GET / HTTP/1.1|X-Drop: 1|Connection: x-drop",
		"GET /chunks HTTP/1.1", "GET /chunks HTTP/1.0|Connection: keep-alive", "GET /none HTTP/1.1", "GET /big HTTP/1.1", "HEAD /big HTTP/1.1", "GET /status/503 HTTP/1.1",
		"GET /../x HTTP/1.1", "POST / HTTP/1.1|Content-Length: 0", "GET /cut HTTP/1.1", "GET /trailer HTTP/1.1|TE: trailers", "GET /fields HTTP/1.1", "GET /hint HTTP/1.1",
		"GET /upgrade HTTP/1.1|Connection: upgrade|Upgrade: none",
	}
	if name == "published" {
		w.set("u", instance("a", addr))
		w.set("dead", instance("a", refused(k.t)))
		near, far := instance("a", refused(k.t)), instance("b", addr)
		near.Zone, far.Zone = "near", "far"
		w.set("zones", near, far)
		w.zoned["zones"] = true
		w.paths["/"] = "u"
		w.apply()
		k.kinds = append(k.kinds, "GET /dead HTTP/1.1", "GET /zones HTTP/1.1", "POST /zones HTTP/1.1|Content-Length: 4")
		return
	}
	k.kinds = append(k.kinds, "GET /err?x=1 HTTP/1.1|X-In: in", "GET /err HTTP/1.1", "GET /accel?to=/set HTTP/1.1|X-In: in", "GET /accel?to=/fields HTTP/1.1",
		"GET /set?x=2 HTTP/1.1", "GET /re/abc/def HTTP/1.1", "GET /gzip HTTP/1.1|Accept-Encoding: gzip", "GET /gzip HTTP/1.1", "GET /sticky HTTP/1.1",
		"GET /walk HTTP/1.1", "POST /walk HTTP/1.1|Content-Length: 3", "GET /retry HTTP/1.1", "GET /limit HTTP/1.1", "GET /intercept HTTP/1.1",
		"GET /rw/x HTTP/1.1", "GET /dir?q HTTP/1.1", "GET /gone HTTP/1.1", "GET /expires HTTP/1.1", "GET /held HTTP/1.1", "GET /444 HTTP/1.1", "POST /body HTTP/1.1|Content-Length: 50")
	w.mustLoad(false, fmt.Sprintf(`log_format l '$http_x_n|$request|$status|$uri|$args|$a|$1|$body_bytes_sent|$upstream_status|$upstream_addr|$upstream_http_x_a|'
		'$sent_http_x_b|$sent_http_connection|$limit_conn_status|$http_x_in|$proxy_host|$request_completion|$upstrand_addr|$m|$upstream_response_length'; access_log %s l;
	limit_conn_zone $host zone=k:1m; map $arg_x $m { default none; 1 one; ~^(?<a>2) two; }
	upstream u { server %[2]s max_fails=0; } upstream dead { server %[3]s max_fails=0; } upstream two { server %[3]s weight=1000 max_fails=0; server %[2]s backup; }
	upstream pair { sticky cookie id; server %[2]s route=a; }
	upstrand s { upstream dead; upstream u; order per_request; next_upstream_statuses error timeout 5xx; }
	server { listen 8080;
		location /err { error_page 502 = /set?x=$arg_x; proxy_pass http://dead; }
		location /accel { proxy_pass http://u; }
		location /set { set $a "$arg_x$http_x_in"; add_header X-B "$a$m" always; return 200 "set $a"; }
		location ~ ^/re/(?<a>[a-z]+)/(.*)$ { add_header X-B $1; proxy_set_header X-Up "$a $2"; proxy_pass http://u/$2; }
		location /gzip { gzip on; gzip_min_length 1; gzip_types *; proxy_pass http://u; }
		location /sticky { proxy_pass http://pair; }
		location /walk { proxy_next_upstream error non_idempotent; proxy_pass http://$upstrand_s; }
		location /retry { proxy_pass http://two; }
		location /limit { limit_conn k 9; proxy_pass http://u; }
		location /intercept { proxy_intercept_errors on; error_page 503 = @n; proxy_pass http://u/status/503; }
		location @n { proxy_set_header X-Up $upstream_status; proxy_pass http://u; }
		location /rw { rewrite ^/rw/(.*)$ /set?x=$1 last; }
		location /dir/ { proxy_pass http://u; }
		location /gone { add_header X-B always always; return 410; }
		location /expires { expires 1h; charset utf-8; return 200 then; }
		location /held { keepalive_timeout 0; proxy_pass http://u; }
		location /444 { return 444; }
		location /body { client_max_body_size 10; proxy_pass http://u; }
		location /upgrade { proxy_set_header Connection upgrade; proxy_set_header Upgrade $http_upgrade; proxy_pass http://u; }
		location / { add_header X-B $uri; proxy_pass http://u; }
	}`, log, addr, refused(k.t)))
}

// telling answers with all that it was asked.
func telling(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Header.Del("X-N")
	w.Header().Set("X-A", r.URL.Path)
	if code, ok := strings.CutPrefix(r.URL.Path, "/status/"); ok {
		status, _ := strconv.Atoi(code)
		w.WriteHeader(status)
		return
	}
	switch r.URL.Path {
	case "/accel":
		w.Header().Set("X-Accel-Redirect", r.URL.Query().Get("to"))
	case "/none":
		w.WriteHeader(http.StatusNoContent)
		return
	case "/cut":
		w.Header().Set("Content-Length", "100")
	case "/trailer":
		w.Header().Set("Trailer", "X-End")
		defer w.Header().Set("X-End", "end")
	case "/fields":
		for i := range 40 {
			w.Header().Set("X-F"+strconv.Itoa(i), r.URL.Path)
		}
		w.Header().Set("Server", "theirs")
		w.Header().Set("Connection", "x-f1")
	case "/hint":
		w.WriteHeader(http.StatusEarlyHints)
	case "/big":
		w.Header().Set("Content-Length", "200000")
		_, _ = io.WriteString(w, strings.Repeat("0123456789", 20000))
		return
	case "/chunks":
		_, _ = io.WriteString(w, "first")
		w.(http.Flusher).Flush()
	}
	fmt.Fprintf(w, "%s %s %s %q %d %d", r.Method, r.RequestURI, r.Host, fmt.Sprint(r.Header), len(body), r.ContentLength)
}
