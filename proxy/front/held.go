package front

import (
	"errors"
	"fmt"
	"io"

	"github.com/upstrand/upstrand/proxy/forward"
)

// held is a body that came whole with its head. It can be read as often as wanted.
type held struct {
	data    []byte
	at      int
	most    int64 // bytes that it may have; 0: no limit
	trailer []forward.Field
}

// Read is forward.Source's.
func (b *held) Read(p []byte) (int, error) {
	if b.most > 0 && int64(len(b.data)) > b.most {
		return 0, fmt.Errorf("%w: more than %d bytes", forward.ErrTooLarge, b.most)
	}
	n := copy(p, b.data[b.at:])
	if b.at += n; b.at == len(b.data) {
		return n, io.EOF
	}
	return n, nil
}

// Trailer is forward.Source's.
func (b *held) Trailer() []forward.Field { return b.trailer }

// Rewind is forward.Source's.
func (b *held) Rewind() error {
	b.at = 0
	return nil
}

// Rewindable is forward.Source's.
func (b *held) Rewindable() bool { return true }

// Hold is forward.Holder's.
func (b *held) Hold(limit int64) (int64, error) {
	if limit > 0 {
		b.most = limit
	}
	if _, err := b.Read(nil); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return int64(len(b.data)), nil
}

// Keep is forward.Keeper's.
func (b *held) Keep(int64) {}

// Limit is forward.Limiter's.
func (b *held) Limit(bytes int64) { b.most = bytes }

// Whole tells that no Read waits.
func (b *held) Whole() bool { return true }
