package body

import (
	"errors"
	"fmt"
	"io"

	"github.com/upstrand/upstrand/proxy/forward"
)

// Limit is forward.Limiter's.
func (s *Replay) Limit(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = bytes
}

// Hold is forward.Holder's: what does not fit into memory goes to a file that has no name. It is called at the first byte, by
// one goroutine, when nothing of the body was read or all that was can be read again; after it no Read waits for the client.
func (s *Replay) Hold(limit int64) (int64, error) {
	s.mu.Lock()
	if limit > 0 {
		s.most = limit
	}
	s.kept = -1
	if going := s.ready; going != nil { // the read of an attempt that is over: its bytes come before ours
		s.mu.Unlock()
		<-going
		s.mu.Lock()
	}
	most, end := s.most, s.end
	if s.done && end == nil {
		end = errClosed
	}
	s.mu.Unlock()
	if end == nil && most > 0 && s.length > most {
		return 0, fmt.Errorf("%w: %d bytes, and %d are allowed", forward.ErrTooLarge, s.length, most)
	}
	chunk := chunks.Get().(*[16 << 10]byte)
	defer chunks.Put(chunk)
	for end == nil {
		n, err := s.fromClient(chunk[:])
		s.mu.Lock()
		n, err = s.count(n, err)
		if keepErr := s.keep(chunk[:n]); keepErr != nil {
			err = keepErr
		}
		s.end, end = err, err
		s.mu.Unlock()
	}
	if !errors.Is(end, io.EOF) {
		return 0, end
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken, nil
}

// Keep is forward.Keeper's: beyond memory in a file that has no name, as long as not too much is kept by all requests
// together.
func (s *Replay) Keep(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept = bytes; bytes == 0 {
		s.kept = -1
	}
}

// store takes in what the client sent, and lets all before go when there is no room. The mutex is held.
func (s *Replay) store(b []byte) error {
	fits := s.file == nil && len(s.held)+len(b) <= s.limit
	switch {
	case !s.over && (fits || s.room(len(b)) && s.keep(b) == nil):
		if fits {
			s.held = append(s.held, b...)
		}
		return nil
	case s.file != nil && s.at < s.size(): // there was a Rewind during the read: somebody needs what is held
		return s.keep(b)
	}
	s.over = true
	if s.file != nil { // everything in it was read
		s.file.close()
		s.file, s.held, s.at = nil, s.held[:0], 0
	}
	s.held = append(append(s.held[:0], s.held[s.at:]...), b...)
	s.at = 0
	return nil
}

// room tells whether n more bytes may be kept in a file.
func (s *Replay) room(n int) bool {
	return s.kept < 0 || s.kept > 0 && s.size()+int64(n) <= s.kept
}

// keep puts bytes behind those that are held. The mutex is held.
func (s *Replay) keep(b []byte) error {
	if s.file == nil && len(s.held)+len(b) <= s.limit {
		s.held = append(s.held, b...)
		return nil
	}
	if s.file == nil {
		f, err := newSpill(s.dir)
		if err != nil {
			return err
		}
		s.file = f
	}
	return s.file.write(b)
}
