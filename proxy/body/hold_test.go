package body

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestHold: a body is taken in whole, whatever its size, and can be read as often as wanted without the client.
func TestHold(t *testing.T) {
	for name, tc := range map[string]struct {
		size, limit int
		allowed     int64
		onDisk      bool
		tooLarge    bool
	}{
		"empty":              {0, 10, 0, false, false},
		"in memory":          {10, 10, 0, false, false},
		"on disk":            {100 << 10, 64 << 10, 0, true, false},
		"all of it on disk":  {20 << 10, 0, 0, true, false},
		"as large as it may": {50, 100, 50, false, false},
		"too large":          {51, 100, 50, false, true},
		"too large, on disk": {100 << 10, 1 << 10, 90 << 10, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := upload(t, tc.limit)
			s.dir = t.TempDir()
			s.length = -1
			want := strings.Repeat("0123456789", tc.size/10+1)[:tc.size]
			go func() { _, _ = io.WriteString(w, want); _ = w.Close() }()
			n, err := s.Hold(tc.allowed)
			if tc.tooLarge {
				if !errors.Is(err, forward.ErrTooLarge) || s.Whole() {
					t.Fatalf("%d, %v", n, err)
				}
				return
			}
			if n != int64(tc.size) || err != nil || !s.Whole() || s.file != nil != tc.onDisk {
				t.Fatalf("%d, %v, on disk %v", n, err, s.file != nil)
			}
			for range 2 {
				got, err := io.ReadAll(s)
				if string(got) != want || err != nil {
					t.Fatalf("%d bytes, %v", len(got), err)
				}
				if !s.Rewindable() || s.Rewind() != nil {
					t.Fatal("not to be read again")
				}
			}
			if left, err := os.ReadDir(s.dir); len(left) != 0 || err != nil {
				t.Errorf("files with a name: %v, %v", left, err)
			}
			s.Finish()
			if s.file != nil {
				t.Error("the file is still open")
			}
		})
	}
}

// TestHoldOfALengthThatIsTooLarge reads nothing.
func TestHoldOfALengthThatIsTooLarge(t *testing.T) {
	s, _ := upload(t, 100)
	s.length = 11
	if _, err := s.Hold(10); !errors.Is(err, forward.ErrTooLarge) || s.taken != 0 {
		t.Errorf("%v after %d bytes", err, s.taken)
	}
}

func TestLimitOfAStreamedBody(t *testing.T) {
	s, w := upload(t, 100)
	s.Limit(5)
	go func() { write(t, w, "abc"); write(t, w, "def"); _ = w.Close() }()
	got, err := io.ReadAll(s)
	if string(got) != "abc" || !errors.Is(err, forward.ErrTooLarge) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestKeep: what is streamed can be begun again as long as it is no longer than what is kept, wherever the first reader
// stopped.
func TestKeep(t *testing.T) {
	for name, tc := range map[string]struct {
		size   int
		keep   int64 // -1: Keep is not called
		first  int   // bytes that the first reader takes
		lost   bool
		onDisk bool
	}{
		"in memory":                {900, 10 << 10, 900, false, false},
		"in a file":                {100 << 10, 200 << 10, 100 << 10, false, true},
		"just":                     {100 << 10, 100 << 10, 100 << 10, false, true},
		"stopped in between":       {100 << 10, 200 << 10, 50 << 10, false, true},
		"without limit":            {300 << 10, 0, 300 << 10, false, true},
		"too long":                 {100 << 10, 50 << 10, 100 << 10, true, false},
		"too long, stopped before": {100 << 10, 50 << 10, 20 << 10, false, true},
		"not kept":                 {100 << 10, -1, 100 << 10, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := upload(t, 1000)
			s.dir = t.TempDir()
			before := spilled.Load()
			if tc.keep >= 0 {
				s.Keep(tc.keep)
			}
			want := strings.Repeat("0123456789abcdef", tc.size/16+1)[:tc.size]
			go func() { _, _ = io.WriteString(w, want); _ = w.Close() }()
			got := make([]byte, tc.first)
			if _, err := io.ReadFull(s, got); err != nil || string(got) != want[:tc.first] {
				t.Fatalf("%v, or other bytes", err)
			}
			if tc.first == tc.size {
				if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
					t.Fatalf("%d, %v behind the end", n, err)
				}
			}
			if s.Rewindable() == tc.lost || (s.Rewind() == nil) == tc.lost || (s.file != nil) != tc.onDisk {
				t.Fatalf("to be read again: %v; in a file: %v", s.Rewindable(), s.file != nil)
			}
			if !tc.lost {
				again, err := io.ReadAll(s)
				if string(again) != want || err != nil {
					t.Errorf("%d bytes and %v", len(again), err)
				}
			}
			s.Finish()
			if n := spilled.Load(); n != before {
				t.Errorf("%d bytes are counted as kept", n-before)
			}
		})
	}
}

// TestRoomForAll: what all requests hold together is limited. A body that is to be taken in whole is refused then, one that
// is streamed goes on and can be sent once only.
func TestRoomForAll(t *testing.T) {
	defer func(most int64) { mostSpilled = most }(mostSpilled)
	mostSpilled = spilled.Load() + 40<<10
	for _, hold := range []bool{true, false} {
		s, w := upload(t, 1000)
		s.dir = t.TempDir()
		go func() { _, _ = w.Write(make([]byte, 100<<10)); _ = w.Close() }()
		if hold {
			if _, err := s.Hold(0); !errors.Is(err, errNoRoom) {
				t.Errorf("%v", err)
			}
		} else {
			s.Keep(0)
			if n, err := io.Copy(io.Discard, s); n != 100<<10 || err != nil || s.Rewindable() {
				t.Errorf("%d bytes, %v, to be read again: %v", n, err, s.Rewindable())
			}
		}
		s.Finish()
	}
}

// TestHoldAfterAnAttempt: an attempt that left while the client was silent has a read under way; what that brings comes
// first, and can be read again like the rest.
func TestHoldAfterAnAttempt(t *testing.T) {
	s, _ := upload(t, 4)
	s.dir = t.TempDir()
	silent := &silentBody{begun: make(chan struct{}), speak: make(chan struct{})}
	s.from = piped{silent}
	s.ready = make(chan struct{})
	go s.fill(s.ready)
	<-silent.begun
	go close(silent.speak)
	n, err := s.Hold(0)
	got, readErr := io.ReadAll(s)
	if n != 6 || err != nil || string(got) != "abcdef" || readErr != nil || s.Rewind() != nil {
		t.Fatalf("%d, %v, %q, %v", n, err, got, readErr)
	}
	s.Finish()
}

// silentBody says abc when it is let, to whoever reads first, and def at once to whoever reads next.
type silentBody struct {
	reads        atomic.Int64
	begun, speak chan struct{}
}

func (b *silentBody) Read(p []byte) (int, error) {
	if b.reads.Add(1) == 1 {
		close(b.begun)
		<-b.speak
		return copy(p, "abc"), nil
	}
	return copy(p, "def"), io.EOF
}
