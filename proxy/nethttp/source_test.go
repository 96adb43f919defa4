package nethttp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// upload gives the test a replay whose client is the returned writer; what is written is one chunk each.
func upload(t *testing.T, limit int) (*replay, *io.PipeWriter) {
	t.Helper()
	r, w := io.Pipe()
	req := httptest.NewRequest("POST", "/", r)
	t.Cleanup(func() { _ = w.Close(); _ = r.Close() })
	return &replay{r: req, rc: http.NewResponseController(httptest.NewRecorder()), idle: time.Minute, limit: limit}, w
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
	s    *replay
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

func (panics) Close() error             { return nil }
func (panics) Read([]byte) (int, error) { panic("no reading after hijack") }

// TestPanicInABodyIsAnError: it comes up in a goroutine where nothing else would catch it.
func TestPanicInABodyIsAnError(t *testing.T) {
	s, _ := upload(t, 100)
	s.r.Body = panics{}
	if _, err := io.ReadAll(s); err == nil || !strings.Contains(err.Error(), "after hijack") || s.whole() {
		t.Errorf("%v", err)
	}
}

func TestAuthority(t *testing.T) {
	for s, want := range map[string]bool{
		"shop": true, "Shop.example.:8080": true, "10.0.0.1:80": true, "[::1]": true, "[::1]:80": true, "a_b": true, "shop:": true, "xn--a%20": true,
		"a<b": false, "a b": false, "a/b": false, "a@b": false, ":80": false, "a:b": false, "a:1:2": false, "[::1": false, "[a]": false, "[::1]80": false,
		"[1.2.3.4]": false, "[fe80::1%eth0]": false, "\xff": false, "a\\b": false, "a?b": false, "a\"b": false,
	} {
		if validAuthority(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

func TestOriginForm(t *testing.T) {
	for in, want := range map[string]string{
		"/a?b": "/a?b", "//a": "//a", "http://h/a?b": "/a?b", "http://h": "/", "http://h?q": "/?q", "*": "*", "HTTP://h:1/x://y": "/x://y",
	} {
		if got := originForm(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
