package forward

import (
	"errors"
	"io"
	"sync"

	"github.com/upstrand/upstrand/proxy/balance"
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
func (x *Exchange) copyBody(b Backend, pass *balance.Pass, head []Field, length int64) {
	if length > smallBuffer {
		buf := largeBuffers.Get().(*[largeBuffer]byte)
		defer largeBuffers.Put(buf)
		x.copyThrough(b, pass, head, length, buf[:])
		return
	}
	buf := smallBuffers.Get().(*[smallBuffer]byte)
	defer smallBuffers.Put(buf)
	x.copyThrough(b, pass, head, length, buf[:])
}

func (x *Exchange) copyThrough(b Backend, pass *balance.Pass, head []Field, length int64, buf []byte) {
	body, try := b.Body(), x.last()
	for {
		n, err := body.Read(buf)
		x.waited()
		if try != nil {
			try.Length += int64(n)
		}
		if err != nil {
			x.succeed(b, pass)
			x.conclude(body, head, buf[:n], err)
			return
		}
		if x.Client.Write(buf[:n]) != nil {
			x.lost(b, pass)
			return
		}
		x.out.Bytes += int64(n)
		if length -= int64(n); length < spliceFrom {
			continue
		}
		moved, ended := x.spliceBody(b, pass, body)
		if ended {
			return
		}
		if length -= moved; moved == 0 {
			length = 0 // it can't be done: it is not tried again
		}
	}
}

// conclude gives the client the last bytes, in one with the end if it can, or cuts it off when err is none of an end.
func (x *Exchange) conclude(body Source, head []Field, last []byte, err error) {
	if err != io.EOF && !errors.Is(err, io.EOF) {
		if len(last) == 0 || x.Client.Write(last) == nil {
			x.out.Bytes += int64(len(last))
		}
		x.cutShort(err)
		return
	}
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
func (x *Exchange) cork(b Backend) {
	if at, ok := b.(Ready); !ok || !at.Ready() {
		return
	}
	if c, ok := x.Client.(Corker); ok {
		c.Cork()
	}
}
