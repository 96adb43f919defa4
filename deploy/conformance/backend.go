package conformance

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Seen is one request as a backend got it.
type Seen struct {
	Server  string `json:"server"`
	Method  string `json:"method"`
	URI     string `json:"uri"`
	BodyLen int    `json:"body_len"`
	Body    string `json:"body"` // a long one as its checksum
	Reused  *bool  `json:"reused,omitempty"`
}

// backend is a server that behaves as it is told.
type backend struct {
	bench *bench
	name  string
	addr  string

	mu   sync.Mutex
	mode string
	ln   net.Listener
}

// bench is what the backends of a case share.
type bench struct {
	mu      sync.Mutex
	seen    map[string][]Seen        // by the request's id
	arrived map[string]chan struct{} // closed when a backend has read the request of that id
	holds   map[string]chan struct{} // closed when the held request of that name may be answered
	over    chan struct{}            // closed at the end of the case
}

func newBench() *bench {
	return &bench{seen: map[string][]Seen{}, arrived: map[string]chan struct{}{}, holds: map[string]chan struct{}{}, over: make(chan struct{})}
}

func (b *bench) hold(name string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holds[name] == nil {
		b.holds[name] = make(chan struct{})
	}
	return b.holds[name]
}

func (b *bench) expect(rid string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := make(chan struct{})
	b.arrived[rid] = c
	return c
}

func (b *bench) note(rid string, s Seen) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen[rid] = append(b.seen[rid], s)
	if c := b.arrived[rid]; c != nil {
		close(c)
		delete(b.arrived, rid)
	}
}

func (b *bench) of(rid string) []Seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Seen{}, b.seen[rid]...)
}

// set changes the behaviour of a backend from now on.
func (b *backend) set(mode string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mode = mode
	switch {
	case mode == "refuse" && b.ln != nil:
		err := b.ln.Close()
		b.ln = nil
		return err
	case mode != "refuse" && b.ln == nil:
		ln, err := net.Listen("tcp", b.addr)
		if err != nil {
			return fmt.Errorf("backend %s: %w", b.name, err)
		}
		b.ln = ln
		go b.accept(ln)
	}
	return nil
}

func (b *backend) behaviour() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mode
}

func (b *backend) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			rd := bufio.NewReader(c)
			for n := 0; b.serve(c, rd, n); n++ {
			}
		}()
	}
}

// serve answers one request and reports whether the connection stays.
func (b *backend) serve(c net.Conn, rd *bufio.Reader, nth int) bool {
	q, ok := readRequest(rd)
	if !ok {
		return false
	}
	mode := b.behaviour()
	s := Seen{Server: b.name, Method: q.method, URI: q.uri, BodyLen: len(q.body), Body: string(q.body)}
	if len(q.body) > 64 {
		s.Body = fmt.Sprintf("sum32=%08x", crc32.ChecksumIEEE(q.body))
	}
	keeps := mode == "keep" || mode == "stale"
	if keeps {
		reused := nth > 0
		s.Reused = &reused
	}
	b.bench.note(q.head["x-rid"], s)
	switch {
	case mode == "close", mode == "stale" && nth > 0:
		return false
	case mode == "hang":
		b.sleep(30 * time.Second)
		return false
	}
	if name := q.head["x-hold"]; name != "" && !keeps {
		select {
		case <-b.bench.hold(name):
		case <-b.bench.over:
			return false
		}
	}
	return b.answer(c, q, mode) && keeps
}

func (b *backend) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.bench.over:
	}
}

// raw is the behaviours that are no proper answer.
var raw = map[string]string{
	"garbage":   "this is not http\r\n\r\n",
	"badheader": "HTTP/1.1 200 OK\r\nX-Bad: a\x00b\r\n\r\n",
	"partial":   "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n0123456789",
}

func (b *backend) answer(c net.Conn, q request, mode string) bool {
	if text := raw[mode]; text != "" {
		_, err := io.WriteString(c, text)
		return err == nil
	}
	kind, arg, _ := strings.Cut(mode, ":")
	first, second, _ := strings.Cut(arg, ":")
	status, extra, body := 200, "", b.name
	switch kind {
	case "status":
		status, _ = strconv.Atoi(arg)
	case "delay", "slow":
		b.sleep(millis(first))
	case "xaccel":
		extra = "X-Accel-Redirect: " + arg + "\r\n"
	case "cookie":
		extra = "Set-Cookie: " + arg + "\r\n"
	}
	if status == 204 || status == 304 {
		body = ""
	}
	head := fmt.Sprintf("HTTP/1.1 %d X\r\nX-Backend: %s\r\n%s", status, b.name, extra)
	if status != 204 {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	if mode != "keep" && mode != "stale" {
		head += "Connection: close\r\n"
	}
	if q.method == "HEAD" {
		body = ""
	}
	if kind == "slow" {
		if _, err := io.WriteString(c, head+"\r\n"); err != nil {
			return false
		}
		b.sleep(millis(second))
		head = ""
	} else {
		head += "\r\n"
	}
	_, err := io.WriteString(c, head+body)
	return err == nil
}

func millis(text string) time.Duration {
	n, _ := strconv.Atoi(text)
	return time.Duration(n) * time.Millisecond
}

// request is a backend's view of a request.
type request struct {
	method, uri string
	head        map[string]string // names in lower case
	body        []byte
}

func readRequest(rd *bufio.Reader) (q request, ok bool) {
	line, err := rd.ReadString('\n')
	parts := strings.Split(strings.TrimRight(line, "\r\n"), " ")
	if err != nil || len(parts) != 3 {
		return q, false
	}
	q.method, q.uri, q.head = parts[0], parts[1], map[string]string{}
	for {
		line, err := rd.ReadString('\n')
		if err != nil {
			return q, false
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		q.head[strings.ToLower(name)] = strings.TrimSpace(value)
	}
	if strings.Contains(q.head["transfer-encoding"], "chunked") {
		q.body, ok = readChunks(rd)
		return q, ok
	}
	n, _ := strconv.Atoi(q.head["content-length"])
	q.body = make([]byte, n)
	_, err = io.ReadFull(rd, q.body)
	return q, err == nil
}

func readChunks(rd *bufio.Reader) (body []byte, ok bool) {
	for {
		line, err := rd.ReadString('\n')
		if err != nil {
			return nil, false
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 32)
		if err != nil {
			return nil, false
		}
		chunk := make([]byte, n+2)
		if _, err := io.ReadFull(rd, chunk); err != nil {
			return nil, false
		}
		if n == 0 {
			return body, string(chunk) == "\r\n"
		}
		body = append(body, chunk[:n]...)
	}
}
