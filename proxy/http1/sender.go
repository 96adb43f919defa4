package http1

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// stoppable is a forward.Source whose Read can be given up: then it takes no byte away from who reads it next.
type stoppable interface {
	ReadUntil(p []byte, stop <-chan struct{}) (int, error)
}

// whole is a forward.Source that can tell that all of the body is at hand, so that Read never waits.
type whole interface{ Whole() bool }

var (
	errShort = errors.New("the body ended before its length")
	errLong  = errors.New("the body goes on after its length")
)

// sender sends a request's body, or what is left of a request, while its attempt may be waiting for the answer.
type sender struct {
	conn    *conn
	send    time.Duration
	rest    []byte // goes first
	body    forward.Source
	left    int64 // of the length
	chunked bool
	head    []forward.Field

	stop    chan struct{}
	done    chan struct{}
	ended   func(*sender) // called before done is closed
	final   atomic.Bool   // the last write is going on or over
	out     atomic.Int64
	failure *forward.Error // of the client's side, or of a peer that takes nothing; valid when done
	whole   bool           // all was sent; valid when done
}

func (s *sender) run() {
	defer close(s.done)
	err := s.sendAll()
	var e *forward.Error
	switch {
	case err == nil:
		s.whole = true
	case errors.As(err, &e):
		s.failure = e
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.failure = &forward.Error{Class: forward.OnTimeout, Err: err}
	}
	s.ended(s)
}

func (s *sender) sendAll() error {
	if len(s.rest) > 0 {
		if err := s.write(s.rest); err != nil {
			return err
		}
	}
	if s.body == nil {
		return nil
	}
	buf := larges.Get().(*[largeSize]byte)
	defer larges.Put(buf)
	for {
		n, err := s.read(buf[chunkHead : largeSize-chunkTail])
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		var out []byte
		if s.chunked {
			out, err = s.chunk(buf, n, end)
		} else {
			out, end, err = s.counted(buf, n, end)
		}
		if err != nil {
			return err
		}
		if end {
			s.final.Store(true)
		}
		if len(out) > 0 {
			if err := s.write(out); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// read takes from the client's side. Its errors, but for the end, are the client's.
func (s *sender) read(p []byte) (n int, err error) {
	if src, ok := s.body.(stoppable); ok {
		n, err = src.ReadUntil(p, s.stop)
	} else {
		n, err = s.body.Read(p)
	}
	select {
	case <-s.stop:
		return 0, errStopped
	default:
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, &forward.Error{Class: forward.ClientBody, Err: err}
	}
	return n, err
}

var errStopped = errors.New("the attempt is over")

// counted checks data against the length. The end is told as soon as the length is reached.
func (s *sender) counted(buf *[largeSize]byte, n int, end bool) ([]byte, bool, error) {
	if int64(n) > s.left {
		return nil, false, &forward.Error{Class: forward.ClientBody, Err: errLong}
	}
	if s.left -= int64(n); end && s.left > 0 {
		return nil, false, &forward.Error{Class: forward.ClientBody, Err: fmt.Errorf("%w, %d bytes too soon", errShort, s.left)}
	}
	return buf[chunkHead : chunkHead+n], end || s.left == 0, nil
}

// chunk puts data into its chunk, in place; with the last data goes the end.
func (s *sender) chunk(buf *[largeSize]byte, n int, end bool) ([]byte, error) {
	from, to := chunkHead, chunkHead+n
	if n > 0 {
		var size [chunkHead]byte
		line := append(strconv.AppendInt(size[:0], int64(n), 16), "\r\n"...)
		from -= copy(buf[chunkHead-len(line):], line)
		to += copy(buf[to:], "\r\n")
	}
	out := buf[from:to]
	if !end {
		return out, nil
	}
	out = append(out[:len(out):len(out)], "0\r\n"...)
	out, err := appendTrailer(out, s.body.Trailer(), s.head)
	if err != nil {
		return nil, &forward.Error{Class: forward.ClientBody, Err: err}
	}
	return out, nil
}

func (s *sender) write(b []byte) error {
	n, err := s.conn.Write(b, s.send)
	s.out.Add(int64(n))
	return err
}

// finished waits for a sender that has all but done, and tells whether the whole request was sent.
func (s *sender) finished() bool {
	select {
	case <-s.done:
		return s.whole
	default:
	}
	if !s.final.Load() {
		return false
	}
	t := time.NewTimer(lastWrite)
	defer t.Stop()
	select {
	case <-s.done:
		return s.whole
	case <-t.C:
		return false
	}
}

// lastWrite is how long a connection whose answer is whole may take to have the last of its request written.
const lastWrite = 50 * time.Millisecond

// end stops the sender and waits for it. The connection was closed before, so that a write ends; a read from a source
// that can't be stopped is waited for.
func (s *sender) end() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	<-s.done
}
