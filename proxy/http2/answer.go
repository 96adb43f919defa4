package http2

import (
	"errors"
	"io"

	"github.com/upstrand/upstrand/proxy/forward"
)

var (
	errNotHeld = errors.New("an answer is not held")
	errNoBody  = errors.New("there is no body before the final head")
)

// answer is the body of an attempt's answer.
type answer struct{ a *attempt }

// Read is forward.Source's.
func (b answer) Read(p []byte) (int, error) {
	a := b.a
	switch {
	case a.failed != nil:
		return 0, a.failed
	case a.ended:
		return 0, io.EOF
	case a.answer == nil:
		return 0, &forward.Error{Class: forward.OnError, Err: errNoBody}
	}
	a.reading.begin(a.opener.wire.Read)
	n, err := a.answer.Body.Read(p)
	a.reading.end()
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		a.ended, err = true, io.EOF
	default:
		err = a.lost(err)
	}
	return n, err
}

// Ready is forward.Ready's: the answer ended with its head, so that there is neither a body nor a trailer. Those of gRPC that
// say nothing but a status must reach the client in the same form.
func (a *attempt) Ready() bool {
	return a.answer != nil && a.answer.ContentLength == 0 && len(a.answer.Header["Content-Length"]) == 0
}

// Trailer is forward.Source's.
func (b answer) Trailer() []forward.Field {
	if b.a.answer == nil {
		return nil
	}
	return fieldsOf(nil, b.a.answer.Trailer)
}

// Rewind is forward.Source's.
func (b answer) Rewind() error { return errNotHeld }

// Rewindable is forward.Source's.
func (b answer) Rewindable() bool { return false }
