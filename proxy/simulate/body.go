package simulate

import (
	"errors"
	"io"

	"github.com/upstrand/upstrand/proxy/forward"
)

// content is a request's body that can be read as often as one likes.
type content struct {
	bytes []byte
	at    int
	limit int64 // 0: none
}

func (c *content) Read(p []byte) (int, error) {
	if c.limit > 0 && int64(len(c.bytes)) > c.limit {
		return 0, forward.ErrTooLarge
	}
	n := copy(p, c.bytes[c.at:])
	if c.at += n; c.at == len(c.bytes) {
		return n, io.EOF
	}
	return n, nil
}

func (c *content) Trailer() []forward.Field { return nil }
func (c *content) Rewindable() bool         { return true }
func (c *content) Rewind() error            { c.at = 0; return nil }
func (c *content) Limit(n int64)            { c.limit = n }

// Hold is forward.Holder's: all of it is held anyway.
func (c *content) Hold(limit int64) (int64, error) {
	if n := int64(len(c.bytes)); limit <= 0 || n <= limit {
		return n, nil
	}
	return 0, forward.ErrTooLarge
}

// answerBody is the body of a virtual server's answer.
type answerBody struct {
	attempt *attempt
	text    string
	at      int
	err     error // at its end; io.EOF when it is whole
}

var errOnce = errors.New("an answer comes once")

func (b *answerBody) Read(p []byte) (int, error) {
	if b.at == 0 {
		if err := b.attempt.bodyComes(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.text[b.at:])
	b.attempt.in += int64(n)
	if b.at += n; b.at < len(b.text) {
		return n, nil
	}
	b.attempt.read = b.err == io.EOF
	return n, b.err
}

func (b *answerBody) Trailer() []forward.Field { return nil }
func (b *answerBody) Rewindable() bool         { return false }
func (b *answerBody) Rewind() error            { return errOnce }
