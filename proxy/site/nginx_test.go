package site

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// row is a request and the answer that nginx gives.
type row struct {
	ask    string // METHOD TARGET [HOST]
	want   string // STATUS [Location] [| body]
	fields []string
}

// table is a configuration with requests to it.
type table struct {
	name string
	conf string // of http; servers listen on 127.0.0.1:8080
	rows []row
}

// run asks our Site, and with UPSTRAND_NGINX=PATH a real nginx as well, whether the tables are right.
func run(t *testing.T, tables []table) {
	t.Helper()
	nginx := os.Getenv("UPSTRAND_NGINX")
	for _, tc := range tables {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, tc.conf)
			for _, r := range tc.rows {
				if got := w.ask(r.ask, r.fields...); got != r.want {
					t.Errorf("%s %q: %s, want %s", r.ask, r.fields, got, r.want)
				}
			}
			if nginx == "" {
				return
			}
			ask := startNginx(t, nginx, tc.conf)
			for _, r := range tc.rows {
				if got := ask(r.ask, r.fields...); got != r.want {
					t.Errorf("nginx: %s %q: %s, want %s", r.ask, r.fields, got, r.want)
				}
			}
		})
	}
}

// startNginx runs nginx with a configuration, and gives what asks it. Its upstream u answers as echoing does.
func startNginx(t *testing.T, path, conf string) func(string, ...string) string {
	t.Helper()
	back := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := r.Method + " " + r.RequestURI
		if _, code, ok := strings.Cut(body, "status="); ok {
			n, _ := strconv.Atoi(code[:3])
			w.WriteHeader(n)
		}
		_, _ = io.WriteString(w, body)
	})}
	l := listenLoopback(t)
	go func() { _ = back.Serve(l) }()
	t.Cleanup(func() { _ = back.Close() })
	free := listenLoopback(t)
	addr := free.Addr().String()
	_ = free.Close()

	dir := t.TempDir()
	conf = strings.ReplaceAll(conf, "127.0.0.1:8080", addr)
	whole := fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;\nevents {}\nhttp {\naccess_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/w; scgi_temp_path %[1]s/s;\nupstream u { server %[2]s; }\n%[3]s\n}\n", dir, l.Addr(), conf)
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
	_, port, _ := net.SplitHostPort(addr)
	return func(line string, fields ...string) string { return askNginx(t, addr, port, line, fields) }
}

func listenLoopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func askNginx(t *testing.T, addr, port, line string, fields []string) string {
	t.Helper()
	words := strings.Split(line, " ")
	host := "test.example:8080"
	if len(words) > 2 {
		host = words[2]
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	head := words[0] + " " + words[1] + " HTTP/1.1\r\n"
	if host != "" {
		head += "Host: " + host + "\r\n"
	} else {
		head = words[0] + " " + words[1] + " HTTP/1.0\r\n"
	}
	length := 0
	for _, f := range fields {
		head += f + "\r\n"
		if n, ok := strings.CutPrefix(f, "Content-Length: "); ok {
			length, _ = strconv.Atoi(n)
		}
	}
	_, _ = io.WriteString(c, head+"Connection: close\r\n\r\n"+strings.Repeat("x", min(length, 1<<16)))
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: words[0]})
	if err != nil {
		return "closed"
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	out := strconv.Itoa(resp.StatusCode)
	if l := resp.Header.Get("Location"); l != "" {
		out += " " + strings.ReplaceAll(l, ":"+port, ":8080")
	}
	return withBody(out, strings.ReplaceAll(string(body), ":"+port, ":8080"))
}
