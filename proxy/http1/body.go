package http1

import (
	"bytes"
	"errors"
	"io"

	"github.com/upstrand/upstrand/proxy/forward"
)

var (
	errNotHeld = errors.New("an answer is not held")
	errNoBody  = errors.New("there is no body before the final head, nor in a tunnel")
)

// Body is forward.Backend's.
func (a *attempt) Body() forward.Source { return answerBody{a} }

// answerBody is the body of an attempt's answer.
type answerBody struct{ a *attempt }

// Read gives io.EOF with the last bytes when that is known then. At the end the connection is given back.
func (b answerBody) Read(p []byte) (int, error) {
	a := b.a
	switch {
	case a.failed != nil:
		return 0, a.failed
	case a.ended:
		return 0, io.EOF
	case !a.final || a.tunnel:
		return 0, &forward.Error{Class: forward.OnError, Err: errNoBody}
	case len(p) == 0:
		return 0, nil
	}
	switch a.framing {
	case byLength:
		return a.readCounted(p)
	case byChunks:
		return a.readChunks(p)
	}
	return a.readToClose(p)
}

func (b answerBody) Trailer() []forward.Field {
	if b.a.framing != byChunks {
		return nil
	}
	return forward.FieldsOf(b.a.chunks.Trailer())
}

// AtHand is forward.AtHand's. The connection is given back as by Read, while the bytes stay where they are until Release.
func (b answerBody) AtHand() (rest []byte, ok bool) {
	a := b.a
	if a.failed != nil || a.ended || !a.final {
		return nil, false
	}
	at := a.buf[a.r:a.w]
	switch {
	case a.framing == byLength && int64(len(at)) >= a.left:
		rest = at[:a.left]
		a.r += len(rest)
		a.left = 0
	case a.framing == byChunks && bytes.HasSuffix(at, lastChunk):
		if rest, ok = a.chunksAtHand(at); !ok {
			return nil, false
		}
	default:
		return nil, false
	}
	a.finish()
	return rest, true
}

// chunksAtHand takes all that is left of a body in chunks out of the bytes at hand. It goes behind them, so that nothing has
// happened when that was not all after all.
func (a *attempt) chunksAtHand(at []byte) ([]byte, bool) {
	to, chunks := a.buf[a.w:], a.chunks
	if len(to) < len(at) {
		return nil, false
	}
	n, took, err := chunks.Decode(to, at)
	if err != nil || !chunks.Done() {
		return nil, false
	}
	a.chunks = chunks
	a.r += took
	return to[:n], true
}

var lastChunk = []byte("0\r\n\r\n")

// Ready is forward.Ready's. Of a body in chunks the line before the first one is there, and something behind it: data, or
// all of the end.
func (a *attempt) Ready() bool {
	at := a.buf[a.r:a.w]
	if a.framing != byChunks || len(at) == 0 {
		return len(at) > 0
	}
	if at[0] == '0' {
		return bytes.HasSuffix(at, emptyLine)
	}
	line := bytes.IndexByte(at, '\n')
	return line >= 0 && line+1 < len(at)
}

var emptyLine = []byte("\r\n\r\n")

func (b answerBody) Rewind() error    { return errNotHeld }
func (b answerBody) Rewindable() bool { return false }

// readCounted asks for more than is left, so that what came behind the body is seen.
func (a *attempt) readCounted(p []byte) (int, error) {
	var n int
	if a.r < a.w {
		n = copy(p[:min(int64(len(p)), a.left)], a.buf[a.r:a.w])
		a.r += n
	} else {
		var err error
		if n, err = a.read(p, a.opener.wire.Read); err != nil {
			return 0, a.cutOff(err)
		}
		if int64(n) > a.left {
			n, a.keep = int(a.left), false
		}
	}
	if a.left -= int64(n); a.left > 0 {
		return n, nil
	}
	a.finish()
	return n, io.EOF
}

func (a *attempt) readToClose(p []byte) (int, error) {
	n, err := a.next(p)
	if errors.Is(err, io.EOF) {
		a.finish()
		return 0, io.EOF
	}
	if err != nil {
		return 0, a.lost(err)
	}
	return n, nil
}

// next gives what is in the buffer, or reads.
func (a *attempt) next(p []byte) (int, error) {
	if a.r < a.w {
		n := copy(p, a.buf[a.r:a.w])
		a.r += n
		return n, nil
	}
	return a.read(p, a.opener.wire.Read)
}

// readChunks reads into p what is on the wire and takes the chunks apart in place.
func (a *attempt) readChunks(p []byte) (int, error) {
	for {
		var n int
		var err error
		if a.r < a.w {
			var took int
			n, took, err = a.chunks.Decode(p, a.buf[a.r:a.w])
			a.r += took
		} else {
			if n, err = a.read(p, a.opener.wire.Read); err != nil {
				return 0, a.cutOff(err)
			}
			src := p[:n]
			var took int
			n, took, err = a.chunks.Decode(p, src)
			a.keep = a.keep && took == len(src)
		}
		switch {
		case err != nil:
			return n, a.fail(forward.OnInvalidHeader, err)
		case a.chunks.Done():
			a.finish()
			return n, io.EOF
		case n > 0:
			return n, nil
		}
	}
}

// cutOff is the error of a body that did not come to its end.
func (a *attempt) cutOff(err error) error {
	switch {
	case errors.Is(err, errNothing):
		return err
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return a.lost(err)
}

// maxDrain is what is read of an answer that nobody wants, to keep the connection.
const maxDrain = 64 << 10

var errNothing = errors.New("nothing is at hand")

// drain reads the rest of an answer if it is at hand, and tells whether that was all of it.
func (a *attempt) drain() bool {
	if a.ended || !a.keep || a.framing == untilClose || a.framing == byLength && a.left > maxDrain || a.sender != nil && !a.sender.finished() {
		return false
	}
	a.atHand = true
	defer func() { a.atHand = false }()
	buf := larges.Get().(*[largeSize]byte)
	defer larges.Put(buf)
	for total := 0; total <= maxDrain; {
		n, err := answerBody{a}.Read(buf[:])
		total += n
		if err != nil {
			return a.conn == nil
		}
	}
	return false
}
