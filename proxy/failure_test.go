package proxy

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/front"
)

// TestFailures is what a client sees, and how it counts, for a peer of each kind beside a good one.
func TestFailures(t *testing.T) {
	closing := func(_ int, c net.Conn) { readHead(c) }
	const large = 200 << 10
	sated := func(_ int, c net.Conn) { _, _ = io.CopyN(io.Discard, c, large) }
	garbage := func(_ int, c net.Conn) {
		readHead(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nbad header\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
	}
	for _, tc := range []struct {
		name, method string
		bad          func(t *testing.T) string
		body         string
		status       int
		answer       string
		fails        int
	}{
		{"refused GET goes to the next", "GET", refused, "", 200, "good", 1},
		{"refused POST goes to the next, with its body", "POST", refused, "abc", 200, "good", 1},
		{"closed GET goes to the next", "GET", raw(closing), "", 200, "good", 1},
		{"closed PUT goes to the next, with its body", "PUT", raw(closing), "abc", 200, "good", 1},
		{"closed POST is not repeated", "POST", raw(closing), "abc", 502, "connection failed after 1 try", 1},
		{"closed PATCH is not repeated", "PATCH", raw(closing), "abc", 502, "connection failed", 1},
		{"a body beyond what is held is not repeated", "PUT", raw(sated), strings.Repeat("x", large), 502, "connection failed", 1},
		{"an invalid answer is nobody else's to give", "GET", raw(garbage), "", 502, "invalid answer", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			var got atomic.Value
			good := newBackend(t, "good", func(rw http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				got.Store(string(b))
				_, _ = io.WriteString(rw, "good")
			})
			w.set("orders", instance("bad", tc.bad(t)), instance("good", good.addr()))
			w.apply()
			a := w.do(tc.method, "/orders", strings.NewReader(tc.body))
			if a.status != tc.status || !strings.Contains(a.body, tc.answer) {
				t.Errorf("%d %q, want %d %q", a.status, a.body, tc.status, tc.answer)
			}
			if tc.status == 200 && got.Load() != tc.body {
				t.Errorf("the next peer got body %q, want %q", got.Load(), tc.body)
			}
			s := w.state("orders")
			if s[0].Fails != tc.fails || s[0].Conns != 0 || s[1].Fails != 0 || s[1].Conns != 0 {
				t.Errorf("states %+v", s)
			}
		})
	}
}

func raw(speak func(int, net.Conn)) func(*testing.T) string {
	return func(t *testing.T) string { return rawBackend(t, speak) }
}

func TestThreeTries(t *testing.T) {
	w := newWorld(t, nil)
	var all []topology.Instance
	for _, id := range []string{"a", "b", "c", "d"} {
		all = append(all, instance(id, refused(t)))
	}
	w.set("orders", all...)
	w.apply()
	if a := w.get("/orders"); a.status != 502 || !strings.Contains(a.body, "3 tries") {
		t.Errorf("%+v", a)
	}
	if a := w.get("/orders"); a.status != 502 || !strings.Contains(a.body, "1 try, no other instance") {
		t.Errorf("one is left, then nobody: %+v", a)
	}
	if a := w.get("/orders"); a.status != 503 || !strings.Contains(a.body, "all instances failed lately") {
		t.Errorf("nobody is left: %+v", a)
	}
}

// TestCutAnswer: what was begun is not begun again, and the client can tell that it is not whole.
func TestCutAnswer(t *testing.T) {
	for name, head := range map[string]string{
		"with a length": "Content-Length: 100\r\n\r\nhalf",
		"chunked":       "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			addr := rawBackend(t, func(_ int, c net.Conn) {
				readHead(c)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+head)
			})
			w.set("orders", instance("half", addr), instance("other", newBackend(t, "other", nil).addr()))
			w.apply()
			if a, err := w.try("GET", "/orders", nil); err == nil || a.body != "half" {
				t.Errorf("%+v, %v", a, err)
			}
			if s := w.state("orders"); s[0].Fails != 0 || s[0].Conns != 0 {
				t.Errorf("nginx counts a cut body as a success: %+v", s[0])
			}
		})
	}
}

// TestStaleConnections: a kept connection that the peer closed is found out at the next request. The client must not
// see it, whatever the method, nor must it count against the peer, which does nothing wrong.
func TestStaleConnections(t *testing.T) {
	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH"} {
		t.Run(method, func(t *testing.T) {
			w := newWorld(t, nil)
			var dead sync.WaitGroup
			dead.Add(1)
			addr := rawBackend(t, func(n int, c net.Conn) {
				if n == 1 {
					defer dead.Done()
					readRequest(c)
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")
					return // the next request meets the close at the same time as it is sent
				}
				readRequest(c)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n2")
			})
			w.set("orders", instance("b", addr), instance("never", refused(t)))
			w.apply()
			if a := w.do(method, "/orders", strings.NewReader("abc")); a.body != "1" {
				t.Fatalf("%+v", a)
			}
			dead.Wait()
			w.set("orders", instance("b", addr), topology.Instance{ID: "other", Addr: refused(t), Order: 7, Drain: true})
			w.apply()
			if a := w.do(method, "/orders", strings.NewReader("abc")); a.body != "2" {
				t.Fatalf("after the peer closed its kept connection: %+v", a)
			}
			if s := w.state("orders")[0]; s.Fails != 0 {
				t.Errorf("counted against the peer: %+v", s)
			}
		})
	}
}

func readRequest(c net.Conn) {
	buf := make([]byte, 4096)
	n, _ := c.Read(buf)
	for bytes.Contains(buf[:n], []byte("Content-Length: 3")) && !bytes.HasSuffix(buf[:n], []byte("abc")) {
		m, err := c.Read(buf[n:])
		if err != nil {
			return
		}
		n += m
	}
}

// TestReadThenClosed: a kept connection whose peer read the request before it closed proves nothing, so a POST is not
// sent twice.
func TestReadThenClosed(t *testing.T) {
	w := newWorld(t, nil)
	var requests atomic.Int32
	addr := rawBackend(t, func(_ int, c net.Conn) {
		readRequest(c)
		requests.Add(1)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")
		readRequest(c)
		requests.Add(1)
	})
	w.set("orders", instance("a", addr), instance("b", addr))
	w.apply()
	w.do("POST", "/orders", strings.NewReader("abc"))
	w.do("POST", "/orders", strings.NewReader("abc"))
	if a := w.do("POST", "/orders", strings.NewReader("abc")); a.status != 502 {
		t.Errorf("%+v", a)
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("the backend read %d requests, want 3", n)
	}
}

// TestKilledBackend: kill -9 of one of three under load, and no GET fails.
func TestKilledBackend(t *testing.T) {
	w := newWorld(t, nil)
	slow := func(name string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(2 * time.Millisecond):
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(rw, name)
		}
	}
	a, b, c := newBackend(t, "a", slow("a")), newBackend(t, "b", slow("b")), newBackend(t, "c", slow("c"))
	w.set("orders", instance("a", a.addr()), instance("b", b.addr()), instance("c", c.addr()))
	w.apply()
	const clients, each = 24, 60
	var failed atomic.Int32
	var first sync.Once
	var wg sync.WaitGroup
	half := make(chan struct{})
	var served atomic.Int32
	for range clients {
		wg.Go(func() {
			for range each {
				if got, err := w.try("GET", "/orders", nil); err != nil || got.status != 200 {
					failed.Add(1)
					first.Do(func() { t.Errorf("first failure: %+v, %v", got, err) })
				}
				if served.Add(1) == clients*each/3 {
					close(half)
				}
			}
		})
	}
	<-half
	b.kill()
	wg.Wait()
	if n := failed.Load(); n != 0 {
		t.Errorf("%d of %d GETs failed", n, clients*each)
	}
	if s := w.state("orders"); s[1].Fails == 0 || s[0].Conns+s[1].Conns+s[2].Conns != 0 {
		t.Errorf("states after: %+v", s)
	}
}

func TestClientGoneIsNobodysFault(t *testing.T) {
	w := newWorld(t, nil)
	entered := make(chan struct{}, 1)
	hang := newBackend(t, "hang", func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	})
	other := newBackend(t, "other", nil)
	w.set("orders", instance("hang", hang.addr()), instance("other", other.addr()))
	w.apply()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "GET /orders HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	_ = c.Close()
	eventually(t, "the attempt ends", func() bool { return w.state("orders")[0].Conns == 0 })
	if s := w.state("orders"); s[0].Fails != 0 || other.got.Load() != 0 {
		t.Errorf("state %+v, retries %d", s[0], other.got.Load())
	}
}

// TestAttemptEndsBeforeTheAnswerDoes: with max_conns 1 a client's next request, sent the moment it has the answer, must
// find the peer free.
func TestAttemptEndsBeforeTheAnswerDoes(t *testing.T) {
	w := newWorld(t, nil)
	big := strings.Repeat("x", 300<<10)
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/orders/chunked" {
			_ = http.NewResponseController(rw).Flush()
		}
		_, _ = io.WriteString(rw, big)
	})
	in := instance("b", b.addr())
	in.MaxConns = 1
	w.set("orders", in)
	w.apply()
	for range 200 {
		for _, path := range []string{"/orders", "/orders/chunked"} {
			if a := w.get(path); a.status != 200 || len(a.body) != len(big) {
				t.Fatalf("%d %.60q", a.status, a.body)
			}
		}
	}
}

func TestMaxConnsIsRespected(t *testing.T) {
	w := newWorld(t, nil)
	entered, release := make(chan struct{}), make(chan struct{})
	b := newBackend(t, "b", func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-release })
	in := instance("b", b.addr())
	in.MaxConns = 1
	w.set("orders", in)
	w.apply()
	done := make(chan answer)
	go func() { a, _ := w.try("GET", "/orders", nil); done <- a }()
	<-entered
	if a := w.get("/orders"); a.status != 503 || !strings.Contains(a.body, "connection limit") {
		t.Errorf("%+v", a)
	}
	close(release)
	if a := <-done; a.status != 200 {
		t.Errorf("%+v", a)
	}
}

// TestSlowUploadToADeadPeer: the answer must not wait for a body that nobody reads any more.
func TestSlowUploadToADeadPeer(t *testing.T) {
	w := newWorld(t, nil)
	addr := rawBackend(t, func(_ int, c net.Conn) { readHead(c) })
	w.set("orders", instance("b", addr))
	w.apply()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(c, "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc")
	got := make([]byte, 12)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "HTTP/1.1 502" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestBrokenUpload(t *testing.T) {
	w := newWorld(t, nil)
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	w.set("orders", instance("b", b.addr()), instance("c", b.addr()))
	w.apply()
	got := rawRequest(t, w.addr, "POST /orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n")
	if got.status != 400 {
		t.Errorf("%+v", got)
	}
	if s := w.state("orders"); s[0].Fails+s[1].Fails != 0 {
		t.Errorf("the client's fault was counted against a peer: %+v", s)
	}
}

// TestSilentClientWhileTheAnswerTakesLong: the time limit for a body is over with the body.
func TestSilentClientWhileTheAnswerTakesLong(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Engine = front.Settings{ClientBody: 300 * time.Millisecond, ClientSend: 300 * time.Millisecond, ClientHeader: 300 * time.Millisecond}
	})
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-time.After(1200 * time.Millisecond):
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(rw, "done")
	})
	w.set("orders", instance("b", b.addr()))
	w.apply()
	for _, method := range []string{"GET", "POST"} {
		if a, err := w.try(method, "/orders", strings.NewReader("abc")); err != nil || a.body != "done" {
			t.Errorf("%s: %+v, %v", method, a, err)
		}
	}
}

// TestClientThatStopsSending is cut off, and nobody else is blamed.
func TestClientThatStopsSending(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Engine = front.Settings{ClientBody: 50 * time.Millisecond} })
	b := newBackend(t, "b", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	w.set("orders", instance("b", b.addr()), instance("c", b.addr()))
	w.apply()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(c, "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc")
	got, err := io.ReadAll(c)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Error("the connection is not closed")
	}
	if bytes.HasPrefix(got, []byte("HTTP/1.1 2")) {
		t.Errorf("half a request was answered with %q", got)
	}
	if s := w.state("orders"); s[0].Fails+s[1].Fails+s[0].Conns+s[1].Conns != 0 {
		t.Errorf("%+v", s)
	}
}
