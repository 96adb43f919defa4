package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// slowServer has limits of a second.
func slowServer(listen, backend string) string {
	return fmt.Sprintf(`
server {
  listen %s;
  client_header_timeout 1s;
  client_body_timeout 1s;
  send_timeout 1s;
  keepalive_timeout 1s;
  client_max_body_size 200m;
  proxy_read_timeout 1s;
  proxy_next_upstream off;
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  location / { proxy_pass http://%s; }
  location /stream { proxy_request_buffering off; proxy_pass http://%[2]s; }
}
`, listen, backend)
}

// slowLane is the program with a lane of slowServer.
func slowLane(t *testing.T) (*program, *Lane) {
	t.Helper()
	needsProgram(t)
	b, err := NewBackend()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	l := &Lane{Addr: freeAddr(t), Backend: b}
	return start(t, slowServer(l.Addr, b.Addr), l.Addr), l
}

// late is how long after its limit a connection may still be open: the sweeper's tick, and a slow machine.
const late = 1500 * time.Millisecond

// trickle writes a text a byte at a time until that fails, and gives how long that went on.
func trickle(c *Client, text string, pause time.Duration) time.Duration {
	began := time.Now()
	for i := range text {
		if _, err := c.Write([]byte{text[i]}); err != nil {
			break
		}
		time.Sleep(pause)
	}
	return time.Since(began)
}

// endOf waits for the end of a connection and gives how long that took, and what came before.
func endOf(t *testing.T, c *Client) (time.Duration, string) {
	t.Helper()
	began := time.Now()
	rest, err := io.ReadAll(c.In)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is not closed")
	}
	return time.Since(began), string(rest)
}

func within(t *testing.T, what string, took, least, most time.Duration) {
	t.Helper()
	if took < least || took > most {
		t.Errorf("%s after %v, want %v to %v", what, took.Round(10*time.Millisecond), least, most)
	}
}

// TestSlowHeads: a head has a second, however its bytes come; hundreds of such clients cost little, and others are served.
func TestSlowHeads(t *testing.T) {
	p, l := slowLane(t)
	memory, files := p.memory(), p.files()
	var wg sync.WaitGroup
	for range 400 {
		c, err := Dial(l.Addr, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer c.Close()
			go trickle(c, "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 200*time.Millisecond)
			took, _ := endOf(t, c)
			within(t, "a slow head ends", took, 500*time.Millisecond, time.Second+late)
		})
	}
	time.Sleep(300 * time.Millisecond)
	if answer, _ := exchange(t, l, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); answer.Status() != 200 {
		t.Errorf("another client meanwhile: %+v", answer)
	}
	if more := p.memory() - memory; more > 20<<20 {
		t.Errorf("400 slow heads cost %d MB", more>>20)
	}
	wg.Wait()
	back(t, "files of the program", p.files, files+2) // and a kept connection to the backend
	if got, _ := l.Backend.Take(); len(got) > 0 {
		t.Errorf("the backend got %d requests", len(got))
	}
}

// TestSlowBodies: a second without a byte is the end, with 408; bytes now and then are none. Nothing of it is taken for whole.
func TestSlowBodies(t *testing.T) {
	_, l := slowLane(t)
	for _, path := range []string{"/", "/stream"} {
		c, err := Dial(l.Addr, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
		took, said := endOf(t, c)
		within(t, "a silent body ends", took, 500*time.Millisecond, time.Second+late)
		if said != "" && !strings.HasPrefix(said, "HTTP/1.1 408 ") {
			t.Errorf("%s: %q", path, said)
		}
		_ = c.Close()
		got, _ := l.Backend.Take()
		for _, m := range got {
			if m.Whole {
				t.Errorf("%s: the backend takes it for whole: %+v", path, m)
			}
		}
		c, err = Dial(l.Addr, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
		trickle(c, "0123456789", 250*time.Millisecond)
		if m, err := ReadAnswer(c.In, false); err != nil || m.Status() != 200 {
			t.Errorf("%s: a body that comes slowly and steadily: %+v, %v", path, m, err)
		}
		_ = c.Close()
		_, _ = l.Backend.Take()
	}
}

// TestSlowReaders: who takes nothing for a second is cut off, whatever the answer's size, and what it did not take is not held; who
// takes a little all the time is not.
func TestSlowReaders(t *testing.T) {
	p, l := slowLane(t)
	const size, many = 64 << 20, 20
	over := make(chan time.Duration, many+1)
	l.Backend.Say(func(m *Message, c net.Conn, in *bufio.Reader) bool {
		if m.ReadRequestBody(in) != nil {
			return false
		}
		began := time.Now()
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
		piece := make([]byte, 1<<20)
		for range size / len(piece) {
			if _, err := c.Write(piece); err != nil {
				over <- time.Since(began)
				return false
			}
		}
		return true
	})
	memory, files := p.memory(), p.files()
	request := "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for range many {
		c, err := Dial(l.Addr, 15*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, request)
	}
	steady, err := Dial(l.Addr, 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer steady.Close()
	_, _ = io.WriteString(steady, request)
	most := 0
	for range 20 {
		if _, err := io.CopyN(io.Discard, steady.In, 400<<10); err != nil {
			t.Fatalf("a slow and steady reader is cut off: %v", err)
		}
		most = max(most, p.memory()-memory)
		time.Sleep(150 * time.Millisecond)
	}
	if most > 40<<20 {
		t.Errorf("%d answers of 64 MB that nobody takes cost %d MB", many, most>>20)
	}
	for range many {
		select {
		case took := <-over:
			within(t, "a reader that takes nothing ends", took, 900*time.Millisecond, 2*time.Second+late)
		case <-time.After(5 * time.Second):
			t.Fatal("a reader that takes nothing is not cut off")
		}
	}
	_ = steady.Close()
	back(t, "files of the program", p.files, files+2)
}

// TestIdleConnections: a kept connection has a second, and so has one that never said anything.
func TestIdleConnections(t *testing.T) {
	_, l := slowLane(t)
	c, err := Dial(l.Addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if m, err := ReadAnswer(c.In, false); err != nil || m.Status() != 200 {
		t.Fatalf("%+v, %v", m, err)
	}
	took, said := endOf(t, c)
	within(t, "a kept connection ends", took, 500*time.Millisecond, time.Second+late)
	silent, err := Dial(l.Addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	took, more := endOf(t, silent)
	within(t, "a silent one ends", took, 500*time.Millisecond, time.Second+late)
	if said != "" || more != "" && !strings.HasPrefix(more, "HTTP/1.1 408 ") {
		t.Errorf("%q, %q", said, more)
	}
}

// TestSlowBackends: a second without a byte is 504 before the answer, and a cut within it.
func TestSlowBackends(t *testing.T) {
	_, l := slowLane(t)
	for _, said := range []string{"", "HTTP/1.1 200 OK\r\nConte", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"} {
		l.Backend.Say(func(m *Message, c net.Conn, in *bufio.Reader) bool {
			_ = m.ReadRequestBody(in)
			_, _ = io.WriteString(c, said)
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			_, _ = in.ReadByte() // until the proxy gives up
			return false
		})
		c, err := Dial(l.Addr, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		m, err := ReadAnswer(c.In, false)
		within(t, "a silent backend is given up", time.Since(began), 500*time.Millisecond, time.Second+late)
		if cut := err != nil && m.Status() == 200; !cut && m.Status() != 504 {
			t.Errorf("%q: %+v, %v", said, m, err)
		}
		_ = c.Close()
	}
}
