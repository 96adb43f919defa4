package body

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
)

// mostSpilled is how many bytes of bodies are in files at most, of all requests of the process.
var mostSpilled = int64(4 << 30)

var errNoRoom = errors.New("too much is held of all requests together")

// spilled is the bytes in files now.
var spilled atomic.Int64

// spill is a file without a name.
type spill struct {
	f      *os.File
	length int64
}

func newSpill(dir string) (*spill, error) {
	f, err := os.CreateTemp(dir, "upstrand-body-")
	if err != nil {
		return nil, fmt.Errorf("hold the request's body: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("hold the request's body: %w", err)
	}
	return &spill{f: f}, nil
}

func (f *spill) size() int64 {
	if f == nil {
		return 0
	}
	return f.length
}

func (f *spill) write(b []byte) error {
	n := int64(len(b))
	var err error = &fs.PathError{Op: "write", Path: f.f.Name(), Err: errNoRoom}
	if spilled.Add(n) <= mostSpilled {
		_, err = f.f.WriteAt(b, f.length)
	}
	if err != nil { // what it wrote of b counts for nothing
		spilled.Add(-n)
		return fmt.Errorf("hold the request's body: %w", err)
	}
	f.length += n
	return nil
}

func (f *spill) read(p []byte, at int64) (int, error) {
	n, err := f.f.ReadAt(p[:min(int64(len(p)), f.length-at)], at)
	if n > 0 {
		return n, nil
	}
	return 0, err
}

func (f *spill) close() {
	if f != nil {
		_ = f.f.Close()
		spilled.Add(-f.length)
	}
}
