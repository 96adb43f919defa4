package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/upstrand/upstrand/deploy/bench/poll"
	"golang.org/x/sys/unix"
)

func main() {
	port := flag.Int("port", 0, "port on 127.0.0.1 to listen on")
	flag.Parse()
	debug.SetGCPercent(-1) // what it takes is taken once for each connection
	runtime.LockOSThread()
	if err := serve(*port); err != nil {
		fmt.Fprintln(os.Stderr, "origin:", err)
		os.Exit(1)
	}
}

// serve ends only with an error.
func serve(port int) error {
	door, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(door, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err := unix.Bind(door, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("listen on 127.0.0.1:%d: %w", port, err)
	}
	if err := unix.Listen(door, 4096); err != nil {
		return err
	}
	s := &server{door: door, conns: map[int32]*conn{}, answers: map[string][]byte{}, buf: make([]byte, 64<<10)}
	if s.poller, err = poll.New(); err != nil {
		return err
	}
	if err := s.poller.AddListener(door, int32(door)); err != nil {
		return err
	}
	for {
		if err := s.poller.Wait(-1, s.ready); err != nil {
			return err
		}
		for s.busy = true; s.busy; {
			s.busy = false
			if err := s.poller.Spin(awake, s.ready); err != nil {
				return err
			}
		}
	}
}

// awake is how long the backend looks for requests without sleeping after the last one.
const awake = 20 * time.Millisecond

type server struct {
	door    int
	poller  *poll.Poller
	conns   map[int32]*conn
	answers map[string][]byte // by path, head and body
	buf     []byte
	busy    bool // something came since it was set to false
}

// conn is one connection of a proxy. in and out are empty between requests.
type conn struct {
	in   []byte // start of a head that has not come completely
	skip int    // bytes of a request's body that are still to come
	next []byte // the answer to give after them
	out  []byte // what of an answer is still to be written
}

func (s *server) ready(id int32) {
	s.busy = true
	fd := int(id)
	if fd == s.door {
		s.accept()
		return
	}
	c := s.conns[id]
	if c == nil {
		return
	}
	if err := s.drive(fd, c); err != nil {
		if err != errEnd {
			fmt.Fprintln(os.Stderr, "origin: a connection is closed:", err)
		}
		delete(s.conns, id)
		_ = unix.Close(fd)
	}
}

func (s *server) accept() {
	for {
		fd, _, err := unix.Accept4(s.door, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return // nobody is there; anything worse shows as stalled connections
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		s.conns[int32(fd)] = &conn{}
		if err := s.poller.Add(fd, int32(fd)); err != nil {
			delete(s.conns, int32(fd))
			_ = unix.Close(fd)
		}
	}
}

// drive does what can be done without waiting.
func (s *server) drive(fd int, c *conn) error {
	if err := c.flush(fd); err != nil {
		return err
	}
	for {
		n, again, err := poll.Read(fd, s.buf)
		switch {
		case err != nil:
			return err
		case again:
			return nil
		case n == 0:
			return errEnd
		}
		if err := s.take(c, s.buf[:n]); err != nil {
			return err
		}
		if err := c.flush(fd); err != nil {
			return err
		}
		if n < len(s.buf) {
			return nil
		}
	}
}

func (c *conn) flush(fd int) error {
	for len(c.out) > 0 {
		n, again, err := poll.Write(fd, c.out)
		if err != nil || again {
			return err
		}
		c.out = c.out[n:]
	}
	return nil
}

// answer is made once for each path.
func (s *server) answer(path string) ([]byte, error) {
	if a, ok := s.answers[path]; ok {
		return a, nil
	}
	var size int
	if _, err := fmt.Sscanf(path, "/%d", &size); err != nil || size < 0 || size > 1<<30 {
		return nil, fmt.Errorf("path %q: allowed: / and the bytes of the answer's body, up to 1 GiB", path)
	}
	a := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Tue, 01 Dec 2026 00:00:00 GMT\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\nETag: \"0123456789\"\r\n\r\n", size)
	a = append(a, strings.Repeat("x", size)...)
	s.answers[path] = a
	return a, nil
}
