package wire

import (
	"bufio"
	"io"
	"net"
	"sync"
	"time"
)

// OK is what a Backend answers when nothing else was asked for.
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// Backend takes requests over raw connections, one after the other on each, and keeps what came.
type Backend struct {
	Addr string

	ln   net.Listener
	open sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	got    []*visit // since the last Take, in the order in which the heads came
	busy   int      // requests that have begun to come and are not done with
	speak  Speak
	closed bool
}

// visit is a request, from when its head has come.
type visit struct {
	m      *Message
	method string
	done   bool // nobody writes to m any more
}

// Speak does what a backend does with a request whose head has come, and tells whether the connection goes on. It reads the body
// itself.
type Speak func(m *Message, c net.Conn, in *bufio.Reader) (more bool)

// NewBackend listens on a loopback port of its own.
func NewBackend() (*Backend, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &Backend{Addr: ln.Addr().String(), ln: ln, conns: map[net.Conn]bool{}}
	b.open.Go(b.accept)
	return b, nil
}

// Say settles what is done with requests from now on. Nil: the body is read, then OK is answered.
func (b *Backend) Say(s Speak) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.speak = s
}

// Take waits until no request is on its way, a second at most, and gives what came since the last call. Settled is false when it
// waited in vain.
func (b *Backend) Take() (got []*Message, settled bool) {
	for end := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		busy := b.busy
		b.mu.Unlock()
		if settled = busy == 0; settled || time.Now().After(end) {
			break
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range b.got {
		if v.done {
			got = append(got, v.m)
		}
	}
	b.got = nil
	return got, settled
}

// Busy tells whether the head of a request has come that is not done with.
func (b *Backend) Busy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.got) > 0 && !b.got[len(b.got)-1].done
}

// Method is that of the request with that number since the last Take; empty: none came.
func (b *Backend) Method(number int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if number >= len(b.got) {
		return ""
	}
	return b.got[number].method
}

// Cut closes all connections.
func (b *Backend) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		_ = c.Close()
	}
}

// Conns is how many connections are open.
func (b *Backend) Conns() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.conns)
}

// Close ends it and waits for that.
func (b *Backend) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	_ = b.ln.Close()
	b.Cut()
	b.open.Wait()
}

func (b *Backend) accept() {
	for {
		c, err := b.ln.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		if b.closed {
			_ = c.Close()
		}
		b.conns[c] = true
		b.mu.Unlock()
		b.open.Go(func() {
			b.serve(c)
			_ = c.Close()
			b.mu.Lock()
			delete(b.conns, c)
			b.mu.Unlock()
		})
	}
}

func (b *Backend) serve(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		if _, err := in.Peek(1); err != nil {
			return
		}
		b.mu.Lock()
		b.busy++
		speak := b.speak
		b.mu.Unlock()
		if speak == nil {
			speak = Answer(OK)
		}
		m, err := ReadRequestHead(in)
		v := &visit{m: m, method: m.Method()}
		b.mu.Lock()
		b.got = append(b.got, v)
		b.mu.Unlock()
		more := err == nil && speak(m, c, in)
		b.mu.Lock()
		v.done = true
		b.busy--
		b.mu.Unlock()
		if !more {
			return
		}
	}
}

// Answer reads the request's body and writes a text.
func Answer(text string) Speak {
	return func(m *Message, c net.Conn, in *bufio.Reader) bool {
		if m.ReadRequestBody(in) != nil {
			return false
		}
		_, err := io.WriteString(c, text)
		return err == nil
	}
}
