package body

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// TestHoldWithoutRoom: a disk that takes no more is told as our fault, not the client's, and nothing stays open.
func TestHoldWithoutRoom(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("needs /dev/full")
	}
	s, w := upload(t, 0)
	s.file = &spill{f: full}
	go func() { _, _ = io.WriteString(w, "abc"); _ = w.Close() }()
	_, err = s.Hold(0)
	var path *fs.PathError
	if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &path) || s.Whole() {
		t.Errorf("%v", err)
	}
	s.Finish()
	if _, err := full.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Error("the file is still open")
	}
	s, other := upload(t, 0)
	s.dir = t.TempDir() + "/none"
	go func() { _, _ = io.WriteString(other, "abc"); _ = other.Close() }()
	if _, err = s.Hold(0); !errors.As(err, &path) {
		t.Errorf("%v", err)
	}
}
