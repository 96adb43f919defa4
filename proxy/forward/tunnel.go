package forward

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// tinyBuffer is what a tunnel that is silent, or says little, keeps for each direction: most are that most of the time.
const tinyBuffer = 2 << 10

var tinyBuffers = sync.Pool{New: func() any { return new([tinyBuffer]byte) }}

// tunnelRoom is memory for one direction of a tunnel: little, and more as long as reads fill it.
type tunnelRoom struct {
	tiny  *[tinyBuffer]byte
	small *[smallBuffer]byte // nil: not now
}

// next is what to read into.
func (t *tunnelRoom) next() []byte {
	if t.small != nil {
		return t.small[:]
	}
	if t.tiny == nil {
		t.tiny = tinyBuffers.Get().(*[tinyBuffer]byte)
	}
	return t.tiny[:]
}

// read learns how much came, when what came is not needed any more.
func (t *tunnelRoom) read(n int) {
	switch {
	case t.small == nil && n == tinyBuffer:
		t.small = smallBuffers.Get().(*[smallBuffer]byte)
	case t.small != nil && n <= tinyBuffer:
		t.letGo()
	}
}

func (t *tunnelRoom) letGo() {
	smallBuffers.Put(t.small)
	t.small = nil
}

func (t *tunnelRoom) free() {
	if t.small != nil {
		t.letGo()
	}
	if t.tiny != nil {
		tinyBuffers.Put(t.tiny)
		t.tiny = nil
	}
}

// bothWays copies both ways. A side that ends, as TCP lets it, ends that direction alone; a side that fails ends both. Both
// are closed when it returns. It gives the bytes that went to the front.
func bothWays(front, back io.ReadWriteCloser) int64 {
	var over atomic.Int32
	run := func(to io.Writer, from io.Reader) int64 {
		n, err := pour(to, from)
		if err != nil || over.Add(1) == 2 || !halve(to) {
			_ = front.Close()
			_ = back.Close()
		}
		return n
	}
	var other sync.WaitGroup
	other.Go(func() { run(back, front) })
	n := run(front, back)
	other.Wait()
	return n
}

// halve ends one direction, and tells whether the other may go on.
func halve(to io.Writer) bool {
	c, ok := to.(interface{ CloseWrite() error })
	return ok && c.CloseWrite() == nil
}

// pour copies until one side ends, and gives how many bytes were written. That from has no more is no error.
func pour(to io.Writer, from io.Reader) (sum int64, err error) {
	var room tunnelRoom
	defer room.free()
	for {
		buf := room.next()
		n, err := from.Read(buf)
		if n > 0 {
			wrote, failed := to.Write(buf[:n])
			if sum += int64(wrote); failed != nil {
				return sum, failed
			}
		}
		if errors.Is(err, io.EOF) {
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
		room.read(n)
	}
}
