package body

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

// piped is a stream whose client is the other end of a pipe.
type piped struct{ io.Reader }

func (piped) Interrupt()               {}
func (piped) Trailer() []forward.Field { return nil }

// upload gives the test a replay whose client is the returned writer; what is written is one chunk each.
func upload(t *testing.T, limit int) (*Replay, *io.PipeWriter) {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close(); _ = r.Close() })
	return New(piped{r}, Options{Length: -1, Memory: limit}), w
}

func write(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if _, err := io.WriteString(w, s); err != nil {
		t.Error(err)
	}
}

func readN(t *testing.T, r io.Reader, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatalf("after %q: %v", b, err)
	}
	return string(b)
}

func TestReplayIsReadAgain(t *testing.T) {
	s, w := upload(t, 100)
	go func() { write(t, w, "abc"); write(t, w, "def"); _ = w.Close() }()
	if got := readN(t, s, 4); got != "abcd" {
		t.Fatal(got)
	}
	if !s.Rewindable() || s.Rewind() != nil {
		t.Fatal("all of it is held")
	}
	all, err := io.ReadAll(s)
	if string(all) != "abcdef" || err != nil {
		t.Fatalf("%q, %v", all, err)
	}
	if s.Rewind() != nil {
		t.Fatal("also at its end")
	}
	if all, _ := io.ReadAll(s); string(all) != "abcdef" {
		t.Fatalf("%q", all)
	}
}

func TestReplayBeyondItsLimit(t *testing.T) {
	s, w := upload(t, 4)
	go func() {
		write(t, w, "abc")
		write(t, w, "def")
		write(t, w, strings.Repeat("x", 50<<10))
		_ = w.Close()
	}()
	if got := readN(t, s, 2); got != "ab" || !s.Rewindable() {
		t.Fatal(got)
	}
	rest, err := io.ReadAll(s)
	if want := "cdef" + strings.Repeat("x", 50<<10); string(rest) != want || err != nil {
		t.Fatalf("%d bytes, %v", len(rest), err)
	}
	if s.Rewindable() || s.Rewind() == nil {
		t.Error("bytes that were let go can't be sent again")
	}
	if len(s.held) > 0 || cap(s.held) > 64<<10 {
		t.Errorf("%d bytes held, room for %d", len(s.held), cap(s.held))
	}
}

// until is a reader that is stopped.
type until struct {
	s    *Replay
	stop chan struct{}
}

func (u until) Read(p []byte) (int, error) { return u.s.ReadUntil(p, u.stop) }

// TestStoppedReaderTakesNothing: an attempt is given up while it waits for the client. It stops at once, and what the
// client sends then is there for the next attempt, from the first byte.
func TestStoppedReaderTakesNothing(t *testing.T) {
	s, w := upload(t, 100)
	first := until{s, make(chan struct{})}
	go write(t, w, "abc")
	if got := readN(t, first, 3); got != "abc" {
		t.Fatal(got)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if n, err := first.Read(make([]byte, 10)); n != 0 || !errors.Is(err, errClosed) {
			t.Errorf("the given up reader got %d bytes, %v", n, err)
		}
	})
	close(first.stop)
	wg.Wait()
	if err := s.Rewind(); err != nil {
		t.Fatal(err)
	}
	if n, err := first.Read(make([]byte, 10)); n != 0 || !errors.Is(err, errClosed) {
		t.Fatalf("the given up reader got %d bytes of the next attempt's, %v", n, err)
	}
	go func() { write(t, w, "def"); _ = w.Close() }()
	if all, err := io.ReadAll(until{s, make(chan struct{})}); string(all) != "abcdef" || err != nil {
		t.Fatalf("%q, %v", all, err)
	}
}

func TestClientsErrorIsTold(t *testing.T) {
	s, w := upload(t, 100)
	broken := errors.New("broken chunk")
	_ = w.CloseWithError(broken)
	if _, err := io.ReadAll(s); !errors.Is(err, broken) || s.Whole() {
		t.Errorf("%v", err)
	}
}

type panics struct{ io.Reader }

func (panics) Read([]byte) (int, error) { panic("no reading after hijack") }

// TestPanicInABodyIsAnError: it comes up in a goroutine where nothing else would catch it.
func TestPanicInABodyIsAnError(t *testing.T) {
	s, _ := upload(t, 100)
	s.from = piped{panics{}}
	if _, err := io.ReadAll(s); err == nil || !strings.Contains(err.Error(), "after hijack") || s.Whole() {
		t.Errorf("%v", err)
	}
}

// TestNobodyReadsAfterFinish: the stream may be of another request by then.
func TestNobodyReadsAfterFinish(t *testing.T) {
	s, w := upload(t, 100)
	read := make(chan string, 1)
	go func() { write(t, w, "abc"); read <- "abc" }()
	if got := readN(t, s, 3); got != "abc" {
		t.Fatal(got)
	}
	<-read
	s.Finish()
	go func() { _, _ = io.WriteString(w, "def"); read <- "def"; _ = w.Close() }()
	if n, err := s.Read(make([]byte, 9)); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := s.Hold(0); n != 0 || err == nil {
		t.Errorf("held %d bytes, %v", n, err)
	}
	select {
	case <-read:
		t.Error("somebody read it")
	default:
	}
}
