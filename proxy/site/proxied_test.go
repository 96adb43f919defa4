package site

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// TestProxied replays testdata/proxied: a configuration, then requests, each with the answer that a real nginx 1.22 gave.
// The backend of each answers with what it was asked, and with the fields that the request's X-Answer names. What stands
// behind "ours:" is where we differ on purpose. With UPSTRAND_NGINX=PATH the answers are asked of that nginx and written
// into the files.
func TestProxied(t *testing.T) {
	files, err := filepath.Glob("testdata/proxied/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { replayFile(t, file) })
	}
}

// played is a request of a file, and what came of it.
type played struct {
	head []string // METHOD TARGET [HOST] [PROTO], then fields
	want string   // nginx's
	ours string   // ours, where it differs
}

func (p *played) expected() string {
	if p.ours != "" {
		return p.ours
	}
	return p.want
}

func replayFile(t *testing.T, file string) {
	conf, requests := readPlayed(t, file)
	s := newPlayedSite(t, conf)
	for i := range requests {
		r := &requests[i]
		if got := s.ask(r.head); got != r.expected() {
			t.Errorf("%s\ngot\n%s\nwant\n%s", strings.Join(r.head, "\n"), got, r.expected())
		}
	}
	nginx := os.Getenv("UPSTRAND_NGINX")
	if nginx == "" {
		return
	}
	ask := startPlayedNginx(t, nginx, conf)
	var out strings.Builder
	out.WriteString(conf)
	for _, r := range requests {
		r.want = ask(r.head)
		out.WriteString("\n----\n> " + strings.Join(r.head, "\n> ") + "\n" + r.want)
		if r.ours != "" && r.ours != r.want {
			out.WriteString("\nours:\n" + r.ours)
		}
	}
	if err := os.WriteFile(file, []byte(out.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readPlayed(t *testing.T, file string) (string, []played) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n----\n")
	var out []played
	for _, part := range parts[1:] {
		var p played
		rest := part
		for strings.HasPrefix(rest, "> ") {
			line, after, _ := strings.Cut(rest, "\n")
			p.head = append(p.head, line[2:])
			rest = after
		}
		p.want, p.ours, _ = strings.Cut(rest, "\nours:\n")
		out = append(out, p)
	}
	return parts[0], out
}

// echoOf is the answer of every backend: what it was asked, in an order that does not depend on who asks.
func echoOf(method, target, host string, fields []string, body string) (status int, head []string, text string) {
	status = 200
	lines := []string{}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		switch name = strings.ToLower(name); name {
		case "x-answer":
			head = append(head, strings.Split(value, "|")...)
			continue
		case "x-status":
			status, _ = strconv.Atoi(value)
			continue
		case "connection":
			if value == "close" { // nginx 1.22 sends it by default, we where HTTP/1.0 is spoken
				continue
			}
		}
		lines = append(lines, name+": "+value)
	}
	slices.Sort(lines)
	return status, head, strings.Join(append([]string{method + " " + target, "host: " + host}, lines...), "\n") + "\n" + body
}

// shown is an answer as the files have it.
func shown(status int, fields []string, body string) string {
	var kept []string
	zipped := false
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		switch strings.ToLower(name) {
		case "server", "date", "connection", "transfer-encoding", "keep-alive":
			continue
		case "content-encoding":
			zipped = value == "gzip"
		case "content-length": // of our own pages, that are worded differently
			if strings.Contains(body, "<hr>") {
				continue
			}
		}
		kept = append(kept, http.CanonicalHeaderKey(name)+": "+value)
	}
	slices.SortStableFunc(kept, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	if zipped && body != "" {
		z, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			return err.Error()
		}
		body = string(plain)
	}
	if strings.Contains(body, "<hr>") {
		body = "<page>"
	}
	return strings.TrimSuffix(strconv.Itoa(status)+"\n"+strings.Join(append(kept, ""), "\n")+"\n"+body, "\n")
}

// playedSite is a configuration whose upstreams are all echoing.
type playedSite struct {
	*world
	groups map[string]*Upstream
}

func newPlayedSite(t *testing.T, conf string) *playedSite {
	p := &playedSite{world: newWorld(t, conf), groups: map[string]*Upstream{}}
	p.groups["u"] = &Upstream{Name: "u", Group: p.group}
	for _, h := range p.site.Hosts() {
		g, err := balance.NewGroup(h, balance.Env{}, balance.Spec{Servers: []balance.Server{{Key: balance.Key{ID: h}, Addr: h}}})
		if err != nil {
			t.Fatal(err)
		}
		p.groups[h] = &Upstream{Name: h, Group: g}
	}
	return p
}

func (p *playedSite) Upstrand(string) *Upstrand      { return nil }
func (p *playedSite) Upstream(name string) *Upstream { return p.groups[name] }
func (p *playedSite) Opener(w *Wire) forward.Opener  { return echoOpener{*w} }
func (p *playedSite) ask(head []string) string {
	c := &collector{}
	r := requestOf(head[0], head[1:]...)
	if words := strings.Fields(head[0]); len(words) > 3 {
		r.Proto = words[3]
	}
	p.site.Handle(context.Background(), p, r, c)
	if c.aborted {
		return "closed"
	}
	return shown(c.status, fieldLines(c.fields), c.body.String())
}

func fieldLines(fields []forward.Field) []string {
	var out []string
	for _, f := range fields {
		out = append(out, string(f.Name)+": "+string(f.Value))
	}
	return out
}

type echoOpener struct{ wire Wire }

func (o echoOpener) Open(context.Context, *balance.Peer, bool) forward.Backend {
	return &echoBackend{wire: o.wire}
}

// echoBackend is an attempt whose answer is echoOf's.
type echoBackend struct {
	wire   Wire
	status int
	fields []forward.Field
	body   string
}

func (e *echoBackend) Send(r *forward.Request) error {
	lines := fieldLines(r.Fields)
	body := ""
	if r.Body != nil {
		all, err := io.ReadAll(r.Body)
		if err != nil {
			return &forward.Error{Class: forward.ClientBody, Err: err}
		}
		body = string(all)
		lines = append(lines, fmt.Sprint("Content-Length: ", len(all)))
	}
	var head []string
	e.status, head, e.body = echoOf(string(r.Method), string(r.Target), string(r.Authority), lines, body)
	for _, f := range head {
		name, value, _ := strings.Cut(f, "=")
		e.fields = append(e.fields, forward.Field{Name: []byte(name), Value: []byte(value)})
	}
	if e.status == 204 || e.status == 304 {
		return nil
	}
	e.fields = append(e.fields, forward.Field{Name: nameContentLength, Value: []byte(strconv.Itoa(len(e.body)))})
	return nil
}

func (e *echoBackend) Head() (int, []forward.Field, error) { return e.status, e.fields, nil }
func (e *echoBackend) Body() forward.Source                { return bodyOf(e.body) }
func (e *echoBackend) Sent() forward.Progress              { return forward.Progress{Connected: true, Sent: true} }
func (e *echoBackend) Tunnel() (io.ReadWriteCloser, error) { return nil, io.ErrClosedPipe }
func (e *echoBackend) Close()                              {}

// startPlayedNginx runs nginx on the configuration, with real echoing backends behind the same names.
func startPlayedNginx(t *testing.T, path, conf string) func([]string) string {
	t.Helper()
	back := listenLoopback(t)
	go serveEcho(back)
	t.Cleanup(func() { _ = back.Close() })
	free := listenLoopback(t)
	addr := free.Addr().String()
	_ = free.Close()
	dir := t.TempDir()
	_, port, _ := net.SplitHostPort(addr)
	_, backPort, _ := net.SplitHostPort(back.Addr().String())
	real := strings.NewReplacer("127.0.0.1:8080", addr, "127.0.0.1:19000", "127.0.0.1:"+backPort).Replace(conf)
	whole := fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;\nevents {}\nhttp {\naccess_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/w; scgi_temp_path %[1]s/s;\nupstream u { server 127.0.0.1:%[2]s; }\n%[3]s\n}\n", dir, backPort, real)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-p", dir, "-c", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nginx does not listen: %s", stderr.String())
		}
	}
	theirs := strings.NewReplacer("127.0.0.1:19000", "127.0.0.1:"+backPort)
	same := strings.NewReplacer(":"+port, ":8080", ":"+backPort, ":19000")
	return func(head []string) string {
		return same.Replace(askPlayed(t, addr, strings.Split(theirs.Replace(strings.Join(head, "\n")), "\n")))
	}
}

func askPlayed(t *testing.T, addr string, head []string) string {
	t.Helper()
	words := strings.Fields(head[0])
	host, proto := "test.example:8080", "HTTP/1.1"
	if len(words) > 2 {
		host = words[2]
	}
	if len(words) > 3 {
		proto = words[3]
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	text := words[0] + " " + words[1] + " " + proto + "\r\nHost: " + host + "\r\n"
	length := 0
	for _, f := range head[1:] {
		text += f + "\r\n"
		if n, ok := strings.CutPrefix(f, "Content-Length: "); ok {
			length, _ = strconv.Atoi(n)
		}
	}
	_, _ = io.WriteString(c, text+"Connection: close\r\n\r\n"+strings.Repeat("x", length))
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: words[0]})
	if err != nil {
		return "closed"
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	var fields []string
	for name, values := range resp.Header {
		for _, v := range values {
			fields = append(fields, name+": "+v)
		}
	}
	return shown(resp.StatusCode, fields, string(body))
}

// serveEcho answers each connection once, as echoBackend does.
func serveEcho(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			in := bufio.NewReader(c)
			line, _ := in.ReadString('\n')
			words := strings.Fields(line)
			if len(words) < 2 {
				return
			}
			var fields []string
			host, length := "", 0
			for {
				f, err := in.ReadString('\n')
				if f = strings.TrimRight(f, "\r\n"); err != nil || f == "" {
					break
				}
				if v, ok := strings.CutPrefix(f, "Host: "); ok {
					host = v
					continue
				}
				if v, ok := strings.CutPrefix(f, "Content-Length: "); ok {
					length, _ = strconv.Atoi(v)
				}
				fields = append(fields, f)
			}
			body := make([]byte, length)
			_, _ = io.ReadFull(in, body)
			status, head, text := echoOf(words[0], strings.Join(words[1:len(words)-1], " "), host, fields, string(body))
			out := fmt.Sprintf("HTTP/1.1 %d X\r\nConnection: close\r\n", status)
			for _, h := range head {
				out += strings.Replace(h, "=", ": ", 1) + "\r\n"
			}
			if status != 204 && status != 304 {
				out += fmt.Sprintf("Content-Length: %d\r\n", len(text))
			} else {
				text = ""
			}
			if words[0] == "HEAD" {
				text = ""
			}
			_, _ = io.WriteString(c, out+"\r\n"+text)
		}()
	}
}
