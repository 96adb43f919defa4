package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/upstrand/upstrand/deploy/bench/poll"
)

// shake makes a TLS connection of a socket that does not block.
func shake(fd int, p plan) (*tls.Conn, error) {
	protocol := "http/1.1"
	if p.mode == modeH2 {
		protocol = "h2"
	}
	conf := &tls.Config{ServerName: p.host, InsecureSkipVerify: true, NextProtos: []string{protocol}} // it is measured, not trusted
	s := &stream{fd: fd, until: time.Now().Add(5 * time.Second)}
	c := tls.Client(s, conf)
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	s.until = time.Time{}
	if got := c.ConnectionState().NegotiatedProtocol; got != protocol && (got != "" || protocol == "h2") {
		return nil, fmt.Errorf("the proxy chose the protocol %q, wanted %s", got, protocol)
	}
	return c, nil
}

// stream is a socket as crypto/tls wants it. Read gives errAgain when nothing is there, after which crypto/tls goes on where it was, as it does
// after all errors that say that they are temporary.
type stream struct {
	net.Conn // nil: nothing else is asked of it
	fd       int
	until    time.Time // as long as it is set, Read waits, and fails when it has come
}

func (s *stream) Read(b []byte) (int, error) {
	n, again, err := poll.Read(s.fd, b)
	for ; again && !s.until.IsZero(); n, again, err = poll.Read(s.fd, b) {
		if time.Now().After(s.until) {
			return 0, os.ErrDeadlineExceeded
		}
		runtime.Gosched()
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	switch {
	case again:
		return 0, errAgain
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return n, err
}

// Write waits without sleeping for what there is no room for.
func (s *stream) Write(b []byte) (int, error) {
	for done := 0; ; {
		n, again, err := poll.Write(s.fd, b[done:])
		if done += n; err != nil || done == len(b) {
			return done, err
		}
		if again {
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
}

func (s *stream) SetWriteDeadline(time.Time) error { return nil }
func (s *stream) Close() error                     { return nil }

type temporary struct{}

func (temporary) Error() string   { return "nothing is there, now" }
func (temporary) Timeout() bool   { return true }
func (temporary) Temporary() bool { return true }

var errAgain net.Error = temporary{}

// write writes to the connection, plain or not.
func (c *conn) write(b []byte) (n int, again bool, err error) {
	switch {
	case len(b) == 0:
		return 0, false, nil
	case c.tls != nil:
		return outcome(c.tls.Write(b))
	}
	return poll.Write(c.fd, b)
}

// outcome makes of crypto/tls's results those of package poll.
func outcome(n int, err error) (int, bool, error) {
	switch {
	case err == nil, n > 0:
		return n, false, nil
	case errors.Is(err, errAgain):
		return 0, true, nil
	case err == io.EOF:
		return 0, false, nil
	}
	return 0, false, err
}
