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

func (b answerBody) Trailer() []forward.Field { return forward.FieldsOf(b.a.chunks.Trailer()) }

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

func (a *attempt) readCounted(p []byte) (int, error) {
	if int64(len(p)) > a.left {
		p = p[:a.left]
	}
	n, err := a.next(p)
	if err != nil {
		return 0, a.cutOff(err)
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
			a.extra = a.extra || took < len(src)
		}
		switch {
		case err != nil:
			return n, a.fail(forward.OnInvalidHeader, err)
		case a.chunks.Done():
			a.keep = a.keep && !a.extra
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
