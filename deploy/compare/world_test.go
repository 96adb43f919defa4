package compare

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// world is the backends of one scenario at a time: s1 to sN, each with a behaviour, each connection for one request.
type world struct {
	addrs []string

	mu      sync.Mutex
	modes   []string
	lns     []net.Listener
	release chan struct{}            // closed when held requests are answered
	arrived map[string]chan struct{} // by the request's id: closed when a backend has it
	open    sync.WaitGroup
}

func newWorld(t *testing.T) *world {
	w := &world{arrived: map[string]chan struct{}{}, release: make(chan struct{})}
	for range mostServers {
		w.addrs = append(w.addrs, address(t))
		w.modes = append(w.modes, "refuse")
		w.lns = append(w.lns, nil)
	}
	return w
}

// set changes a server's behaviour.
func (w *world) set(server int, mode string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.modes[server] = mode
	switch {
	case mode == "refuse" && w.lns[server] != nil:
		_ = w.lns[server].Close()
		w.lns[server] = nil
	case mode != "refuse" && w.lns[server] == nil:
		ln, err := net.Listen("tcp", w.addrs[server])
		if err != nil {
			return err
		}
		w.lns[server] = ln
		w.open.Go(func() { w.accept(server, ln) })
	}
	return nil
}

func (w *world) accept(server int, ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		w.open.Go(func() {
			defer c.Close()
			w.serve(server, c)
		})
	}
}

func (w *world) serve(server int, c net.Conn) {
	q, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, q.Body); err != nil {
		return
	}
	w.mu.Lock()
	mode, release := w.modes[server], w.release
	if a := w.arrived[q.Header.Get("X-Id")]; a != nil && q.Header.Get("X-Hold") != "" && mode == "ok" {
		close(a)
		delete(w.arrived, q.Header.Get("X-Id"))
	}
	w.mu.Unlock()
	kind, arg, _ := strings.Cut(mode, ":")
	status := 200
	switch kind {
	case "close":
		return
	case "badheader":
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Bad: a\x00b\r\n\r\n")
		return
	case "hang":
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.Copy(io.Discard, c) // until the proxy gives up
		return
	case "status":
		status, _ = strconv.Atoi(arg)
	case "ok":
		if q.Header.Get("X-Hold") != "" {
			<-release
		}
	}
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d X\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", status)
}

// letGo answers the held requests.
func (w *world) letGo() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.release)
	w.release = make(chan struct{})
}

func (w *world) expect(id string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := make(chan struct{})
	w.arrived[id] = a
	return a
}

// close ends everything and waits for it.
func (w *world) close() {
	w.letGo()
	for i := range w.lns {
		_ = w.set(i, "refuse")
	}
	w.open.Wait()
}
