package compare

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// received is a request as a backend got it.
type received struct {
	Backend, Method, URI, Host string
	Fields                     http.Header
	Body                       string
}

// recorder is the backends of a case. Requests come one after the other, and what the next one is answered is set before.
type recorder struct {
	mu    sync.Mutex
	reply reply
	got   []received
}

// reply is what a backend answers: the status, fields and body of a request's lines that begin with ">".
type reply struct {
	status int
	fields []string // "Name: value"
	body   string
	events int // of a stream, one each 150 ms
}

// next sets the reply and returns what came since the last call.
func (r *recorder) next(a reply) []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got, r.reply = nil, a
	return got
}

// backend listens until the end of the test.
func (r *recorder) backend(t *testing.T, name, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	open.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			open.Go(func() {
				r.serve(name, c)
				_ = c.Close()
				mu.Lock()
				delete(conns, c)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		for c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		open.Wait()
	})
}

func (r *recorder) serve(name string, c net.Conn) {
	rd := bufio.NewReader(c)
	for {
		q, err := http.ReadRequest(rd)
		if err != nil {
			return
		}
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		a := r.reply
		r.got = append(r.got, received{name, q.Method, q.RequestURI, q.Host, q.Header, string(body)})
		r.mu.Unlock()
		if !a.write(c, name, q) || q.Close || q.ProtoMinor == 0 {
			return
		}
		if a.status == http.StatusSwitchingProtocols {
			_, _ = io.Copy(c, rd)
			return
		}
	}
}

// write answers, and reports whether the connection can be kept.
func (a reply) write(c net.Conn, name string, q *http.Request) bool {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	for _, f := range a.fields {
		b.WriteString(f + "\r\n")
	}
	body := a.body
	if body == "" {
		body = "from " + name + "\n"
	}
	switch {
	case a.status == http.StatusSwitchingProtocols:
		b.WriteString("Connection: Upgrade\r\n\r\n")
		body = ""
	case a.events > 0:
		return a.stream(c, b.String())
	case a.status == http.StatusNoContent || a.status == http.StatusNotModified:
		b.WriteString("\r\n")
		body = ""
	default:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(body))
		if q.Method == http.MethodHead {
			body = ""
		}
	}
	_, err := io.WriteString(c, b.String()+body)
	return err == nil
}

func (a reply) stream(c net.Conn, head string) bool {
	if _, err := io.WriteString(c, head+"Connection: close\r\n\r\n"); err != nil {
		return false
	}
	for i := range a.events {
		if i > 0 {
			time.Sleep(150 * time.Millisecond) // the pace of the stream: its arrival is what is looked at
		}
		if _, err := fmt.Fprintf(c, "data: %d\n\n", i); err != nil {
			return false
		}
	}
	return false
}
