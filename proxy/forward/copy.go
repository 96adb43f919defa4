package forward

import (
	"errors"
	"io"
	"sync"
)

// Answers whose announced length is more than a small buffer holds go through a large one: their cost is the number of
// reads and writes.
const (
	smallBuffer = 32 << 10
	largeBuffer = 256 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

// copyBody passes the body on as it comes. The attempt ends before the write that completes the answer: else the
// client's next request could still see it open. A body that breaks off is cut off here too, so that the client sees it; for
// the peer it is a success, as in nginx: it had answered.
func (x *Exchange) copyBody(head []Field, length int64) {
	body := x.backend.Body()
	if at, ok := body.(AtHand); ok {
		if rest, all := at.AtHand(); all {
			if x.try != nil {
				x.try.Length = int64(len(rest))
			}
			x.succeed()
			x.end(body, head, rest)
			return
		}
	}
	x.copyBuffered(body, head, length)
}

func (x *Exchange) copyBuffered(body Source, head []Field, length int64) {
	if length > smallBuffer {
		buf := largeBuffers.Get().(*[largeBuffer]byte)
		defer largeBuffers.Put(buf)
		x.copyThrough(body, head, length, buf[:])
		return
	}
	buf := smallBuffers.Get().(*[smallBuffer]byte)
	defer smallBuffers.Put(buf)
	x.copyThrough(body, head, length, buf[:])
}

func (x *Exchange) copyThrough(body Source, head []Field, length int64, buf []byte) {
	for {
		n, err := body.Read(buf)
		x.waited()
		if x.try != nil {
			x.try.Length += int64(n)
		}
		if err != nil {
			x.succeed()
			x.conclude(body, head, buf[:n], err)
			return
		}
		if x.Client.Write(buf[:n]) != nil {
			x.lost()
			return
		}
		x.out.Bytes += int64(n)
		if length -= int64(n); length < spliceFrom {
			continue
		}
		moved, ended := x.spliceBody(body)
		if ended {
			return
		}
		if length -= moved; moved == 0 {
			length = 0 // it can't be done: it is not tried again
		}
	}
}

// conclude gives the client the last bytes, and the end, or cuts it off when err is none of an end.
func (x *Exchange) conclude(body Source, head []Field, last []byte, err error) {
	if err == io.EOF || errors.Is(err, io.EOF) {
		x.end(body, head, last)
		return
	}
	if len(last) == 0 || x.Client.Write(last) == nil {
		x.out.Bytes += int64(len(last))
	}
	x.cutShort(err)
}

// end gives the client the last bytes and the end, in one if it can.
func (x *Exchange) end(body Source, head []Field, last []byte) {
	if finishAt(x.Client, last, x.trailer(body.Trailer(), head)) != nil {
		x.out.Cause = "client_gone"
		x.Client.Abort()
		return
	}
	x.out.Bytes += int64(len(last))
}

// finishAt is Finish of a client, or Write and End of one that has none.
func finishAt(c Client, last []byte, trailer []Field) error {
	if f, ok := c.(Finisher); ok {
		return f.Finish(last, trailer)
	}
	if len(last) > 0 {
		if err := c.Write(last); err != nil {
			return err
		}
	}
	return c.End(trailer)
}

// cork lets a head wait for what is at hand of a body of unknown length; else it goes out at once.
func (x *Exchange) cork() {
	if at, ok := x.backend.(Ready); !ok || !at.Ready() {
		return
	}
	if c, ok := x.Client.(Corker); ok {
		c.Cork()
	}
}
